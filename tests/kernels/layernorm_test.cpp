// tests/kernels/layernorm_test.cpp -- normalization to mean 0, variance 1.
#include "kernels/reference/layers/layernorm.hpp"
#include "tests/kernels/harness.hpp"

#include <cmath>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(layernorm)

namespace loops = kernels::reference::loops;

namespace {

constexpr float eps = 1e-5f;

outputs norm(kernels::backend& on, std::size_t T, std::size_t D) {
  auto x = random_values(T * D, 1);
  for (auto& value : x)
    value += 3; // a mean that is large against the deviation
  const auto& cx = x;
  const auto w = random_values(D, 2);
  const auto b = random_values(D, 6);
  const auto dy = random_values(T * D, 3);
  floats y(T * D), stats(2 * T), dx(T * D);
  auto dx_added = random_values(T * D, 4);
  auto dw = random_values(D, 5);
  auto db = random_values(D, 7);
  const auto& cstats = stats;
  on.layernorm(matrix(y, D), matrix(stats, T), matrix(cx, D), w, b, eps);
  on.layernorm_input_gradient(matrix(dx, D), matrix(dy, D), matrix(cx, D), w,
                              matrix(cstats, T));
  on.layernorm_input_gradient(matrix(dx_added, D), matrix(dy, D), matrix(cx, D),
                              w, matrix(cstats, T), kernels::into::add);
  on.layernorm_weight_gradient(dw, db, matrix(dy, D), matrix(cx, D),
                               matrix(cstats, T));
  // The statistics of few values cancel to rounding errors that eps alone
  // bounds: their effect is left out where there is one value only.
  return D == 1 ? outputs{y, db} : outputs{y, stats, dx, dx_added, dw, db};
}

template <class Check>
void sweep(Check check) {
  for (std::size_t T : {1, 2, 67, 512})
    for (std::size_t D : {1, 16, 127, 192, 513, 1024})
      BOOST_TEST_CONTEXT("T " << T << " D " << D)
  check([=](auto& on) { return norm(on, T, D); });
}

} // namespace

BOOST_AUTO_TEST_CASE(cpu_matches_reference) {
  sweep([](const call& run) { check_matches_reference(run); });
}

BOOST_AUTO_TEST_CASE(threads_change_no_bit) {
  sweep([](const call& run) { check_threads_change_nothing(run); });
}

BOOST_AUTO_TEST_CASE(rows_have_mean_0_and_variance_1) {
  const auto x = random_values(3 * 64, 1);
  const floats ones(64, 1), zeros(64, 0);
  floats y(3 * 64);
  cpu_fixture fixture;
  fixture.cpu->layernorm(matrix(y, 64), {}, matrix(x, 64), ones, zeros, 1e-9f);
  for (std::size_t t = 0; t != 3; ++t) {
    double sum = 0, squares = 0;
    for (std::size_t d = 0; d != 64; ++d) {
      sum += y[t * 64 + d];
      squares += double{y[t * 64 + d]} * y[t * 64 + d];
    }
    BOOST_TEST(std::abs(sum) < 1e-4);
    BOOST_TEST(std::abs(squares / 64 - 1) < 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(gradients_match_differences) {
  constexpr std::size_t T = 3, D = 7;
  const auto x = random_doubles(T * D, 1), dy = random_doubles(T * D, 3);
  const auto w = random_doubles(D, 2), b = random_doubles(D, 4);
  doubles stats(2 * T), dx(T * D), dw(D), db(D);
  const auto& cstats = stats;
  auto value = [&](const doubles& at, const doubles& weight,
                   const doubles& bias) {
    doubles y(T * D);
    loops::layernorm<double>(matrix(y, D), matrix(stats, T), matrix(at, D),
                             weight, bias, eps);
    return y;
  };
  value(x, w, b); // sets stats
  loops::layernorm_input_gradient<double>(matrix(dx, D), matrix(dy, D),
                                          matrix(x, D), w, matrix(cstats, T),
                                          kernels::into::overwrite);
  loops::layernorm_weight_gradient<double>(dw, db, matrix(dy, D), matrix(x, D),
                                           matrix(cstats, T));
  check_gradient([&](auto& at) { return value(at, w, b); }, x, dy, dx);
  check_gradient([&](auto& at) { return value(x, at, b); }, w, dy, dw);
  check_gradient([&](auto& at) { return value(x, w, at); }, b, dy, db);
}

// Another microbatch beside it, or another stage, must not change a row.
BOOST_AUTO_TEST_CASE(rows_are_independent) {
  constexpr std::size_t T = 37, D = 131;
  cpu_fixture fixture;
  const auto x = random_values(T * D, 1);
  const auto w = random_values(D, 2);
  const auto b = random_values(D, 3);
  floats all(T * D), one(D);
  fixture.cpu->layernorm(matrix(all, D), {}, matrix(x, D), w, b, eps);
  for (std::size_t t = 0; t != T; ++t) {
    fixture.cpu->layernorm(matrix(one, D), {},
                           matrix(x, D).slice_rows(t, t + 1), w, b, eps);
    BOOST_TEST(std::equal(one.begin(), one.end(), all.data() + t * D));
  }
}

BOOST_AUTO_TEST_CASE(may_run_in_place) {
  check_matches_reference([](auto& on) {
    auto x = random_values(5 * 33, 1);
    const auto w = random_values(33, 2);
    const auto b = random_values(33, 3);
    const auto& cx = x;
    on.layernorm(matrix(x, 33), {}, matrix(cx, 33), w, b, eps);
    return outputs{x};
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
