// tests/kernels/matmul_test.cpp -- the three products.
//
// Goal: right for any shape and stride, and the same bits for any number of
// threads, most of all for small outputs with a large depth, where oneDNN
// would split the sum.
#include "kernels/cpu/isa/features.hpp"
#include "kernels/reference/layers/matmul.hpp"
#include "tests/kernels/harness.hpp"

#include <boost/test/data/test_case.hpp>

#include <cstring>
#include <ostream>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(matmul)

namespace loops = kernels::reference::loops;

namespace {

struct product {
  std::size_t T, I, O;
};

std::ostream& operator<<(std::ostream& out, const product& p) {
  return out << "T " << p.T << " I " << p.I << " O " << p.O;
}

const product shapes[] = {
  {1, 1, 1},       {1, 7, 3},       {3, 1, 5},       {5, 3, 1},
  {2, 17, 31},     {13, 64, 64},    {64, 64, 64},    {65, 129, 127},
  {97, 101, 103},  {1, 512, 509},   {1, 192, 2000},  {256, 192, 192},
  {128, 192, 512}, {300, 257, 131}, {33, 512, 1408},
};

/// One of each kind of the above, for what differs from floats in packing and
/// instructions only: 1, odd, prime, sizes of models, more than one block.
const product rounded_shapes[] = {
  {1, 1, 1},      {1, 7, 3},     {3, 1, 5},      {2, 17, 31},     {64, 64, 64},
  {97, 101, 103}, {1, 512, 509}, {65, 129, 127}, {33, 512, 1408},
};

/// Of GPT-2 of 124M and of a Llama of 1.1B, of a few tokens.
const product real_shapes[] = {
  {5, 768, 2304}, {3, 2048, 5632}, {3, 5632, 2048}};

const product deep_shapes[] = {
  {64, 4096, 64},   {64, 64, 4096}, {4096, 64, 64}, {512, 192, 512},
  {130, 512, 1408}, {1, 4096, 700}, {7, 300, 4099},
};

using kernels::factor_type;

/// Values in [-1, 1) that bf16 holds.
floats random_bf16(std::size_t count, std::uint64_t seed) {
  floats values = random_values(count, seed);
  for (float& value : values)
    value = kernels::to_float(kernels::to_bf16(value));
  return values;
}

using maker = floats (*)(std::size_t, std::uint64_t);

outputs
products(kernels::backend& on, const product& p,
         factor_type factors = factor_type::f32, maker make = random_values) {
  auto x = make(p.T * p.I, 1);
  auto w = make(p.O * p.I, 2);
  auto dy = make(p.T * p.O, 3);
  const auto order = kernels::weight_order::out_in;
  auto y = random_values(p.T * p.O, 4);
  auto dx = random_values(p.T * p.I, 5);
  auto dx_added = dx;
  auto dw = random_values(p.O * p.I, 6);
  const auto &cx = x, &cw = w, &cdy = dy;
  on.matmul(matrix(y, p.O), matrix(cx, p.I), matrix(cw, p.I), {}, order,
            factors);
  on.matmul_input_gradient(matrix(dx, p.I), matrix(cdy, p.O), matrix(cw, p.I),
                           kernels::into::overwrite, order, factors);
  on.matmul_input_gradient(matrix(dx_added, p.I), matrix(cdy, p.O),
                           matrix(cw, p.I), kernels::into::add, order, factors);
  on.matmul_weight_gradient(matrix(dw, p.I), matrix(cdy, p.O), matrix(cx, p.I),
                            order, factors);
  return {y, dx, dx_added, dw};
}

/// The same with a bias and a weight that lies the other way round, whose
/// rows are longer than the view.
outputs in_out_products(kernels::backend& on, const product& p,
                        factor_type factors = factor_type::f32,
                        maker make = random_values) {
  const auto order = kernels::weight_order::in_out;
  const auto x = make(p.T * p.I, 1);
  const auto w = make(p.I * (p.O + 3), 2);
  const auto dy = make(p.T * p.O, 3);
  const auto bias = random_values(p.O, 7);
  auto y = random_values(p.T * p.O, 4);
  auto dx = random_values(p.T * p.I, 5);
  auto dx_added = dx;
  auto dw = random_values(p.I * (p.O + 3), 6);
  auto db = random_values(p.O, 8);
  const auto w_IO = matrix(w, p.O + 3).slice_cols(2, 2 + p.O);
  on.matmul(matrix(y, p.O), matrix(x, p.I), w_IO, bias, order, factors);
  on.matmul_input_gradient(matrix(dx, p.I), matrix(dy, p.O), w_IO,
                           kernels::into::overwrite, order, factors);
  on.matmul_input_gradient(matrix(dx_added, p.I), matrix(dy, p.O), w_IO,
                           kernels::into::add, order, factors);
  on.matmul_weight_gradient(matrix(dw, p.O + 3).slice_cols(2, 2 + p.O),
                            matrix(dy, p.O), matrix(x, p.I), order, factors);
  on.bias_gradient(db, matrix(dy, p.O));
  return {y, dx, dx_added, dw, db};
}

} // namespace

