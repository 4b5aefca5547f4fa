// tests/kernels/attention_test.cpp -- causal attention, trained and cached.
#include "kernels/reference/layers/attention.hpp"
#include "tests/kernels/harness.hpp"
#include "tests/support/kv_memory.hpp"

#include <boost/test/data/test_case.hpp>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(attention)

namespace loops = kernels::reference::loops;

namespace {

using kernels::attention_shape;

attention_shape
shape_of(std::size_t B, std::size_t T, std::size_t N, std::size_t K,
         std::size_t H, std::size_t window = 0, float softcap = 0) {
  return {B, T, N, K, H, 1 / std::sqrt(static_cast<float>(H)), window, softcap};
}

const attention_shape shapes[] = {
  shape_of(1, 1, 1, 1, 1),
  shape_of(2, 3, 2, 1, 5),
  shape_of(1, 63, 3, 3, 7),
  shape_of(3, 64, 4, 2, 32),
  shape_of(2, 65, 6, 2, 32),
  shape_of(1, 131, 4, 1, 64),
  shape_of(1, 200, 3, 3, 48),
  shape_of(1, 129, 1, 1, 128),
  // Windows shorter than, as long as and longer than a block of rows and the
  // sequence; soft caps that matter, since scores are of the order of 1.
  shape_of(2, 3, 2, 1, 5, 2),
  shape_of(1, 150, 2, 1, 8, 7),
  shape_of(2, 131, 4, 2, 16, 64),
  shape_of(1, 200, 2, 2, 24, 65),
  shape_of(1, 70, 1, 1, 8, 70),
  shape_of(1, 66, 1, 1, 8, 1000),
  shape_of(2, 65, 4, 2, 12, 0, 0.5f),
  shape_of(1, 140, 2, 1, 32, 33, 1.5f),
};

// Of models of 1 to 8 billion parameters: a prompt, or a short sequence.
const attention_shape real_shapes[] = {
  shape_of(1, 256, 32, 4, 64),
  shape_of(1, 256, 32, 4, 128),
};

const attention_shape differentiated[] = {shape_of(2, 4, 4, 2, 3),
                                          shape_of(2, 4, 4, 2, 3, 2),
                                          shape_of(1, 4, 2, 1, 3, 3, 0.4f)};

outputs forward_and_backward(kernels::backend& on, const attention_shape& s) {
  auto rows = s.batch * s.tokens;
  auto NH = s.heads * s.head_size, KH = s.kv_heads * s.head_size;
  const auto q = random_values(rows * NH, 1);
  const auto k = random_values(rows * KH, 2);
  const auto v = random_values(rows * KH, 3);
  const auto d_o = random_values(rows * NH, 4);
  floats o(rows * NH), lse(s.batch * s.heads * s.tokens);
  floats dq(rows * NH, 9), dk(rows * KH, 9), dv(rows * KH, 9);
  on.attention(matrix(o, NH), matrix(lse, s.tokens), matrix(q, NH),
               matrix(k, KH), matrix(v, KH), s);
  const auto &co = o, &clse = lse;
  on.attention_backward(matrix(dq, NH), matrix(dk, KH), matrix(dv, KH),
                        matrix(d_o, NH), matrix(q, NH), matrix(k, KH),
                        matrix(v, KH), matrix(co, NH), matrix(clse, s.tokens),
                        s);
  return {o, lse, dq, dk, dv};
}

/// Whether Linux forgets how much memory this process had; sandboxes may not.
bool forget_peak() {
  std::ofstream out("/proc/self/clear_refs");
  return static_cast<bool>(out << "5" << std::flush);
}

boost::test_tools::assertion_result
can_forget_peak(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result can = forget_peak();
  can.message() << "/proc/self/clear_refs cannot be written";
  return can;
}

/// The most memory that this process has had since.
std::size_t peak_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;)
    if (std::size_t kib = 0; word == "VmHWM:" && in >> kib)
      return kib << 10;
  return 0;
}

} // namespace

BOOST_DATA_TEST_CASE(cpu_matches_reference, shapes, shape) {
  check_matches_reference(
    [&](auto& on) { return forward_and_backward(on, shape); });
}

BOOST_DATA_TEST_CASE(cpu_matches_reference_on_real_shapes, real_shapes, shape) {
  check_matches_reference(
    [&](auto& on) { return forward_and_backward(on, shape); });
}

