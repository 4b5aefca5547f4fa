// tests/kernels/add_test.cpp -- the sum of two matrices.
#include "tests/kernels/harness.hpp"

namespace shoal::tests {

namespace {

outputs sum(kernels::backend& on, std::size_t T, std::size_t D) {
  auto a = random_values(T * D, 1);
  const auto b = random_values(T * D, 2);
  floats y(T * D);
  const auto& ca = a;
  on.add(matrix(y, D), matrix(ca, D), matrix(b, D));
  on.add(matrix(a, D), matrix(ca, D), matrix(b, D)); // in place
  return {y, a};
}

} // namespace

BOOST_AUTO_TEST_SUITE(add)

BOOST_AUTO_TEST_CASE(cpu_equals_reference_and_threads_change_no_bit) {
  for (std::size_t T : {1, 3, 257})
    for (std::size_t D : {1, 15, 16, 513})
      BOOST_TEST_CONTEXT("T " << T << " D " << D) {
        auto run = [=](auto& on) { return sum(on, T, D); };
        check_equals_reference(run);
        check_threads_change_nothing(run);
      }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
