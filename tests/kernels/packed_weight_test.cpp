// tests/kernels/packed_weight_test.cpp -- weights in bf16, 8 and 4 bits.
//
// Goal: packing loses no more than the format must; the products of all
// instruction sets are those of the unpacked weights. Activations that are
// exact in 8 bits, and so in bf16, tell wrong sums from rounding: then results
// must agree as those of floats do.
#include "kernels/inference/packed_weight.hpp"
#include "tests/kernels/harness.hpp"

#include <boost/test/data/test_case.hpp>

#include <cmath>
#include <cstring>
#include <ostream>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(packed_weight)

namespace {

using kernels::weight_type;

struct product {
  std::size_t T, I, O;
};

std::ostream& operator<<(std::ostream& out, const product& p) {
  return out << "T " << p.T << " I " << p.I << " O " << p.O;
}

const product shapes[] = {
  {1, 1, 1},      {1, 31, 17},   {2, 33, 5},      {3, 64, 16},
  {4, 65, 47},    {1, 2048, 96}, {5, 97, 101},    {8, 192, 128},
  {9, 127, 31},   {1, 700, 257}, {32, 64, 32},    {33, 130, 70},
  {97, 101, 103}, {16, 576, 48}, {130, 1100, 80}, {520, 96, 300},
};

const weight_type types[] = {weight_type::f32, weight_type::bf16,
                             weight_type::q8, weight_type::q4};

/// Whole numbers of 1/128 with 127/128 in each block of 32.
floats
exact_activations(std::size_t rows, std::size_t cols, std::uint64_t seed) {
  auto ids = random_ids(rows * cols, -127, 128, seed);
  floats x(rows * cols);
  for (std::size_t i = 0; i != x.size(); ++i) {
    const bool first = i % cols % 32 == 0;
    x[i] = static_cast<float>(first ? 127 : ids[i]) / 128;
  }
  return x;
}

kernels::row_reader rows_of(const floats& w, std::size_t cols) {
  return [&w, cols](std::size_t row, float* into) {
    std::copy_n(w.data() + row * cols, cols, into);
  };
}

kernels::packed_weight pack(kernels::backend& on, weight_type type,
                            const floats& w, std::size_t cols) {
  return on.pack_weight(type, w.size() / cols, cols, rows_of(w, cols));
}

floats unpack(const kernels::packed_weight& w) {
  floats out(w.rows() * w.cols());
  for (std::size_t r = 0; r != w.rows(); ++r)
    w.unpack_row(r, {out.data() + r * w.cols(), w.cols()});
  return out;
}

floats
times(kernels::backend& on, const floats& x, const kernels::packed_weight& w) {
  const auto rows = x.size() / w.cols();
  floats y(rows * w.rows(), -1);
  on.packed_matmul(matrix(y, w.rows()), matrix(x, w.cols()), w);
  return y;
}

/// Root of the mean squared error, relative to that of the values.
double error_of(const floats& got, const floats& expected) {
  double error = 0, all = 0;
  for (std::size_t i = 0; i != got.size(); ++i) {
    error += std::pow(double{got[i]} - expected[i], 2);
    all += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(error / all);
}

/// Nearly normal: sums of twelve.
floats normal_values(std::size_t count, std::uint64_t seed) {
  auto parts = random_values(12 * count, seed);
  floats out(count);
  for (std::size_t i = 0; i != parts.size(); ++i)
    out[i / 12] += parts[i] * 0.5f;
  return out;
}

} // namespace

BOOST_DATA_TEST_CASE(cpu_packs_the_bits_of_reference, types, type) {
  using size = std::pair<std::size_t, std::size_t>;
  for (const auto& by :
       {size{1, 1}, size{17, 33}, size{48, 192}, size{31, 500}}) {
    const auto cols = by.second;
    auto w = normal_values(by.first * cols, 7);
    check_equals_reference([&](auto& on) {
      const auto packed = pack(on, type, w, cols);
      floats bytes;
      for (std::size_t i = 0; i != packed.bytes(); ++i)
        bytes.push_back(static_cast<float>(packed.data()[i]));
      return outputs{bytes};
    });
  }
}

BOOST_AUTO_TEST_CASE(types_take_the_bits_that_they_say) {
  auto reference = kernels::make_reference_backend();
  auto w = random_values(128 * 256, 1);
  auto bits = [&](weight_type type) {
    return static_cast<double>(pack(*reference, type, w, 256).bytes()) * 8
           / static_cast<double>(w.size());
  };
  BOOST_TEST(bits(weight_type::f32) == 32);
  BOOST_TEST(bits(weight_type::bf16) == 16);
  BOOST_TEST(bits(weight_type::q8) == 8.5);
  BOOST_TEST(bits(weight_type::q4) == 4.5);
}

BOOST_AUTO_TEST_CASE(normal_values_lose_only_precision_of_the_format) {
  auto reference = kernels::make_reference_backend();
  auto w = normal_values(256 * 512, 3);
  auto error = [&](weight_type type) {
    return error_of(unpack(pack(*reference, type, w, 512)), w);
  };
  BOOST_TEST(error(weight_type::f32) == 0);
  BOOST_TEST(error(weight_type::bf16) < 2e-3);
  BOOST_TEST(error(weight_type::q8) < 6e-3);
  // 0.0745 squared is 0.0055; 16 equal steps would give 0.085.
  BOOST_TEST(error(weight_type::q4) < 0.077);
}

BOOST_AUTO_TEST_CASE(bf16_rounds_to_even) {
  using kernels::to_bf16;
  BOOST_TEST(to_float(to_bf16(1.0f)) == 1.0f);
  BOOST_TEST(to_float(to_bf16(1.0f + 0x1p-8f)) == 1.0f);
  BOOST_TEST(to_float(to_bf16(1.0f + 3 * 0x1p-8f)) == 1.0f + 0x1p-6f);
  BOOST_TEST(to_float(to_bf16(-0x1.ffffp0f)) == -2.0f);
  BOOST_TEST(std::isnan(to_float(to_bf16(NAN))));
  BOOST_TEST(std::isinf(to_float(to_bf16(3.4e38f))));
}

BOOST_AUTO_TEST_CASE(only_blocks_with_nan_or_infinity_become_nan) {
  for (auto bad : {NAN, INFINITY, -INFINITY}) {
    auto w = random_values(20 * 96, 5);
    w[3 * 96 + 40] = bad; // block 1 of row 3
    for (auto type : {weight_type::q8, weight_type::q4})
      check_equals_reference([&](auto& on) {
        auto got = unpack(pack(on, type, w, 96));
        for (std::size_t i = 0; i != got.size(); ++i) {
          const bool poisoned = i >= 3 * 96 + 32 && i < 3 * 96 + 64;
          BOOST_REQUIRE_EQUAL(std::isnan(got[i]), poisoned);
          if (poisoned)
            got[i] = 0; // NaN of any bits
        }
        return outputs{got};
      });
  }
}

BOOST_AUTO_TEST_CASE(tiny_and_zero_blocks_become_zero) {
  auto reference = kernels::make_reference_backend();
  floats w(16 * 64, 1e-35f);
  std::fill_n(w.data(), 64, 0.0f);
  for (auto type : {weight_type::q8, weight_type::q4})
    for (float value : unpack(pack(*reference, type, w, 64)))
      BOOST_REQUIRE_EQUAL(value, 0);
}

BOOST_DATA_TEST_CASE(cpu_matches_reference, types* shapes, type, shape) {
  auto w = normal_values(shape.O * shape.I, 2);
  auto x = exact_activations(shape.T, shape.I, 1);
  for_each_feature([&] {
    check_matches_reference(
      [&](auto& on) {
        return outputs{times(on, x, pack(on, type, w, shape.I))};
      },
      float_tolerance);
  });
}

// Activations as they come are rounded: to 8 bits, of which a block's largest
// is 127, or to bf16.
BOOST_DATA_TEST_CASE(rounded_activations_are_near, types* shapes, type, shape) {
  auto w = normal_values(shape.O * shape.I, 2);
  auto x = random_values(shape.T * shape.I, 1);
  for_each_feature([&] {
    check_matches_reference(
      [&](auto& on) {
        return outputs{times(on, x, pack(on, type, w, shape.I))};
      },
      type == weight_type::f32 ? float_tolerance : 1e-2);
  });
}

BOOST_DATA_TEST_CASE(threads_change_no_bit, types* shapes, type, shape) {
  auto w = normal_values(shape.O * shape.I, 2);
  auto x = random_values(shape.T * shape.I, 1);
  for_each_feature([&] {
    check_threads_change_nothing([&](auto& on) {
      return outputs{times(on, x, pack(on, type, w, shape.I))};
    });
  });
}

BOOST_AUTO_TEST_CASE(activations_that_are_not_numbers_do_not_vanish) {
  for (auto type : types)
    for (std::size_t rows : {1u, 40u})
      for_each_feature([&, type = type] {
        cpu_fixture fixture;
        auto w = normal_values(24 * 70, 2);
        auto x = random_values(rows * 70, 1);
        x[66] = NAN;
        auto y = times(*fixture.cpu, x, pack(*fixture.cpu, type, w, 70));
        for (std::size_t i = 0; i != y.size(); ++i)
          BOOST_REQUIRE_EQUAL(std::isnan(y[i]), i < 24);
      });
}

BOOST_AUTO_TEST_CASE(results_with_strides_leave_the_gaps_alone) {
  for (auto type : types)
    for (std::size_t rows : {2u, 40u})
      for_each_feature([&, type = type] {
        check_matches_reference(
          [&](auto& on) {
            auto w = normal_values(23 * 37, 2);
            auto x = exact_activations(rows, 40, 1);
            auto y = random_values(rows * 30, 3);
            on.packed_matmul({y.data() + 2, rows, 23, 30},
                             {x.data(), rows, 37, 40}, pack(on, type, w, 37));
            return outputs{y};
          },
          float_tolerance);
      });
}

BOOST_AUTO_TEST_CASE(rows_of_an_embedding_are_those_of_the_weight) {
  auto reference = kernels::make_reference_backend();
  auto w = normal_values(40 * 70, 2);
  for (auto type : types) {
    const auto packed = pack(*reference, type, w, 70);
    const auto all = unpack(packed);
    std::vector<std::int32_t> ids{39, 0, 17, 17};
    floats y(ids.size() * 70);
    packed_embedding(matrix(y, 70), packed, ids);
    for (std::size_t t = 0; t != ids.size(); ++t)
      BOOST_TEST(std::memcmp(y.data() + t * 70,
                             all.data() + static_cast<std::size_t>(ids[t]) * 70,
                             70 * sizeof(float))
                 == 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
