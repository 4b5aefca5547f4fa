// tests/kernels/copy_test.cpp -- values are moved and set, and no others.
#include "tests/kernels/harness.hpp"

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(copy)

namespace {

/// The middle columns of one matrix are written to those of another.
outputs moved(kernels::backend& on, std::size_t T, std::size_t D) {
  auto from = random_values(T * (D + 3), 1);
  auto to = random_values(T * (D + 2), 2);
  on.copy(matrix(to, D + 2).slice_cols(1, D + 1),
          matrix(from, D + 3).slice_cols(2, D + 2));
  auto flat = random_values(T * D, 3);
  auto whole = random_values(T * D, 4);
  on.copy(whole, flat);
  on.fill(flat, 2.5f);
  return {to, whole, flat};
}

} // namespace

BOOST_AUTO_TEST_CASE(cpu_equals_reference_and_threads_change_no_bit) {
  for (std::size_t T : {1, 3, 257})
    for (std::size_t D : {1, 15, 16, 513})
      BOOST_TEST_CONTEXT("T " << T << " D " << D) {
        auto run = [=](auto& on) { return moved(on, T, D); };
        check_equals_reference(run);
        check_threads_change_nothing(run);
      }
}

BOOST_AUTO_TEST_CASE(what_is_copied_is_there_and_the_rest_stays) {
  const auto reference = kernels::make_reference_backend();
  constexpr std::size_t T = 5, D = 7;
  const auto got = moved(*reference, T, D);
  const auto from = random_values(T * (D + 3), 1);
  const auto before = random_values(T * (D + 2), 2);
  for (std::size_t t = 0; t != T; ++t)
    for (std::size_t d = 0; d != D + 2; ++d)
      BOOST_TEST(got[0][t * (D + 2) + d]
                 == (d == 0 || d == D + 1 ? before[t * (D + 2) + d]
                                          : from[t * (D + 3) + d + 1]));
  BOOST_TEST(got[1] == random_values(T * D, 3),
             boost::test_tools::per_element());
  for (const float x : got[2])
    BOOST_TEST(x == 2.5f);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
