// tests/kernels/paged_attention_test.cpp -- attention against a cache in pages.
#include "tests/kernels/harness.hpp"
#include "tests/support/kv_memory.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <cmath>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(paged_attention)

using kernels::attention_shape;
using kernels::kv_type;
using kernels::paged_rows;
namespace bdata = boost::unit_test::data;

/// A sequence's rows in a call.
struct piece {
  std::size_t first, rows;
};

namespace {

const kv_type types[] = {kv_type::f32, kv_type::bf16, kv_type::q8};

attention_shape heads_of(std::size_t N, std::size_t K, std::size_t H,
                         std::size_t window = 0, float softcap = 0) {
  return {1, 0, N, K, H, 1 / std::sqrt(static_cast<float>(H)), window, softcap};
}

/// Sequences of unlike lengths: tokens of some, pieces of prompts of others.
const std::vector<piece> mixed = {{300, 1}, {0, 1},   {62, 65}, {15, 3},
                                  {16, 1},  {63, 33}, {0, 17},  {129, 1}};

/// Some sequences in one cache, in scattered pages.
struct paged_call {
  paged_call(kv_type type, std::vector<piece> all, const attention_shape& s)
    : pieces(std::move(all)), shape(s), memory(type, pages_max, s) {
    std::size_t page = 5;
    for (std::size_t i = 0; i != pieces.size(); ++i) {
      const auto positions = pieces[i].first + pieces[i].rows;
      pages.push_back(
        scattered(kv_pages_for(positions), page, page_step, pages_max));
      page += pages.back().size() * page_step;
      q.push_back(random_values(positions * NH(), 3 * i + 1));
      k.push_back(random_values(positions * KH(), 3 * i + 2));
      v.push_back(random_values(positions * KH(), 3 * i + 3));
      shape.tokens += pieces[i].rows;
    }
  }

  std::size_t NH() const { return shape.heads * shape.head_size; }
  std::size_t KH() const { return shape.kv_heads * shape.head_size; }

  /// Rows [first, last) of each sequence, one behind the other.
  template <class Bounds>
  floats joined(const std::vector<floats>& all, std::size_t cols,
                const Bounds& bounds) const {
    floats out;
    for (std::size_t i = 0; i != all.size(); ++i) {
      const auto [first, last] = bounds(pieces[i]);
      out.insert(out.end(), all[i].begin() + std::ptrdiff_t(first * cols),
                 all[i].begin() + std::ptrdiff_t(last * cols));
    }
    return out;
  }

  template <class Bounds>
  void append(kernels::backend& on, const Bounds& bounds) {
    std::vector<paged_rows> rows;
    for (std::size_t i = 0; i != pieces.size(); ++i) {
      const auto [first, last] = bounds(pieces[i]);
      rows.push_back({pages[i], first, last - first});
    }
    const floats keys = joined(k, KH(), bounds),
                 values = joined(v, KH(), bounds);
    on.append_paged(memory.view(), matrix(keys, KH()), matrix(values, KH()),
                    rows);
  }

  /// The outputs of the new rows, after an earlier call with those before.
  floats run(kernels::backend& on) {
    append(on, [](piece p) { return std::pair(std::size_t{0}, p.first); });
    append(on, fresh);
    std::vector<paged_rows> rows;
    for (std::size_t i = 0; i != pieces.size(); ++i)
      rows.push_back({pages[i], pieces[i].first, pieces[i].rows});
    const floats queries = joined(q, NH(), fresh);
    floats o(queries.size());
    on.attention_paged(matrix(o, NH()), matrix(queries, NH()), memory.view(),
                       rows, shape);
    return o;
  }

  static std::pair<std::size_t, std::size_t> fresh(piece p) {
    return {p.first, p.first + p.rows};
  }

  static constexpr std::size_t pages_max = 101, page_step = 37;
  std::vector<piece> pieces;
  attention_shape shape;
  kv_memory memory;
  std::vector<std::vector<kernels::kv_page>> pages;
  std::vector<floats> q, k, v;
};

template <class Check>
void sweep(kv_type type, const Check& check) {
  for (const auto& [N, K] : {std::pair{1, 1}, std::pair{6, 2}, std::pair{4, 4}})
    for (const std::size_t H : {5, 64, 80})
      for (const std::size_t window : {0, 1, 40})
        for (const float softcap : {0.0f, 0.7f}) {
          const auto s =
            heads_of(std::size_t(N), std::size_t(K), H, window, softcap);
          BOOST_TEST_CONTEXT(s) {
            check([=](kernels::backend& on) {
              return outputs{paged_call(type, mixed, s).run(on)};
            });
          }
        }
}

floats as_floats(std::span<const std::byte> bytes) {
  floats out;
  for (const std::byte b : bytes)
    out.push_back(static_cast<float>(b));
  return out;
}

} // namespace

BOOST_DATA_TEST_CASE(cpu_matches_reference, types, type) {
  sweep(type, [](const call& run) { check_matches_reference(run); });
}

BOOST_DATA_TEST_CASE(threads_change_no_bit, types, type) {
  sweep(type, [](const call& run) { check_threads_change_nothing(run); });
}

// Of a model of 1 to 8 billion parameters.
BOOST_DATA_TEST_CASE(cpu_matches_reference_on_real_shapes, types, type) {
  const std::vector<piece> pieces = {{700, 1}, {0, 256}};
  for (const std::size_t H : {64, 128})
    check_matches_reference([&](kernels::backend& on) {
      return outputs{paged_call(type, pieces, heads_of(32, 4, H)).run(on)};
    });
}

