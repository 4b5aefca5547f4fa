// tests/kernels/scale_test.cpp -- functions of single values, in place.
#include "tests/kernels/harness.hpp"

#include <cmath>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(scale)

namespace {

template <class Check>
void sweep(Check check) {
  for (std::size_t T : {1, 7, 130})
    for (std::size_t D : {1, 5, 64, 129, 1408})
      BOOST_TEST_CONTEXT("T " << T << " D " << D)
  check(T, D);
}

outputs scaled(kernels::backend& on, std::size_t T, std::size_t D) {
  auto x = random_values(T * D, 1);
  on.scale(matrix(x, D), 33.941124f);
  return {x};
}

outputs capped(kernels::backend& on, std::size_t T, std::size_t D) {
  auto x = random_values(T * D, 1);
  for (auto& value : x)
    value *= 90;
  on.softcap(matrix(x, D), 30);
  return {x};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_factor_gives_the_bits_of_reference) {
  sweep([](auto T, auto D) {
    check_equals_reference([=](auto& on) { return scaled(on, T, D); });
    check_threads_change_nothing([=](auto& on) { return scaled(on, T, D); });
  });
}

BOOST_AUTO_TEST_CASE(a_soft_cap_matches_reference) {
  sweep([](auto T, auto D) {
    check_matches_reference([=](auto& on) { return capped(on, T, D); });
    check_threads_change_nothing([=](auto& on) { return capped(on, T, D); });
  });
}

BOOST_AUTO_TEST_CASE(a_soft_cap_bends_large_values_and_leaves_small_ones) {
  floats x{0, 0.001f, -0.001f, 1e30f, -1e30f, 30};
  cpu_fixture fixture;
  fixture.cpu->softcap(matrix(x, 6), 30);
  BOOST_TEST(x[0] == 0);
  BOOST_TEST(std::abs(x[1] - 0.001) < 1e-8);
  BOOST_TEST(x[2] == -x[1]);
  BOOST_TEST(x[3] == 30);
  BOOST_TEST(x[4] == -30);
  BOOST_TEST(std::abs(x[5] - 30 * std::tanh(1.0)) < 1e-4);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
