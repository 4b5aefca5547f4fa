// tests/kernels/routing_test.cpp -- tokens to experts and back.
#include "kernels/reference/layers/routing.hpp"
#include "tests/kernels/harness.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <cmath>
#include <numeric>
#include <set>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(routing_suite)

namespace bdata = boost::unit_test::data;
namespace loops = kernels::reference::loops;

namespace {

using kernels::routing;

floats wide_logits(std::size_t count, std::uint64_t seed) {
  auto x = random_values(count, seed);
  for (auto& value : x)
    value *= 4;
  return x;
}

outputs all(kernels::backend& on, std::size_t T, std::size_t E, std::size_t k,
            std::size_t D, bool normalised) {
  auto p = wide_logits(T * E, 1);
  floats weight(T * k);
  routing by;
  on.route(by, weight, matrix(p, E), k, normalised);
  const auto x = random_values(T * k * D, 2);
  const auto dy = random_values(T * D, 3);
  floats y(T * D), plain(T * D), dx(T * k * D), dweight(T * k);
  on.combine(matrix(y, D), matrix(x, D), weight, by);
  on.combine(matrix(plain, D), matrix(x, D), {}, by);
  on.combine_backward(matrix(dx, D), dweight, matrix(dy, D), matrix(x, D),
                      weight, by);
  auto dlogits = p;
  on.route_backward(matrix(dlogits, E), dweight, by, normalised, 0.5f);
  floats order(by.row_token.begin(), by.row_token.end());
  return {p, weight, order, y, plain, dx, dweight, dlogits};
}

template <class Check>
void sweep(Check check) {
  using size = std::pair<std::size_t, std::size_t>; // E, k
  for (std::size_t T : {1, 7, 130})
    for (const auto& of : {size{2, 1}, size{8, 2}, size{8, 8}, size{60, 4}})
      for (std::size_t D : {1, 33, 192})
        for (bool normalised : {false, true})
          BOOST_TEST_CONTEXT("T " << T << " E " << of.first << " k "
                                  << of.second << " D " << D << " normalised "
                                  << normalised)
  check(
    [=](auto& on) { return all(on, T, of.first, of.second, D, normalised); });
}

/// E * sum_e (count[e] / T) * mean_t p[t,e], with the counts of `by`.
template <class Scalar>
double balance_of(const routing& by, const std::vector<Scalar>& p) {
  const auto E = by.experts(), T = by.tokens();
  double sum = 0;
  for (std::size_t e = 0; e != E; ++e) {
    double mean = 0;
    for (std::size_t t = 0; t != T; ++t)
      mean += p[t * E + e] / static_cast<double>(T);
    sum += mean * static_cast<double>(by.rows_of(e)) / static_cast<double>(T);
  }
  return sum * static_cast<double>(E);
}

} // namespace

BOOST_AUTO_TEST_CASE(cpu_matches_reference) {
  sweep([](const call& run) {
    // A single token of normalised weights gives gradients that cancel.
    check_matches_reference(run, 4e-5);
  });
}

BOOST_AUTO_TEST_CASE(threads_change_no_bit) {
  sweep([](const call& run) { check_threads_change_nothing(run); });
}

