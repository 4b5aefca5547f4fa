// tests/kernels/row_stability_test.cpp -- a row has the same bits in any call.
//
// Goal: rule R-1 of kernels/README.md, for all types of weights, instruction
// sets and backends. Method: one call with all rows gives the bits; calls with
// some of the rows, or with the same prompt in other chunks, must give the same
// ones. A row of NaN beside a row must not matter either.
#include "tests/kernels/harness.hpp"
#include "tests/support/kv_memory.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(row_stability)

namespace bdata = boost::unit_test::data;

/// Queries, keys and values of a sequence.
struct sequence_values {
  floats q, k, v;
};

namespace {

using kernels::attention_shape;
using kernels::kv_type;
using kernels::paged_rows;
using kernels::weight_type;

/// Computes rows [first, first + count) of an operation's result.
using rows_call = std::function<floats(kernels::backend&, std::size_t first,
                                       std::size_t count)>;

bool same_bits(const float* a, const float* b, std::size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

/// Compares calls with part of `rows` rows with one call with all of them:
/// each row alone, and ranges of every size that begin anywhere.
void check_rows(std::size_t rows, const std::vector<std::size_t>& sizes,
                const rows_call& run) {
  for_each_backend_and_feature([&](kernels::backend& on) {
    const floats all = run(on, 0, rows);
    const std::size_t cols = all.size() / rows;
    std::size_t first = 0;
    for (const std::size_t size : sizes) {
      first = (first * 5 + size + 3) % (rows - size + 1);
      const floats some = run(on, first, size);
      BOOST_REQUIRE_EQUAL(some.size(), size * cols);
      for (std::size_t t = 0; t != size; ++t)
        if (!same_bits(&some[t * cols], &all[(first + t) * cols], cols))
          BOOST_FAIL("row " << first + t << " differs in a call with rows "
                            << first << " to " << first + size << " of "
                            << rows);
    }
  });
}

std::vector<std::size_t> up_to(std::size_t last) {
  std::vector<std::size_t> sizes;
  for (std::size_t n = 1; n <= last; ++n)
    sizes.push_back(n);
  return sizes;
}

kernels::matrix_view<const float>
rows_of(const floats& values, std::size_t cols, std::size_t first,
        std::size_t count) {
  return matrix(values, cols).slice_rows(first, first + count);
}

struct product {
  std::size_t rows, I, O;
  std::vector<std::size_t> sizes; ///< of the calls with some of the rows
};

std::ostream& operator<<(std::ostream& out, const product& p) {
  return out << p.rows << " rows, I " << p.I << " O " << p.O;
}

// Inputs and outputs that fill panels, blocks of the sum and tasks, or do not.
const product products[] = {
  {70, 97, 101, up_to(70)},
  {70, 128, 16, up_to(70)},
  {70, 1, 1, up_to(70)},
  {70, 33, 5, up_to(70)},
  {512, 130, 70, {1, 2, 5, 9, 70, 100, 129, 300, 511}},
  {70, 4500, 21, {1, 2, 3, 4, 5, 6, 7, 8, 13, 40}},
  {40, 2048, 150, {1, 3, 9, 17}},
};

const weight_type types[] = {weight_type::f32, weight_type::bf16,
                             weight_type::q8, weight_type::q4};

kernels::packed_weight
pack(kernels::backend& on, weight_type type, const product& p) {
  const auto w = random_values(p.O * p.I, 2);
  return on.pack_weight(type, p.O, p.I, [&](std::size_t row, float* into) {
    std::copy_n(w.data() + row * p.I, p.I, into);
  });
}

void check_product(weight_type type, const product& p, const floats& x) {
  const auto w = pack(*kernels::make_reference_backend(), type, p);
  check_rows(
    p.rows, p.sizes, [&](auto& on, std::size_t first, std::size_t count) {
      floats y(count * p.O);
      on.packed_matmul(matrix(y, p.O), rows_of(x, p.I, first, count), w);
      return y;
    });
}

/// All queries of a sequence, in chunks of `chunk` that begin `offset` after a
/// multiple of it. If `scatter`, in pages that do not follow each other, and each
/// call has rows of other sequences before and behind.
floats in_chunks(kernels::backend& on, attention_shape s, kv_type type,
                 std::size_t chunk, std::size_t offset,
                 const sequence_values& x, bool scatter = false) {
  const auto NH = s.heads * s.head_size, KH = s.kv_heads * s.head_size;
  const auto P = x.q.size() / NH;
  const std::size_t count = kv_pages_for(P), room = 2 * count + 3;
  const kv_memory memory(type, room, s);
  const auto pages =
    scatter ? scattered(count, 1, 2, room) : scattered(count, 0, 1, room);
  // Sequences of one page: of 5 rows of its own, and of one after 9 of zeros.
  const auto before = scattered(1, 2 * count + 1, 1, room),
             behind = scattered(1, 2 * count + 2, 1, room);
  floats o(x.q.size());
  for (std::size_t t = 0; t != P;) {
    const auto rows = std::min(t < offset ? offset : chunk, P - t);
    std::vector<paged_rows> call{{pages, t, rows}};
    const std::size_t above = scatter ? 5 : 0;
    if (scatter) {
      call.insert(call.begin(), {before, 0, 5});
      call.push_back({behind, 9, 1});
    }
    s.tokens = above + rows + (scatter ? 1 : 0);
    const auto with_others = [&](const floats& all, std::size_t cols) {
      floats out(s.tokens * cols, 0.5f);
      std::copy_n(&all[t * cols], rows * cols, &out[above * cols]);
      return out;
    };
    const auto q = with_others(x.q, NH), k = with_others(x.k, KH),
               v = with_others(x.v, KH);
    floats got(q.size());
    on.append_paged(memory.view(), matrix(k, KH), matrix(v, KH), call);
    on.attention_paged(matrix(got, NH), matrix(q, NH), memory.view(), call, s);
    std::copy_n(&got[above * NH], rows * NH, &o[t * NH]);
    t += rows;
  }
  return o;
}

sequence_values values_for(const attention_shape& s, std::size_t positions) {
  return {random_values(positions * s.heads * s.head_size, 1),
          random_values(positions * s.kv_heads * s.head_size, 2),
          random_values(positions * s.kv_heads * s.head_size, 3)};
}

attention_shape heads_of(std::size_t N, std::size_t K, std::size_t H,
                         std::size_t window = 0, float softcap = 0) {
  return {1, 0, N, K, H, 1 / std::sqrt(static_cast<float>(H)), window, softcap};
}

const attention_shape attentions[] = {
  heads_of(1, 1, 5),           heads_of(6, 2, 64),
  heads_of(4, 4, 16, 7),       heads_of(8, 1, 24, 40, 0.7f),
  heads_of(3, 1, 80, 64),      heads_of(2, 2, 128, 0, 1.5f),
  heads_of(14, 2, 32, 65),     heads_of(71, 1, 4),
  heads_of(5, 1, 33, 1, 0.5f),
};

const kv_type kv_types[] = {kv_type::f32, kv_type::bf16, kv_type::q8};

void check_attention(const attention_shape& s, kv_type type,
                     std::size_t positions,
                     const std::vector<std::size_t>& chunks) {
  const auto x = values_for(s, positions);
  for_each_backend_and_feature([&](kernels::backend& on) {
    const auto alone = in_chunks(on, s, type, 1, 0, x);
    for (const std::size_t chunk : chunks)
      for (const std::size_t offset : {std::size_t{0}, chunk / 2 + 1})
        for (const bool scatter : {false, true}) {
          const auto got = in_chunks(on, s, type, chunk, offset, x, scatter);
          BOOST_TEST(same_bits(got.data(), alone.data(), got.size()),
                     "chunks of " << chunk << " after " << offset
                                  << (scatter ? ", scattered" : ""));
        }
  });
}

} // namespace

BOOST_DATA_TEST_CASE(a_product_gives_a_row_the_same_bits, types* products, type,
                     shape) {
  check_product(type, shape, random_values(shape.rows * shape.I, 1));
}

BOOST_DATA_TEST_CASE(a_product_does_not_see_other_rows, types, type) {
  const std::size_t rows = 23, I = 100, O = 37;
  const auto w =
    pack(*kernels::make_reference_backend(), type, {rows, I, O, {}});
  auto x = random_values(rows * I, 1);
  for_each_backend_and_feature([&](kernels::backend& on) {
    floats clean(rows * O), beside(rows * O);
    on.packed_matmul(matrix(clean, O), rows_of(x, I, 0, rows), w);
    auto bad = x;
    for (std::size_t i = 0; i != I; ++i)
      bad[11 * I + i] = i % 2 == 0 ? NAN : INFINITY;
    on.packed_matmul(matrix(beside, O), rows_of(bad, I, 0, rows), w);
    for (std::size_t t = 0; t != rows; ++t)
      if (t != 11)
        BOOST_TEST(same_bits(&clean[t * O], &beside[t * O], O));
  });
}

BOOST_DATA_TEST_CASE(threads_give_a_row_the_same_bits, types, type) {
  const product p{70, 700, 257, {}};
  const auto w = pack(*kernels::make_reference_backend(), type, p);
  const auto x = random_values(p.rows * p.I, 1);
  for (unsigned threads = 1; threads <= 4; ++threads) {
    cpu_fixture fixture{threads};
    floats all(p.rows * p.O), one(p.O);
    fixture.cpu->packed_matmul(matrix(all, p.O), rows_of(x, p.I, 0, p.rows), w);
    for (std::size_t t = 0; t != p.rows; ++t) {
      fixture.cpu->packed_matmul(matrix(one, p.O), rows_of(x, p.I, t, 1), w);
      BOOST_REQUIRE(same_bits(&all[t * p.O], one.data(), p.O));
    }
  }
}

BOOST_DATA_TEST_CASE(attention_gives_a_query_the_same_bits_in_any_chunk,
                     bdata::make(kv_types) * bdata::make(attentions), type,
                     shape) {
  check_attention(shape, type, 150, {2, 5, 7, 16, 33, 65, 100, 150});
}

BOOST_DATA_TEST_CASE(attention_over_many_keys_is_that_of_any_chunk, kv_types,
                     type) {
  check_attention(heads_of(4, 2, 64), type, 600, {64, 129, 512, 600});
}

BOOST_DATA_TEST_CASE(attention_does_not_see_later_tokens, kv_types, type) {
  const auto s = heads_of(4, 2, 16);
  const std::size_t P = 90, bad = 45;
  const auto x = values_for(s, P);
  for_each_backend_and_feature([&](kernels::backend& on) {
    const auto clean = in_chunks(on, s, type, P, 0, x);
    auto other = x;
    std::fill_n(&other.k[bad * 32], 32, NAN);
    std::fill_n(&other.v[bad * 32], 32, INFINITY);
    const auto beside = in_chunks(on, s, type, P, 0, other);
    BOOST_TEST(same_bits(clean.data(), beside.data(), bad * 64));
    BOOST_TEST(std::isnan(beside[bad * 64]));
  });
}

BOOST_DATA_TEST_CASE(threads_give_a_query_the_same_bits, kv_types, type) {
  const auto s = heads_of(8, 2, 64);
  const auto x = values_for(s, 200);
  cpu_fixture one{1};
  const auto expected = in_chunks(*one.cpu, s, type, 1, 0, x);
  for (unsigned threads = 1; threads <= 4; ++threads) {
    cpu_fixture fixture{threads};
    BOOST_TEST((in_chunks(*fixture.cpu, s, type, 200, 0, x) == expected));
  }
}

BOOST_AUTO_TEST_CASE(norms_give_a_row_the_same_bits) {
  for (const std::size_t D : {1u, 45u, 64u, 1030u}) {
    const auto x = random_values(40 * D, 1);
    const auto w = random_values(D, 2), b = random_values(D, 3);
    check_rows(40, up_to(40), [&](auto& on, std::size_t first, std::size_t n) {
      floats y(n * D);
      on.rmsnorm(matrix(y, D), {}, rows_of(x, D, first, n), w, 1e-5f);
      return y;
    });
    check_rows(40, up_to(40), [&](auto& on, std::size_t first, std::size_t n) {
      floats y(n * D);
      on.layernorm(matrix(y, D), {}, rows_of(x, D, first, n), w, b, 1e-5f);
      return y;
    });
  }
}

BOOST_AUTO_TEST_CASE(functions_of_values_give_a_row_the_same_bits) {
  using kernels::gelu_form;
  const std::size_t D = 77, rows = 40;
  const auto x = random_values(rows * D, 1), z = random_values(rows * D, 2);
  const auto check = [&](const auto& run) {
    check_rows(
      rows, up_to(rows), [&](auto& on, std::size_t first, std::size_t n) {
        floats y(x.begin() + static_cast<std::ptrdiff_t>(first * D),
                 x.begin() + static_cast<std::ptrdiff_t>((first + n) * D));
        run(on, matrix(y, D), rows_of(z, D, first, n));
        return y;
      });
  };
  check([](auto& on, auto y, auto up) { on.swiglu(y, y, up); });
  for (const auto form : {gelu_form::exact, gelu_form::tanh}) {
    check([=](auto& on, auto y, auto) { on.gelu(y, y, form); });
    check([=](auto& on, auto y, auto up) { on.geglu(y, y, up, form); });
  }
  check([](auto& on, auto y, auto up) { on.add(y, y, up); });
  check([](auto& on, auto y, auto) { on.scale(y, 0.3f); });
  check([](auto& on, auto y, auto) { on.softcap(y, 0.7f); });
}

BOOST_AUTO_TEST_CASE(rope_gives_a_row_the_same_bits) {
  const auto table = kernels::make_rope_table(16, 100, 10000);
  const auto x = random_values(40 * 48, 1);
  check_rows(40, up_to(40), [&](auto& on, std::size_t first, std::size_t n) {
    floats y(x.begin() + static_cast<std::ptrdiff_t>(first * 48),
             x.begin() + static_cast<std::ptrdiff_t>((first + n) * 48));
    std::vector<std::int32_t> positions(n);
    for (std::size_t t = 0; t != n; ++t)
      positions[t] = static_cast<std::int32_t>(2 * (first + t));
    on.rope(matrix(y, 48), positions, table);
    return y;
  });
}

// The experts' rows, their weights and sums.
BOOST_AUTO_TEST_CASE(a_router_gives_a_row_the_same_bits) {
  const std::size_t E = 9, k = 3, D = 21;
  const auto logits = random_values(40 * E, 1);
  const auto x = random_values(40 * k * D, 2); // of each token's choices
  for (const bool normalised : {false, true})
    check_rows(40, up_to(40), [&](auto& on, std::size_t first, std::size_t n) {
      floats p(logits.begin() + static_cast<std::ptrdiff_t>(first * E),
               logits.begin() + static_cast<std::ptrdiff_t>((first + n) * E));
      kernels::routing routes;
      floats weights(n * k), rows(n * k * D), y(n * D), all;
      on.route(routes, weights, matrix(p, E), k, normalised);
      for (std::size_t i = 0; i != n * k; ++i)
        std::copy_n(&x[(first * k + i) * D], D, &rows[routes.token_row[i] * D]);
      const auto& from = rows;
      on.combine(matrix(y, D), matrix(from, D), weights, routes);
      for (std::size_t t = 0; t != n; ++t) {
        all.insert(all.end(), &p[t * E], &p[t * E] + E);
        for (std::size_t j = 0; j != k; ++j)
          all.push_back(weights[routes.token_row[t * k + j]]);
        all.insert(all.end(), &y[t * D], &y[t * D] + D);
      }
      return all;
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
