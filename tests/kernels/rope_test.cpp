// tests/kernels/rope_test.cpp -- rotary position embedding.
#include "kernels/reference/layers/rope.hpp"
#include "tests/kernels/harness.hpp"

#include <cmath>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(rope)

namespace loops = kernels::reference::loops;

namespace {

outputs
rotate(kernels::backend& on, std::size_t T, std::size_t N, std::size_t H) {
  auto table = kernels::make_rope_table(H, 100, 10000);
  auto positions = random_ids(T, 0, 100, 1);
  auto x = random_values(T * N * H, 2);
  auto dx = random_values(T * N * H, 3);
  on.rope(matrix(x, N * H), positions, table);
  on.rope_backward(matrix(dx, N * H), positions, table);
  return {x, dx};
}

template <class Check>
void sweep(Check check) {
  for (std::size_t T : {1, 5, 200})
    for (std::size_t N : {1, 3, 8})
      for (std::size_t H : {2, 6, 32, 34, 64, 128})
        BOOST_TEST_CONTEXT("T " << T << " N " << N << " H " << H)
  check([=](auto& on) { return rotate(on, T, N, H); });
}

} // namespace

BOOST_AUTO_TEST_CASE(cpu_equals_reference) {
  sweep([](const call& run) { check_equals_reference(run); });
}

BOOST_AUTO_TEST_CASE(threads_change_no_bit) {
  sweep([](const call& run) { check_threads_change_nothing(run); });
}

BOOST_AUTO_TEST_CASE(position_0_is_left_alone) {
  auto table = kernels::make_rope_table(8, 4, 10000);
  auto x = random_values(16, 1);
  auto before = x;
  std::vector<std::int32_t> positions{0};
  kernels::make_reference_backend()->rope(matrix(x, 16), positions, table);
  BOOST_TEST(x == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(backward_undoes_forward) {
  auto table = kernels::make_rope_table(16, 50, 10000);
  auto x = random_values(7 * 48, 1);
  auto before = x;
  auto positions = random_ids(7, 0, 50, 2);
  auto reference = kernels::make_reference_backend();
  reference->rope(matrix(x, 48), positions, table);
  BOOST_TEST(relative_difference(x, before) > 0.1);
  reference->rope_backward(matrix(x, 48), positions, table);
  BOOST_TEST(relative_difference(x, before) <= float_tolerance);
}

BOOST_AUTO_TEST_CASE(gradient_matches_differences) {
  const auto table = kernels::make_rope_table(6, 50, 100);
  const auto x = random_doubles(4 * 12, 1), dy = random_doubles(4 * 12, 2);
  const auto positions = random_ids(4, 0, 50, 3);
  auto dx = dy;
  loops::rotate<double>(matrix(dx, 12), positions, table, -1);
  check_gradient(
    [&](auto& at) {
      auto y = at;
      loops::rotate<double>(matrix(y, 12), positions, table, 1);
      return y;
    },
    x, dy, dx);
}

BOOST_AUTO_TEST_CASE(pairs_are_a_half_apart_and_turn_by_the_position) {
  auto table = kernels::make_rope_table(4, 10, 100);
  floats x{1, 0, 0, 2};
  std::vector<std::int32_t> positions{3};
  kernels::make_reference_backend()->rope(matrix(x, 4), positions, table);
  // Frequencies 1 and 100^(-1/2) = 0.1; pairs (0, 2) and (1, 3).
  BOOST_TEST(std::abs(x[0] - std::cos(3.0)) < 1e-6);
  BOOST_TEST(std::abs(x[2] - std::sin(3.0)) < 1e-6);
  BOOST_TEST(std::abs(x[1] + 2 * std::sin(0.3)) < 1e-6);
  BOOST_TEST(std::abs(x[3] - 2 * std::cos(0.3)) < 1e-6);
}

// Frequencies of pairs 0..3 with theta 10000 and 8 values a head are 1, 0.1,
// 0.01 and 0.001; their waves are 6.28, 62.8, 628 and 6283 tokens long.
BOOST_AUTO_TEST_CASE(scaling_changes_frequencies_by_its_rule) {
  using rule = kernels::rope_scaling::rule;
  auto angles = [](const kernels::rope_scaling& scaling) {
    const auto table = kernels::make_rope_table(8, 2, 10000, scaling);
    std::vector<double> out; // of position 1
    for (std::size_t i = 4; i != 8; ++i)
      out.push_back(std::atan2(table.sin_PH2[i], table.cos_PH2[i]));
    return out;
  };
  auto check = [&](const kernels::rope_scaling& scaling,
                   const std::vector<double>& expected) {
    const auto got = angles(scaling);
    for (std::size_t i = 0; i != 4; ++i)
      BOOST_TEST(std::abs(got[i] - expected[i]) <= 1e-6 * expected[i]);
  };
  kernels::rope_scaling s;
  s.factor = 8;
  check(s, {1, 0.1, 0.01, 0.001});
  s.type = rule::linear;
  check(s, {0.125, 0.0125, 0.00125, 0.000125});
  s.type = rule::llama3;
  s.low_freq_factor = 1;
  s.high_freq_factor = 4;
  s.original = 1024; // waves above 1024 are scaled, those below 256 are not
  const double smooth = (1024 / (2 * 3.14159265358979 / 0.01) - 1) / 3;
  check(s, {1, 0.1, (1 - smooth) * 0.01 / 8 + smooth * 0.01, 0.000125});
  s.type = rule::yarn;
  s.original = 2048; // pair 1.008 turns 32 times in it, pair 2.51 once
  check(s, {1, 0.1, 0.005 / 8 + 0.005, 0.000125});
  s.attention_factor = 1.25;
  const auto table = kernels::make_rope_table(8, 2, 10000, s);
  BOOST_TEST(table.cos_PH2[0] == 1.25f);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