BOOST_AUTO_TEST_CASE(each_token_gets_its_best_experts_in_order) {
  constexpr std::size_t T = 50, E = 9, k = 3;
  const auto logits = wide_logits(T * E, 5);
  auto p = logits;
  floats weight(T * k);
  routing by;
  cpu_fixture fixture;
  fixture.cpu->route(by, weight, matrix(p, E), k, true);
  BOOST_TEST(by.rows() == T * k);
  BOOST_TEST(by.first_row.front() == 0u);
  BOOST_TEST(by.first_row.back() == T * k);
  std::set<std::uint32_t> rows(by.token_row.begin(), by.token_row.end());
  BOOST_TEST(rows.size() == T * k);
  for (std::size_t t = 0; t != T; ++t) {
    double sum = 0, total = 0;
    float before = 1;
    std::set<std::size_t> chosen;
    for (std::size_t e = 0; e != E; ++e)
      total += p[t * E + e];
    BOOST_TEST(std::abs(total - 1) < 1e-6);
    for (std::size_t j = 0; j != k; ++j) {
      const auto s = by.token_row[t * k + j];
      BOOST_TEST(static_cast<std::size_t>(by.row_token[s]) == t);
      std::size_t e = 0;
      while (by.first_row[e + 1] <= s)
        ++e;
      chosen.insert(e);
      BOOST_TEST(p[t * E + e] <= before);
      before = p[t * E + e];
      sum += weight[s];
    }
    BOOST_TEST(std::abs(sum - 1) < 1e-6);
    for (std::size_t e = 0; e != E; ++e)
      if (!chosen.contains(e))
        BOOST_TEST(p[t * E + e] <= before);
  }
  // Within an expert, tokens come in order.
  for (std::size_t e = 0; e != E; ++e)
    BOOST_TEST(std::is_sorted(
      by.row_token.begin() + static_cast<std::ptrdiff_t>(by.first_row[e]),
      by.row_token.begin() + static_cast<std::ptrdiff_t>(by.first_row[e + 1])));
}

BOOST_AUTO_TEST_CASE(of_equal_experts_the_lower_is_chosen) {
  floats p(2 * 5, 1.0f), weight(4);
  routing by;
  kernels::make_reference_backend()->route(by, weight, matrix(p, 5), 2, false);
  BOOST_TEST(by.rows_of(0) == 2u);
  BOOST_TEST(by.rows_of(1) == 2u);
  BOOST_TEST(weight == floats(4, 0.2f), boost::test_tools::per_element());
}

// The choice is held by distances between the best that no step crosses.
BOOST_DATA_TEST_CASE(gradients_match_differences, bdata::make({false, true}),
                     normalised) {
  constexpr std::size_t T = 4, E = 5, k = 2, D = 3;
  doubles logits(T * E);
  for (std::size_t i = 0; i != logits.size(); ++i)
    logits[i] = 0.3 * static_cast<double>((i * 7) % 5);
  const auto x = random_doubles(T * k * D, 2), dy = random_doubles(T * D, 3);
  routing by;
  doubles p = logits, weight(T * k), dx(T * k * D), dweight(T * k);
  loops::route<double>(by, weight, matrix(p, E), k, normalised);
  loops::combine_backward<double>(matrix(dx, D), dweight, matrix(dy, D),
                                  matrix(x, D), weight, by);
  auto dlogits = p;
  loops::route_backward<double>(matrix(dlogits, E), dweight, by, normalised,
                                0.75f);
  auto value = [&](const doubles& l, const doubles& rows) {
    routing now;
    doubles q = l, w(T * k), y(T * D);
    loops::route<double>(now, w, matrix(q, E), k, normalised);
    BOOST_REQUIRE(now.token_row == by.token_row);
    loops::combine<double>(matrix(y, D), matrix(rows, D), w, now);
    // One value more: the balance, with 0.75 as its gradient.
    y.push_back(balance_of(now, q));
    return y;
  };
  auto weights = dy;
  weights.push_back(0.75);
  check_gradient([&](auto& at) { return value(at, x); }, logits, weights,
                 dlogits);
  check_gradient([&](auto& at) { return value(logits, at); }, x, weights, dx);
}

BOOST_AUTO_TEST_CASE(an_even_choice_has_the_least_balance) {
  routing even, uneven;
  kernels::sort_rows(even, {0, 1, 2, 3}, 1, 4);
  kernels::sort_rows(uneven, {0, 0, 0, 1}, 1, 4);
  const floats flat(16, 0.25f);
  floats steep;
  for (int t = 0; t != 4; ++t)
    steep.insert(steep.end(), {0.7f, 0.1f, 0.1f, 0.1f});
  BOOST_TEST(std::abs(balance_of(even, flat) - 1) < 1e-6);
  BOOST_TEST(balance_of(uneven, steep) > 2);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
