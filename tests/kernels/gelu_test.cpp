// tests/kernels/gelu_test.cpp -- both forms, alone and as a gate.
#include "kernels/reference/layers/gelu.hpp"
#include "tests/kernels/harness.hpp"

#include <boost/test/data/test_case.hpp>

#include <cmath>
#include <ostream>

namespace shoal::kernels {

static std::ostream& operator<<(std::ostream& out, gelu_form form) {
  return out << (form == gelu_form::exact ? "exact" : "tanh");
}

} // namespace shoal::kernels

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(gelu)

namespace loops = kernels::reference::loops;

namespace {

using kernels::gelu_form;

const gelu_form forms[] = {gelu_form::exact, gelu_form::tanh};

outputs
all(kernels::backend& on, std::size_t T, std::size_t F, gelu_form form) {
  auto x = random_values(T * F, 1);
  for (auto& value : x)
    value *= 7; // reaches both ends
  x[0] = 2;     // alone, one of them would be all rounding error
  const auto& cx = x;
  const auto u = random_values(T * F, 2);
  const auto dy = random_values(T * F, 3);
  floats y(T * F), dx(T * F), z(T * F), dg(T * F), du(T * F);
  on.gelu(matrix(y, F), matrix(cx, F), form);
  on.gelu_backward(matrix(dx, F), matrix(dy, F), matrix(cx, F), form);
  on.geglu(matrix(z, F), matrix(cx, F), matrix(u, F), form);
  on.geglu_backward(matrix(dg, F), matrix(du, F), matrix(dy, F), matrix(cx, F),
                    matrix(u, F), form);
  return {y, dx, z, dg, du};
}

template <class Check>
void sweep(gelu_form form, Check check) {
  for (std::size_t T : {1, 7, 130})
    for (std::size_t F : {1, 5, 64, 129, 1408})
      BOOST_TEST_CONTEXT("T " << T << " F " << F)
  check([=](auto& on) { return all(on, T, F, form); });
}

} // namespace

BOOST_DATA_TEST_CASE(cpu_matches_reference, forms, form) {
  sweep(form, [](const call& run) { check_matches_reference(run); });
}

BOOST_DATA_TEST_CASE(threads_change_no_bit, forms, form) {
  sweep(form, [](const call& run) { check_threads_change_nothing(run); });
}

BOOST_DATA_TEST_CASE(the_value_again_takes_the_place_of_its_gradient, forms,
                     form) {
  for (std::size_t F : {1, 33, 130}) {
    for_each_backend([&](kernels::backend& on) {
      const auto g = random_values(5 * F, 1), u = random_values(5 * F, 2);
      const auto dy = random_values(5 * F, 3);
      floats y(5 * F), z(5 * F), dx(5 * F), dg(5 * F), du(5 * F);
      floats ay = dy, az = dy, ax = g, ag = g, au = u;
      on.gelu(matrix(y, F), matrix(g, F), form);
      on.gelu_backward(matrix(dx, F), matrix(dy, F), matrix(g, F), form);
      on.gelu_backward(matrix(ax, F), matrix(ay, F), matrix(ax, F), form,
                       matrix(ay, F));
      on.geglu(matrix(z, F), matrix(g, F), matrix(u, F), form);
      on.geglu_backward(matrix(dg, F), matrix(du, F), matrix(dy, F),
                        matrix(g, F), matrix(u, F), form);
      on.geglu_backward(matrix(ag, F), matrix(au, F), matrix(az, F),
                        matrix(ag, F), matrix(au, F), form, matrix(az, F));
      BOOST_TEST(relative_difference(ay, y) <= 2e-7);
      BOOST_TEST(relative_difference(az, z) <= 2e-7);
      BOOST_TEST((ax == dx && ag == dg && au == du));
    });
  }
}

// Values of torch.nn.functional.gelu.
BOOST_AUTO_TEST_CASE(known_values) {
  const auto reference = kernels::make_reference_backend();
  const floats x{-2, -1, -0.5f, 0, 0.5f, 1, 3};
  floats y(7);
  auto check = [&](gelu_form form, const floats& expected) {
    reference->gelu(matrix(y, 7), matrix(x, 7), form);
    BOOST_TEST(relative_difference(y, expected) <= 1e-6);
  };
  check(gelu_form::exact, {-0.04550026f, -0.15865525f, -0.15426877f, 0,
                           0.34573123f, 0.84134475f, 2.99595031f});
  check(gelu_form::tanh, {-0.04540231f, -0.15880801f, -0.15428599f, 0,
                          0.34571401f, 0.84119199f, 2.99636261f});
}

BOOST_DATA_TEST_CASE(gradients_match_differences, forms, form) {
  auto x = random_doubles(15, 1);
  for (auto& value : x)
    value *= 3;
  const auto& g = x;
  const auto u = random_doubles(15, 2), dy = random_doubles(15, 3);
  doubles dx(15), dg(15), du(15);
  loops::gelu_backward<double>(matrix(dx, 5), matrix(dy, 5), matrix(g, 5),
                               form);
  loops::geglu_backward<double>(matrix(dg, 5), matrix(du, 5), matrix(dy, 5),
                                matrix(g, 5), matrix(u, 5), form);
  auto alone = [&](const doubles& at) {
    doubles y(15);
    loops::gelu<double>(matrix(y, 5), matrix(at, 5), form);
    return y;
  };
  auto gated = [&](const doubles& a, const doubles& b) {
    doubles y(15);
    loops::geglu<double>(matrix(y, 5), matrix(a, 5), matrix(b, 5), form);
    return y;
  };
  check_gradient(alone, g, dy, dx);
  check_gradient([&](auto& at) { return gated(at, u); }, g, dy, dg);
  check_gradient([&](auto& at) { return gated(g, at); }, u, dy, du);
}

BOOST_DATA_TEST_CASE(far_ends_stay_finite, forms, form) {
  cpu_fixture fixture;
  floats x{-1e30f, -200, -30, -13, 13, 30, 200, 1e30f};
  const auto& cx = x;
  const floats ones(8, 1);
  floats y(8), dx(8);
  fixture.cpu->gelu(matrix(y, 8), matrix(cx, 8), form);
  fixture.cpu->gelu_backward(matrix(dx, 8), matrix(ones, 8), matrix(cx, 8),
                             form);
  for (std::size_t i = 0; i != 8; ++i) {
    BOOST_TEST(y[i] == (x[i] > 0 ? x[i] : 0));
    BOOST_TEST(std::abs(dx[i] - (x[i] > 0 ? 1 : 0)) < 1e-30);
  }
}

BOOST_DATA_TEST_CASE(may_run_in_place, forms, form) {
  check_matches_reference([&](auto& on) {
    auto x = random_values(5 * 33, 1);
    auto g = x;
    auto u = random_values(5 * 33, 2);
    auto dy = random_values(5 * 33, 3);
    const auto &cx = x, &cg = g, &cu = u, &cdy = dy;
    on.gelu_backward(matrix(dy, 33), matrix(cdy, 33), matrix(cx, 33), form);
    on.gelu(matrix(x, 33), matrix(cx, 33), form);
    on.geglu_backward(matrix(g, 33), matrix(u, 33), matrix(cdy, 33),
                      matrix(cg, 33), matrix(cu, 33), form);
    return outputs{x, dy, g, u};
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
