// tests/runtime/work/cut_backend_test.cpp -- long calls in pieces, with the same
// bits.
#include "kernels/common/thread_team.hpp"
#include "runtime/work/cut_backend.hpp"
#include "tests/support/kv_memory.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace shoal::runtime {
BOOST_AUTO_TEST_SUITE(cut_calls)

namespace {

using namespace kernels;
using floats = std::vector<float>;

/// Counts how often urgent work may run.
struct counted final : cut_backend::urgent_work {
  bool comes() const noexcept override { return cuts; }
  void run() override { ++times; }
  bool cuts = true;
  std::size_t times = 0;
};

class numbers {
public:
  floats operator()(std::size_t count) {
    floats out(count);
    for (float& x : out)
      x = std::uniform_real_distribution<float>(-1, 1)(engine_);
    return out;
  }

private:
  std::mt19937 engine_{7};
};

template <class T>
auto matrix(std::vector<T>& all, std::size_t cols) {
  return matrix_view<T>(all.data(), all.size() / cols, cols);
}

/// Computes with a backend; all results, one after another.
using calls = std::function<floats(backend&)>;

/// @param least pieces into which one call at least is cut
void same_in_pieces(const calls& run, std::size_t least) {
  thread_team team{2};
  const auto cpu = make_cpu_backend(team), plain = make_reference_backend();
  for (backend* b : {cpu.get(), plain.get()}) {
    const floats whole = run(*b);
    counted urgent;
    cut_backend cut(*b, urgent, 1);
    BOOST_TEST(run(cut) == whole, boost::test_tools::per_element());
    BOOST_TEST(urgent.times >= least);
    urgent = {};
    urgent.cuts = false;
    BOOST_TEST(run(cut) == whole, boost::test_tools::per_element());
    BOOST_TEST(urgent.times < least);
  }
}

floats joined(std::initializer_list<floats> all) {
  floats out;
  for (const floats& x : all)
    out.insert(out.end(), x.begin(), x.end());
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(products_are_cut_by_columns) {
  constexpr std::size_t t = 37, i = 200, o = 330;
  for (const weight_order order : {weight_order::out_in, weight_order::in_out})
    for (const factor_type factors : {factor_type::f32, factor_type::bf16})
      same_in_pieces(
        [&](backend& b) {
          numbers some;
          const bool by_rows = order == weight_order::out_in;
          floats x = some(t * i), w = some(o * i), bias = some(o), y(t * o);
          floats dx = some(t * i), dw = some(o * i), dx2(t * i);
          const auto w_OI = matrix(w, by_rows ? i : o);
          b.matmul(matrix(y, o), matrix(x, i), w_OI, bias, order, factors);
          b.matmul_input_gradient(matrix(dx, i), matrix(y, o), w_OI, into::add,
                                  order, factors);
          b.matmul_input_gradient(matrix(dx2, i), matrix(y, o), w_OI,
                                  into::overwrite, order, factors);
          b.matmul_weight_gradient(matrix(dw, by_rows ? i : o), matrix(y, o),
                                   matrix(x, i), order, factors);
          return joined({y, dx, dx2, dw});
        },
        14);
}

BOOST_AUTO_TEST_CASE(attention_is_cut_by_sequences_and_heads) {
  for (const std::size_t window : {0, 9})
    for (const std::size_t batch : {1, 3})
      same_in_pieces(
        [&](backend& b) {
          attention_shape s;
          s.batch = batch;
          s.tokens = 33;
          s.heads = 6;
          s.kv_heads = 3;
          s.head_size = 16;
          s.scale = 0.25f;
          s.window = window;
          numbers some;
          const std::size_t rows = s.batch * s.tokens, n = 96, k = 48;
          floats q = some(rows * n), keys = some(rows * k), v = some(rows * k),
                 o(rows * n), lse(s.batch * s.heads * 33);
          floats dq(rows * n), dk(rows * k), dv(rows * k);
          const floats d = some(rows * n);
          floats d_o = d;
          b.attention(matrix(o, n), matrix(lse, 33), matrix(q, n),
                      matrix(keys, k), matrix(v, k), s);
          b.attention_backward(matrix(dq, n), matrix(dk, k), matrix(dv, k),
                               matrix(d_o, n), matrix(q, n), matrix(keys, k),
                               matrix(v, k), matrix(o, n), matrix(lse, 33), s);
          return joined({o, lse, dq, dk, dv});
        },
        2 * batch * 3);
}

BOOST_AUTO_TEST_CASE(attention_with_a_cache_is_cut_by_rows) {
  for (const std::size_t window : {0, 9})
    same_in_pieces(
      [&](backend& b) {
        attention_shape s{1, 0, 6, 3, 16, 0.25f, window};
        const tests::kv_memory memory(kv_type::q8, 11, s);
        const auto prompt = tests::scattered(3, 0, 2, 11),
                   other = tests::scattered(2, 1, 2, 11);
        const paged_rows rows[] = {{prompt, 4, 33}, {other, 20, 1}};
        s.tokens = 34;
        numbers some;
        floats q = some(34 * 96), k = some(34 * 48), v = some(34 * 48),
               o(34 * 96);
        b.append_paged(memory.view(), matrix(k, 48), matrix(v, 48), rows);
        b.attention_paged(matrix(o, 96), matrix(q, 96), memory.view(), rows, s);
        return o;
      },
      30);
}

BOOST_AUTO_TEST_CASE(functions_of_values_are_cut_by_rows) {
  constexpr std::size_t t = 9, d = 50;
  same_in_pieces(
    [&](backend& b) {
      numbers some;
      floats x = some(t * d), y(t * d), z(t * d), w = some(d), r(t);
      floats dx(t * d), dg(t * d), du(t * d), loss(t), dl(t * d);
      std::vector<token_id> ids{3, 1, 0, 49, 7, 7, 2, -1, 8},
        rows{3, 1, 0, 8, 7, 7, 2, 5, 8};
      const auto m = [&](floats& of) { return matrix(of, d); };
      b.rmsnorm(m(y), r, m(x), w, 1e-5f, 0);
      b.rmsnorm_input_gradient(m(dx), m(y), m(x), w, r, into::overwrite, 0);
      b.swiglu(m(z), m(x), m(y));
      b.swiglu_backward(m(dg), m(du), m(z), m(x), m(y), {});
      b.gelu(m(z), m(x), gelu_form::tanh);
      b.gelu_backward(m(dx), m(z), m(x), gelu_form::tanh, {});
      b.geglu(m(y), m(x), m(z), gelu_form::tanh);
      b.cross_entropy(loss, m(dl), m(x), ids, 0.5f, 0);
      b.embedding(m(y), m(x), rows, into::add);
      b.embedding_weight_gradient(m(x), m(y), rows);
      b.add(m(z), m(x), m(y));
      b.scale(m(z), 0.3f);
      b.softcap(m(z), 2);
      b.copy(m(du), m(z));
      return joined({x, y, z, dx, dg, du, r, loss, dl});
    },
    100);
}

BOOST_AUTO_TEST_CASE(vectors_are_cut_into_blocks) {
  constexpr std::size_t p = 200'000;
  same_in_pieces(
    [&](backend& b) {
      numbers some;
      floats w = some(p), m = some(p), v(p, 0.1f), g = some(p), copied(p);
      adamw_options options;
      options.step = 3;
      b.adamw(w, m, v, g, options);
      b.copy(vector_view<float>(copied), vector_view<const float>(w));
      b.add_both(g, m);
      b.fill(v, 2);
      return joined({w, m, v, g, copied});
    },
    16);
}

/// The first call teaches how long the next ones take.
BOOST_AUTO_TEST_CASE(what_is_short_is_not_cut) {
  thread_team team{1};
  const auto cpu = make_cpu_backend(team);
  counted urgent;
  cut_backend cut(*cpu, urgent, 3'600'000'000'000);
  floats a(1 << 20), b(1 << 20);
  cut.copy(vector_view<float>(a), vector_view<const float>(b));
  BOOST_TEST(urgent.times == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
