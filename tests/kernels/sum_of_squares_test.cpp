// tests/kernels/sum_of_squares_test.cpp -- one order on every backend.
#include "tests/kernels/harness.hpp"

#include <cmath>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(sum_of_squares)

namespace {

/// The double, as two floats that hold its halves exactly enough to compare
/// bits: its float part and the rest.
outputs squares(kernels::backend& on, std::size_t P) {
  auto g = random_values(P, 1);
  for (std::size_t i = 0; i != P; ++i)
    g[i] = std::ldexp(g[i], static_cast<int>(i % 40) - 20);
  auto sum = on.sum_of_squares(g);
  auto high = static_cast<float>(sum);
  auto middle = static_cast<float>(sum - high);
  return {{high, middle, static_cast<float>(sum - high - middle)}};
}

} // namespace

BOOST_AUTO_TEST_CASE(cpu_equals_reference_and_threads_change_no_bit) {
  for (std::size_t P : {0, 1, 7, 8, 9, 4095, 4096, 4097, 300007})
    BOOST_TEST_CONTEXT("P " << P) {
      auto run = [=](auto& on) { return squares(on, P); };
      check_equals_reference(run);
      check_threads_change_nothing(run);
    }
}

BOOST_AUTO_TEST_CASE(squares_of_whole_numbers_are_exact) {
  floats g(10000);
  for (std::size_t i = 0; i != g.size(); ++i)
    g[i] = static_cast<float>(i);
  BOOST_TEST(cpu_fixture{}.cpu->sum_of_squares(g)
             == 9999.0 * 10000.0 * 19999.0 / 6.0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