BOOST_DATA_TEST_CASE(every_backend_writes_the_same_bytes, types, type) {
  for (const std::size_t H : {1, 32, 33, 80})
    check_equals_reference([&](kernels::backend& on) {
      paged_call c(type, mixed, heads_of(6, 2, H));
      c.k[0][3 * c.KH()] = NAN;
      c.v[1][0] = INFINITY;
      std::fill_n(&c.k[2][0], c.KH(), 1e-38f);
      c.run(on);
      return outputs{as_floats(c.memory.bytes())};
    });
}

BOOST_DATA_TEST_CASE(threads_write_the_same_bytes, types, type) {
  check_threads_change_nothing([&](kernels::backend& on) {
    paged_call c(type, {{0, 700}, {3, 300}}, heads_of(4, 4, 80));
    c.run(on);
    return outputs{as_floats(c.memory.bytes())};
  });
}

BOOST_AUTO_TEST_CASE(smaller_types_give_near_outputs) {
  const auto s = heads_of(6, 2, 64);
  cpu_fixture fixture;
  const floats exact = paged_call(kv_type::f32, mixed, s).run(*fixture.cpu);
  const auto error = [&](kv_type type) {
    return relative_difference(paged_call(type, mixed, s).run(*fixture.cpu),
                               exact);
  };
  BOOST_TEST(error(kv_type::bf16) < 4e-3);
  BOOST_TEST(error(kv_type::bf16) > 1e-5);
  BOOST_TEST(error(kv_type::q8) < 8e-3);
  BOOST_TEST(error(kv_type::q8) > 1e-5);
}

// Against one position the output is its value.
BOOST_DATA_TEST_CASE(values_are_rounded_as_their_type_says, types, type) {
  const auto s = heads_of(1, 1, 80);
  for_each_backend([&](kernels::backend& on) {
    paged_call c(type, {{0, 1}}, s);
    c.v[0][0] = 1.00390625f; // half way between two numbers of bf16
    c.v[0][1] = 1.01171875f;
    const floats o = c.run(on);
    for (std::size_t h = 0; h != 80; ++h) {
      const float v = c.v[0][h];
      if (type == kv_type::f32)
        BOOST_TEST(o[h] == v);
      else if (type == kv_type::bf16)
        BOOST_TEST(o[h] == kernels::to_float(kernels::to_bf16(v)));
      else // half a step of the largest value of a block, at most 1.02
        BOOST_TEST(std::abs(o[h] - v) <= 0.51 * 1.02 / 127);
    }
  });
}

// One value of a head in 32 is much larger, as in the keys of some models: the
// others keep their precision.
BOOST_AUTO_TEST_CASE(a_large_value_spoils_only_its_block) {
  const auto s = heads_of(1, 1, 64);
  const auto output = [&](kv_type type) {
    paged_call c(type, {{40, 1}}, s);
    for (std::size_t j = 0; j != 41; ++j)
      c.v[0][j * 64] = 1000; // of block 0
    const auto o = c.run(*kernels::make_reference_backend());
    return floats(o.begin() + 32, o.end());
  };
  BOOST_TEST(relative_difference(output(kv_type::q8), output(kv_type::f32))
             < 1e-2);
}

BOOST_AUTO_TEST_CASE(a_page_takes_the_bytes_that_its_type_says) {
  using kernels::kv_page_bytes;
  BOOST_TEST(kv_page_bytes(kv_type::f32, 4, 64) == 2 * 4 * 16 * 64 * 4u);
  BOOST_TEST(kv_page_bytes(kv_type::bf16, 4, 64) == 2 * 4 * 16 * 64 * 2u);
  // 8.5 bits a value
  BOOST_TEST(kv_page_bytes(kv_type::q8, 4, 64) == 2 * 4 * 16 * 64 * 17 / 16u);
}

// Neither pages nor what is in them matter where no row of the call sees them.
BOOST_DATA_TEST_CASE(pages_before_the_window_are_not_read, types, type) {
  const auto s = heads_of(4, 2, 16, 20);
  for_each_backend([&](kernels::backend& on) {
    paged_call c(type, {{100, 1}, {90, 40}}, s);
    const floats expected = c.run(on);
    std::vector<paged_rows> rows;
    std::size_t first_seen[] = {81 / 16, 71 / 16};
    for (std::size_t i = 0; i != 2; ++i) {
      std::fill_n(c.pages[i].begin(), first_seen[i], ~kernels::kv_page{0});
      rows.push_back({c.pages[i], c.pieces[i].first, c.pieces[i].rows});
    }
    const floats queries = c.joined(c.q, c.NH(), paged_call::fresh);
    floats o(queries.size());
    on.attention_paged(matrix(o, c.NH()), matrix(queries, c.NH()),
                       c.memory.view(), rows, c.shape);
    BOOST_TEST((o == expected));
  });
}

BOOST_AUTO_TEST_CASE(a_call_without_rows_writes_nothing) {
  for_each_backend([&](kernels::backend& on) {
    const kv_memory memory(kv_type::f32, 1, heads_of(2, 1, 8));
    auto s = heads_of(2, 1, 8);
    on.append_paged(memory.view(), {nullptr, 0, 8}, {nullptr, 0, 8}, {});
    on.attention_paged({nullptr, 0, 16}, {nullptr, 0, 16}, memory.view(), {},
                       s);
    BOOST_TEST(std::ranges::all_of(memory.bytes(),
                                   [](auto b) { return b == std::byte{}; }));
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
