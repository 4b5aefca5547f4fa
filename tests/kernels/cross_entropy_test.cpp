// tests/kernels/cross_entropy_test.cpp -- loss and its gradient.
#include "kernels/reference/training/cross_entropy.hpp"
#include "tests/kernels/harness.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <cmath>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(cross_entropy)

namespace loops = kernels::reference::loops;

namespace {

outputs loss(kernels::backend& on, std::size_t T, std::size_t V) {
  auto x = random_values(T * V, 1);
  for (auto& value : x)
    value *= 8;
  auto targets = random_ids(T, -1, static_cast<std::int32_t>(V), 2);
  const auto& cx = x;
  floats losses(T), alone(T), dx(T * V);
  on.cross_entropy(losses, matrix(dx, V), matrix(cx, V), targets, 0.25f);
  on.cross_entropy(alone, {}, matrix(cx, V), targets, 0.25f);
  floats capped(T), alone_capped(T);
  on.cross_entropy(alone_capped, {}, matrix(cx, V), targets, 0.25f, 5.0f);
  on.cross_entropy(capped, matrix(x, V), matrix(cx, V), targets, 0.25f, 5.0f);
  return {losses, alone, dx, capped, alone_capped, x};
}

template <class Check>
void sweep(Check check) {
  for (std::size_t T : {1, 6, 70})
    for (std::size_t V : {1, 3, 64, 257, 1000, 32003})
      if (T < 70 || V < 2000)
        BOOST_TEST_CONTEXT("T " << T << " V " << V)
  check([=](auto& on) { return loss(on, T, V); });
}

} // namespace

BOOST_AUTO_TEST_CASE(cpu_matches_reference) {
  sweep([](const call& run) { check_matches_reference(run); });
}

BOOST_AUTO_TEST_CASE(threads_change_no_bit) {
  sweep([](const call& run) { check_threads_change_nothing(run); });
}

BOOST_AUTO_TEST_CASE(equal_logits_cost_the_log_of_their_number) {
  cpu_fixture fixture;
  const floats x(2 * 50, 3.0f);
  std::vector<kernels::token_id> targets{7, 49};
  floats losses(2);
  fixture.cpu->cross_entropy(losses, {}, matrix(x, 50), targets, 1);
  BOOST_TEST(std::abs(losses[0] - std::log(50.0)) < 1e-5);
  BOOST_TEST(losses[0] == losses[1]);
}

BOOST_AUTO_TEST_CASE(an_ignored_row_costs_nothing) {
  cpu_fixture fixture;
  auto x = random_values(3 * 9, 1);
  std::vector<kernels::token_id> targets{2, -1, 5};
  floats losses(3, 7.0f);
  const auto& cx = x;
  fixture.cpu->cross_entropy(losses, matrix(x, 9), matrix(cx, 9), targets, 1);
  BOOST_TEST(losses[1] == 0);
  BOOST_TEST(losses[0] > 0);
  BOOST_TEST(std::all_of(x.begin() + 9, x.begin() + 18,
                         [](float value) { return value == 0; }));
}

BOOST_DATA_TEST_CASE(gradient_matches_differences,
                     boost::unit_test::data::make({0.0f, 2.0f}), softcap) {
  constexpr std::size_t T = 3, V = 6;
  auto x = random_doubles(T * V, 1);
  for (auto& value : x)
    value *= 3;
  const std::vector<kernels::token_id> targets{5, -1, 0};
  doubles losses(T), dx(T * V);
  const auto& cx = x;
  loops::cross_entropy<double>(losses, matrix(dx, V), matrix(cx, V), targets,
                               0.5f, softcap);
  check_gradient(
    [&](auto& at) {
      doubles value(T);
      loops::cross_entropy<double>(value, {}, matrix(at, V), targets, 0.5f,
                                   softcap);
      return value;
    },
    x, doubles(T, 0.5), dx);
}

BOOST_AUTO_TEST_CASE(a_soft_cap_bounds_any_logit) {
  check_matches_reference([](auto& on) {
    floats x{1e4f, -1e4f, 0, 3e4f, 3e4f, -3e38f};
    std::vector<kernels::token_id> targets{1, 0};
    floats losses(2);
    const auto& cx = x;
    on.cross_entropy(losses, matrix(x, 3), matrix(cx, 3), targets, 1, 30);
    return outputs{losses, x};
  });
}

BOOST_AUTO_TEST_CASE(large_logits_do_not_overflow) {
  check_matches_reference([](auto& on) {
    const floats x{1e4f, -1e4f, 0, 3e4f, 3e4f, -3e38f};
    std::vector<kernels::token_id> targets{1, 0};
    floats losses(2), dx(6);
    on.cross_entropy(losses, matrix(dx, 3), matrix(x, 3), targets, 1);
    return outputs{losses, dx};
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
