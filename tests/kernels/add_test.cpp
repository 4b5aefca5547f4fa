// tests/kernels/add_test.cpp -- sums of two arrays.
#include "tests/kernels/harness.hpp"

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(add)

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

outputs both(kernels::backend& on, std::size_t P) {
  auto a = random_values(P, 1);
  auto b = random_values(P, 2);
  on.add_both(a, b);
  floats before = a;
  on.fill(a, 0);
  return {before, a, b};
}

} // namespace

BOOST_AUTO_TEST_CASE(both_get_the_sum_and_nothing_is_left) {
  for (std::size_t P : {0, 1, 15, 16, 513, 40000}) {
    auto run = [=](auto& on) { return both(on, P); };
    check_equals_reference(run);
    check_threads_change_nothing(run);
    const auto reference = kernels::make_reference_backend();
    const auto got = both(*reference, P);
    const auto a = random_values(P, 1), b = random_values(P, 2);
    for (std::size_t p = 0; p != P; ++p)
      BOOST_REQUIRE(got[0][p] == a[p] + b[p] && got[1][p] == 0
                    && got[2][p] == got[0][p]);
  }
}

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
