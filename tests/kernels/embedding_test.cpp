// tests/kernels/embedding_test.cpp -- gather and scatter-add.
#include "tests/kernels/harness.hpp"

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(embedding)

namespace {

outputs gather_and_scatter(kernels::backend& on, std::size_t T, std::size_t V,
                           std::size_t D) {
  auto w = random_values(V * D, 1);
  auto dy = random_values(T * D, 2);
  auto ids = random_ids(T, 0, static_cast<std::int32_t>(V), 3);
  floats y(T * D);
  auto dw = random_values(V * D, 4);
  const auto &cw = w, &cdy = dy;
  on.embedding(matrix(y, D), matrix(cw, D), ids);
  auto sum = dy;
  on.embedding(matrix(sum, D), matrix(cw, D), ids, kernels::into::add);
  on.embedding_weight_gradient(matrix(dw, D), matrix(cdy, D), ids);
  return {y, sum, dw};
}

template <class Check>
void sweep(Check check) {
  for (std::size_t T : {1, 13, 300})
    for (std::size_t V : {1, 7, 259})
      for (std::size_t D : {1, 65, 192, 513})
        BOOST_TEST_CONTEXT("T " << T << " V " << V << " D " << D)
  check([=](auto& on) { return gather_and_scatter(on, T, V, D); });
}

} // namespace

BOOST_AUTO_TEST_CASE(cpu_equals_reference) {
  sweep([](const call& run) { check_equals_reference(run); });
}

BOOST_AUTO_TEST_CASE(threads_change_no_bit) {
  sweep([](const call& run) { check_threads_change_nothing(run); });
}

BOOST_AUTO_TEST_CASE(rows_are_added_where_asked_for) {
  const floats w{1, 2, 10, 20};
  floats y{100, 200, 300, 400};
  std::vector<kernels::token_id> ids{1, 0};
  kernels::make_reference_backend()->embedding(matrix(y, 2), matrix(w, 2), ids,
                                               kernels::into::add);
  BOOST_TEST(y == (floats{110, 220, 301, 402}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_token_that_occurs_twice_gets_both_gradients) {
  floats dw(6), dy{1, 2, 3, 10, 20, 30};
  std::vector<kernels::token_id> ids{1, 1};
  const auto& cdy = dy;
  kernels::make_reference_backend()->embedding_weight_gradient(
    matrix(dw, 3), matrix(cdy, 3), ids);
  BOOST_TEST(dw == (floats{0, 0, 0, 11, 22, 33}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