BOOST_DATA_TEST_CASE(a_turned_weight_with_bias_matches_reference, shapes,
                     shape) {
  check_matches_reference([&](auto& on) { return in_out_products(on, shape); });
}

BOOST_DATA_TEST_CASE(threads_change_no_bit_of_a_turned_weight, shapes, shape) {
  check_threads_change_nothing(
    [&](auto& on) { return in_out_products(on, shape); });
}

// Both orders of the same weight: a slip in the oracle would show here.
BOOST_AUTO_TEST_CASE(a_transposed_weight_gives_the_same) {
  const auto reference = kernels::make_reference_backend();
  const floats x{1, 2, 3, 4, 5, 6}, w{1, 10, 100, 2, 20, 200};
  const floats turned{1, 2, 10, 20, 100, 200}, bias{0.5f, 0.25f};
  floats y(4), z(4);
  reference->matmul(matrix(y, 2), matrix(x, 3), matrix(w, 3), bias);
  reference->matmul(matrix(z, 2), matrix(x, 3), matrix(turned, 2), bias,
                    kernels::weight_order::in_out);
  BOOST_TEST(y == (floats{321.5f, 642.25f, 654.5f, 1308.25f}),
             boost::test_tools::per_element());
  BOOST_TEST(y == z, boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(gradients_match_differences,
                     boost::unit_test::data::make({false, true}), turned) {
  constexpr std::size_t T = 3, I = 5, O = 4;
  const auto order =
    turned ? kernels::weight_order::in_out : kernels::weight_order::out_in;
  const auto cols = turned ? O : I;
  const loops::rounding none{factor_type::f32};
  const auto x = random_doubles(T * I, 1), w = random_doubles(O * I, 2);
  const auto dy = random_doubles(T * O, 3), bias = random_doubles(O, 4);
  doubles dx(x.size()), dw(w.size()), db(O);
  loops::matmul_input_gradient<double>(matrix(dx, I), matrix(dy, O),
                                       {matrix(w, cols), order},
                                       kernels::into::overwrite, none);
  loops::matmul_weight_gradient<double>({matrix(dw, cols), order},
                                        matrix(dy, O), matrix(x, I), none);
  loops::bias_gradient<double>(db, matrix(dy, O));
  auto value = [&](const doubles& a, const doubles& b, const doubles& c) {
    doubles y(T * O);
    loops::matmul<double>(matrix(y, O), matrix(a, I), {matrix(b, cols), order},
                          c, none);
    return y;
  };
  check_gradient([&](auto& at) { return value(at, w, bias); }, x, dy, dx);
  check_gradient([&](auto& at) { return value(x, at, bias); }, w, dy, dw);
  check_gradient([&](auto& at) { return value(x, w, at); }, bias, dy, db);
}

BOOST_DATA_TEST_CASE(cpu_matches_reference, shapes, shape) {
  check_matches_reference([&](auto& on) { return products(on, shape); });
}

BOOST_DATA_TEST_CASE(cpu_matches_reference_on_real_shapes, real_shapes, shape) {
  check_matches_reference([&](auto& on) { return products(on, shape); });
}

BOOST_DATA_TEST_CASE(threads_change_no_bit, shapes, shape) {
  check_threads_change_nothing([&](auto& on) { return products(on, shape); });
}

BOOST_DATA_TEST_CASE(threads_change_no_bit_of_deep_sums, deep_shapes, shape) {
  check_threads_change_nothing([&](auto& on) { return products(on, shape); });
}

// Rounds nothing away, so that every instruction set must give the products of
// floats: with bf16 instructions and, on processors without, as floats.
BOOST_DATA_TEST_CASE(factors_that_bf16_holds_match_reference, rounded_shapes,
                     shape) {
  check_matches_reference([&](auto& on) {
    return products(on, shape, factor_type::bf16, random_bf16);
  });
  check_matches_reference([&](auto& on) {
    return in_out_products(on, shape, factor_type::bf16, random_bf16);
  });
}

// Each factor is off by at most 2^-9 of itself, so a product by 2^-8; values
// in [-1, 1) have sums whose largest is at least about their usual size.
BOOST_DATA_TEST_CASE(rounded_factors_match_those_of_reference, rounded_shapes,
                     shape) {
  check_matches_reference(
    [&](auto& on) { return products(on, shape, factor_type::bf16); }, 0x1p-7);
  check_matches_reference(
    [&](auto& on) { return in_out_products(on, shape, factor_type::bf16); },
    0x1p-7);
}

// AMX, the dot products of AVX-512 and reference round alike.
BOOST_AUTO_TEST_CASE(bf16_instructions_round_as_reference_does) {
  if (!kernels::cpu::usable_features().bf16) {
    BOOST_TEST_MESSAGE("skipped: no bf16 instructions here");
    return;
  }
  const auto reference = kernels::make_reference_backend();
  const product shape{65, 129, 127};
  const auto expected = products(*reference, shape, factor_type::bf16);
  const auto all = kernels::cpu::usable_features();
  auto without = all;
  without.amx = false;
  for (const auto& limit : {all, without}) {
    kernels::cpu::limit_features(limit);
    cpu_fixture fixture;
    const auto got = products(*fixture.cpu, shape, factor_type::bf16);
    for (std::size_t i = 0; i != expected.size(); ++i)
      BOOST_TEST(relative_difference(got[i], expected[i]) < float_tolerance);
  }
  kernels::cpu::limit_features(all);
}

BOOST_DATA_TEST_CASE(threads_change_no_bit_of_bf16, deep_shapes, shape) {
  check_threads_change_nothing(
    [&](auto& on) { return products(on, shape, factor_type::bf16); });
}

// The memory of the same tensor lies elsewhere on another peer.
BOOST_AUTO_TEST_CASE(alignment_changes_no_bit) {
  cpu_fixture fixture;
  for (auto shape : {product{64, 192, 192}, product{33, 100, 70},
                     product{1, 512, 200}, product{256, 512, 96}}) {
    BOOST_TEST_CONTEXT(shape) {
      auto x = random_values(shape.T * shape.I, 1);
      auto w = random_values(shape.O * shape.I, 2);
      floats expected(shape.T * shape.O);
      for (std::size_t shift = 0; shift != 17; ++shift) {
        floats xs(shift), ws(3 * shift), y(expected.size() + 5 * shift);
        xs.insert(xs.end(), x.begin(), x.end());
        ws.insert(ws.end(), w.begin(), w.end());
        fixture.cpu->matmul({y.data() + 5 * shift, shape.T, shape.O},
                            {xs.data() + shift, shape.T, shape.I},
                            {ws.data() + 3 * shift, shape.O, shape.I});
        y.erase(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(5 * shift));
        if (shift == 0)
          expected = y;
        BOOST_TEST(std::memcmp(y.data(), expected.data(), y.size() * 4) == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(views_with_strides_leave_the_gaps_alone) {
  check_matches_reference([](auto& on) {
    auto x = random_values(19 * 40, 1);
    auto w = random_values(23 * 50, 2);
    auto y = random_values(19 * 30, 3);
    on.matmul({y.data() + 2, 19, 23, 30}, {x.data() + 1, 19, 37, 40},
              {w.data() + 3, 23, 37, 50});
    return outputs{y};
  });
}

BOOST_AUTO_TEST_CASE(nothing_to_sum_gives_zero) {
  cpu_fixture fixture;
  floats y{1, 2, 3, 4};
  fixture.cpu->matmul({y.data(), 2, 2}, {nullptr, 2, 0}, {nullptr, 2, 0});
  BOOST_TEST(y == floats(4, 0.0f), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
