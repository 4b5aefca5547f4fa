// tests/kernels/rmsnorm_test.cpp -- root-mean-square normalization.
#include "kernels/reference/layers/rmsnorm.hpp"
#include "tests/kernels/harness.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(rmsnorm)

namespace loops = kernels::reference::loops;

namespace {

constexpr float eps = 1e-5f;

outputs norm(kernels::backend& on, std::size_t T, std::size_t D) {
  auto x = random_values(T * D, 1);
  auto w = random_values(D, 2);
  auto dy = random_values(T * D, 3);
  floats y(T * D), r(T), dx(T * D);
  auto dx_added = random_values(T * D, 4);
  auto dw = random_values(D, 5);
  const auto &cx = x, &cdy = dy;
  on.rmsnorm(matrix(y, D), r, matrix(cx, D), w, eps);
  on.rmsnorm_input_gradient(matrix(dx, D), matrix(cdy, D), matrix(cx, D), w, r);
  on.rmsnorm_input_gradient(matrix(dx_added, D), matrix(cdy, D), matrix(cx, D),
                            w, r, kernels::into::add);
  on.rmsnorm_weight_gradient(dw, matrix(cdy, D), matrix(cx, D), r);
  // Weights that stand for 1 + w, and the same in a second set of outputs.
  floats y1(T * D), dx1(T * D);
  auto dx1_added = random_values(T * D, 6);
  on.rmsnorm(matrix(y1, D), r, matrix(cx, D), w, eps, 1.0f);
  on.rmsnorm_input_gradient(matrix(dx1, D), matrix(cdy, D), matrix(cx, D), w, r,
                            kernels::into::overwrite, 1.0f);
  on.rmsnorm_input_gradient(matrix(dx1_added, D), matrix(cdy, D), matrix(cx, D),
                            w, r, kernels::into::add, 1.0f);
  // The gradient of a single value cancels to rounding errors; the sum in
  // dx_added shows it at the size of dy.
  if (D == 1)
    return {y, r, dx_added, dw, y1, dx1_added};
  return {y, r, dx, dx_added, dw, y1, dx1, dx1_added};
}

template <class Check>
void sweep(Check check) {
  for (std::size_t T : {1, 2, 67, 512})
    for (std::size_t D : {1, 3, 16, 127, 192, 513, 1024})
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

BOOST_DATA_TEST_CASE(gradients_match_differences,
                     boost::unit_test::data::make({0.0f, 1.0f}), offset) {
  constexpr std::size_t T = 3, D = 7;
  const auto x = random_doubles(T * D, 1), w = random_doubles(D, 2);
  const auto dy = random_doubles(T * D, 3);
  doubles r(T), dx(T * D), dw(D);
  auto value = [&](const doubles& at, const doubles& weight) {
    doubles y(T * D);
    loops::rmsnorm<double>(matrix(y, D), r, matrix(at, D), weight, eps, offset);
    return y;
  };
  value(x, w); // sets r
  loops::rmsnorm_input_gradient<double>(matrix(dx, D), matrix(dy, D),
                                        matrix(x, D), w, r,
                                        kernels::into::overwrite, offset);
  loops::rmsnorm_weight_gradient<double>(dw, matrix(dy, D), matrix(x, D), r);
  check_gradient([&](auto& at) { return value(at, w); }, x, dy, dx);
  check_gradient([&](auto& at) { return value(x, at); }, w, dy, dw);
}

BOOST_AUTO_TEST_CASE(an_offset_is_added_to_the_weight) {
  constexpr std::size_t T = 3, D = 7;
  auto reference = kernels::make_reference_backend();
  const auto x = random_values(T * D, 1);
  const auto dy = random_values(T * D, 3);
  auto w = random_values(D, 2);
  floats y(T * D), z(T * D), dx(T * D), dz(T * D), r(T);
  reference->rmsnorm(matrix(y, D), r, matrix(x, D), w, eps, 1.0f);
  reference->rmsnorm_input_gradient(matrix(dx, D), matrix(dy, D), matrix(x, D),
                                    w, r, kernels::into::overwrite, 1.0f);
  for (auto& value : w)
    value += 1;
  reference->rmsnorm(matrix(z, D), r, matrix(x, D), w, eps);
  reference->rmsnorm_input_gradient(matrix(dz, D), matrix(dy, D), matrix(x, D),
                                    w, r);
  BOOST_TEST(relative_difference(y, z) <= 1e-7);
  BOOST_TEST(relative_difference(dx, dz) <= 1e-6);
}

// Another microbatch beside it, or another stage, must not change a row.
BOOST_AUTO_TEST_CASE(rows_are_independent) {
  constexpr std::size_t T = 37, D = 131;
  cpu_fixture fixture;
  auto x = random_values(T * D, 1);
  auto w = random_values(D, 2);
  floats all(T * D), one(D);
  const auto& cx = x;
  fixture.cpu->rmsnorm(matrix(all, D), {}, matrix(cx, D), w, eps);
  for (std::size_t t = 0; t != T; ++t) {
    fixture.cpu->rmsnorm(matrix(one, D), {}, matrix(cx, D).slice_rows(t, t + 1),
                         w, eps);
    BOOST_TEST(std::equal(one.begin(), one.end(), all.data() + t * D));
  }
}

BOOST_AUTO_TEST_CASE(may_run_in_place) {
  check_matches_reference([](auto& on) {
    auto x = random_values(5 * 33, 1);
    auto w = random_values(33, 2);
    const auto& cx = x;
    on.rmsnorm(matrix(x, 33), {}, matrix(cx, 33), w, eps);
    return outputs{x};
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