BOOST_DATA_TEST_CASE(threads_change_no_bit, shapes, shape) {
  check_threads_change_nothing(
    [&](auto& on) { return forward_and_backward(on, shape); });
}

BOOST_DATA_TEST_CASE(gradients_match_differences, differentiated, s) {
  auto rows = s.batch * s.tokens;
  auto NH = s.heads * s.head_size, KH = s.kv_heads * s.head_size;
  const auto q = random_doubles(rows * NH, 1), k = random_doubles(rows * KH, 2);
  const auto v = random_doubles(rows * KH, 3);
  const auto d_o = random_doubles(rows * NH, 4);
  doubles lse(s.batch * s.heads * s.tokens);
  auto value = [&](const doubles& q, const doubles& k, const doubles& v) {
    doubles o(rows * NH);
    loops::attention<double>(matrix(o, NH), matrix(lse, s.tokens),
                             matrix(q, NH), matrix(k, KH), matrix(v, KH), s);
    return o;
  };
  const auto o = value(q, k, v); // sets lse
  const auto at_lse = lse;
  doubles dq(q.size()), dk(k.size()), dv(v.size());
  loops::attention_backward<double>(matrix(dq, NH), matrix(dk, KH),
                                    matrix(dv, KH), matrix(d_o, NH),
                                    matrix(q, NH), matrix(k, KH), matrix(v, KH),
                                    matrix(o, NH), matrix(at_lse, s.tokens), s);
  check_gradient([&](auto& at) { return value(at, k, v); }, q, d_o, dq);
  check_gradient([&](auto& at) { return value(q, at, v); }, k, d_o, dk);
  check_gradient([&](auto& at) { return value(q, k, at); }, v, d_o, dv);
}

const attention_shape cached_shapes[] = {shape_of(1, 20, 4, 2, 16),
                                         shape_of(1, 20, 4, 2, 16, 6, 0.5f)};

// The same tokens, one by one against a cache and all at once.
BOOST_DATA_TEST_CASE(a_cache_gives_the_same_as_training, cached_shapes, s) {
  auto NH = s.heads * s.head_size, KH = s.kv_heads * s.head_size;
  const auto q = random_values(s.tokens * NH, 1);
  const auto k = random_values(s.tokens * KH, 2);
  const auto v = random_values(s.tokens * KH, 3);
  cpu_fixture fixture;
  floats whole(s.tokens * NH), steps(s.tokens * NH);
  fixture.cpu->attention(matrix(whole, NH), {}, matrix(q, NH), matrix(k, KH),
                         matrix(v, KH), s);
  one_sequence_cache cache(kernels::kv_type::f32, s.tokens, s);
  for (std::size_t t = 0; t != s.tokens; ++t) {
    cache.append(*fixture.cpu, matrix(k, KH).slice_rows(t, t + 1),
                 matrix(v, KH).slice_rows(t, t + 1));
    cache.attend(*fixture.cpu, matrix(steps, NH).slice_rows(t, t + 1),
                 matrix(q, NH).slice_rows(t, t + 1), s);
  }
  BOOST_TEST(relative_difference(steps, whole) <= float_tolerance);
}

BOOST_AUTO_TEST_CASE(a_sequence_does_not_see_another_nor_its_future) {
  auto s = shape_of(2, 70, 2, 1, 8);
  cpu_fixture fixture;
  const auto q = random_values(140 * 16, 1);
  auto k = random_values(140 * 8, 2);
  const auto v = random_values(140 * 8, 3);
  const auto& ck = k;
  floats before(140 * 16), after(140 * 16);
  fixture.cpu->attention(matrix(before, 16), {}, matrix(q, 16), matrix(ck, 8),
                         matrix(v, 8), s);
  k[50 * 8] += 1; // position 50 of the first sequence
  fixture.cpu->attention(matrix(after, 16), {}, matrix(q, 16), matrix(ck, 8),
                         matrix(v, 8), s);
  for (std::size_t t = 0; t != 140; ++t) {
    auto same =
      std::equal(before.begin() + static_cast<std::ptrdiff_t>(t * 16),
                 before.begin() + static_cast<std::ptrdiff_t>(t * 16 + 16),
                 after.begin() + static_cast<std::ptrdiff_t>(t * 16));
    BOOST_TEST(same == (t < 50 || t >= 70));
  }
}

BOOST_AUTO_TEST_CASE(a_token_outside_the_window_is_not_seen) {
  auto s = shape_of(1, 90, 1, 1, 8, 30);
  cpu_fixture fixture;
  const auto q = random_values(90 * 8, 1);
  auto k = random_values(90 * 8, 2);
  const auto v = random_values(90 * 8, 3);
  const auto& ck = k;
  floats before(90 * 8), after(90 * 8);
  fixture.cpu->attention(matrix(before, 8), {}, matrix(q, 8), matrix(ck, 8),
                         matrix(v, 8), s);
  k[10 * 8] += 1; // position 10 is seen up to position 39
  fixture.cpu->attention(matrix(after, 8), {}, matrix(q, 8), matrix(ck, 8),
                         matrix(v, 8), s);
  for (std::size_t t = 0; t != 90; ++t) {
    auto same =
      std::equal(before.begin() + static_cast<std::ptrdiff_t>(t * 8),
                 before.begin() + static_cast<std::ptrdiff_t>(t * 8 + 8),
                 after.begin() + static_cast<std::ptrdiff_t>(t * 8));
    BOOST_TEST(same == (t < 10 || t >= 40));
  }
}

// q, k and v as columns of one matrix, as a fused projection leaves them.
BOOST_AUTO_TEST_CASE(views_into_one_matrix_work) {
  check_matches_reference([](auto& on) {
    auto s = shape_of(2, 67, 4, 2, 8);
    const auto qkv = random_values(134 * 64, 1);
    const auto d_o = random_values(134 * 32, 2);
    floats o(134 * 40, 5), lse(8 * 67), dqkv(134 * 64);
    auto in = matrix(qkv, 64);
    auto out = matrix(dqkv, 64);
    kernels::matrix_view<float> o_view{o.data() + 3, 134, 32, 40};
    const auto& clse = lse;
    on.attention(o_view, matrix(lse, 67), in.slice_cols(0, 32),
                 in.slice_cols(32, 48), in.slice_cols(48, 64), s);
    on.attention_backward(out.slice_cols(0, 32), out.slice_cols(32, 48),
                          out.slice_cols(48, 64), matrix(d_o, 32),
                          in.slice_cols(0, 32), in.slice_cols(32, 48),
                          in.slice_cols(48, 64), o_view, matrix(clse, 67), s);
    return outputs{o, dqkv};
  });
}

// All scores of a head would take 256 MiB here, what it is made of 3.
BOOST_AUTO_TEST_CASE(memory_does_not_grow_with_the_square_of_tokens,
                     *boost::unit_test::precondition(can_forget_peak)) {
  const auto s = shape_of(1, 8192, 1, 1, 8);
  constexpr std::size_t T = 8192, H = 8;
  const auto q = random_values(T * H, 1), k = random_values(T * H, 2);
  const auto v = random_values(T * H, 3), d_o = random_values(T * H, 4);
  floats o(T * H), lse(T), dq(T * H), dk(T * H), dv(T * H);
  const auto &co = o, &clse = lse;
  cpu_fixture fixture;
  ::malloc_trim(0);
  forget_peak();
  const auto before = peak_bytes();
  fixture.cpu->attention(matrix(o, H), matrix(lse, T), matrix(q, H),
                         matrix(k, H), matrix(v, H), s);
  fixture.cpu->attention_backward(
    matrix(dq, H), matrix(dk, H), matrix(dv, H), matrix(d_o, H), matrix(q, H),
    matrix(k, H), matrix(v, H), matrix(co, H), matrix(clse, T), s);
  one_sequence_cache cache(kernels::kv_type::f32, T, s);
  cache.append(*fixture.cpu, matrix(k, H), matrix(v, H));
  cache.attend(*fixture.cpu, matrix(o, H), matrix(q, H), s);
  BOOST_TEST(before > 0u);
  BOOST_TEST(peak_bytes() - before < T * T * sizeof(float) / 4);
}

BOOST_AUTO_TEST_CASE(large_scores_do_not_overflow) {
  auto s = shape_of(1, 3, 1, 1, 4);
  s.scale = 1000;
  check_matches_reference([&](auto& on) {
    auto all = forward_and_backward(on, s);
    return outputs{all[0]};
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
