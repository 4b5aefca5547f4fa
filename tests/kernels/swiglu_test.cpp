// tests/kernels/swiglu_test.cpp -- the gate of the MLP.
#include "kernels/reference/layers/swiglu.hpp"
#include "tests/kernels/harness.hpp"

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(swiglu)

namespace loops = kernels::reference::loops;

namespace {

outputs gate(kernels::backend& on, std::size_t T, std::size_t F) {
  auto g = random_values(T * F, 1);
  for (auto& x : g)
    x *= 12; // reaches both ends of the sigmoid
  const auto cg = g;
  const auto u = random_values(T * F, 2);
  const auto dy = random_values(T * F, 3);
  floats y(T * F), dg(T * F), du(T * F);
  on.swiglu(matrix(y, F), matrix(cg, F), matrix(u, F));
  on.swiglu_backward(matrix(dg, F), matrix(du, F), matrix(dy, F), matrix(cg, F),
                     matrix(u, F));
  return {y, dg, du};
}

template <class Check>
void sweep(Check check) {
  for (std::size_t T : {1, 7, 130})
    for (std::size_t F : {1, 5, 64, 129, 1408})
      BOOST_TEST_CONTEXT("T " << T << " F " << F)
  check([=](auto& on) { return gate(on, T, F); });
}

} // namespace

BOOST_AUTO_TEST_CASE(cpu_matches_reference) {
  sweep([](const call& run) { check_matches_reference(run); });
}

BOOST_AUTO_TEST_CASE(threads_change_no_bit) {
  sweep([](const call& run) { check_threads_change_nothing(run); });
}

BOOST_AUTO_TEST_CASE(the_value_again_takes_the_place_of_its_gradient) {
  for (std::size_t F : {1, 33, 130}) {
    for_each_backend([&](kernels::backend& on) {
      const auto g = random_values(5 * F, 1), u = random_values(5 * F, 2);
      const auto dy = random_values(5 * F, 3);
      floats y(5 * F), dg(5 * F), du(5 * F), again = dy, ag = g, au = u;
      on.swiglu(matrix(y, F), matrix(g, F), matrix(u, F));
      on.swiglu_backward(matrix(dg, F), matrix(du, F), matrix(dy, F),
                         matrix(g, F), matrix(u, F));
      on.swiglu_backward(matrix(ag, F), matrix(au, F), matrix(again, F),
                         matrix(ag, F), matrix(au, F), matrix(again, F));
      BOOST_TEST(relative_difference(again, y) <= 2e-7);
      BOOST_TEST((ag == dg && au == du));
    });
  }
}

BOOST_AUTO_TEST_CASE(gradients_match_differences) {
  const auto g = random_doubles(15, 1), u = random_doubles(15, 2);
  const auto dy = random_doubles(15, 3);
  doubles dg(15), du(15);
  loops::swiglu_backward<double>(matrix(dg, 5), matrix(du, 5), matrix(dy, 5),
                                 matrix(g, 5), matrix(u, 5));
  auto value = [](const doubles& g, const doubles& u) {
    doubles y(15);
    loops::swiglu<double>(matrix(y, 5), matrix(g, 5), matrix(u, 5));
    return y;
  };
  check_gradient([&](auto& at) { return value(at, u); }, g, dy, dg);
  check_gradient([&](auto& at) { return value(g, at); }, u, dy, du);
}

BOOST_AUTO_TEST_CASE(far_ends_stay_finite) {
  check_matches_reference([](auto& on) {
    const floats g{-1e30f, -200, -90, -88, 0, 88, 200, 1e30f};
    const floats u(8, 1);
    floats y(8), dg(8), du(8);
    on.swiglu(matrix(y, 8), matrix(g, 8), matrix(u, 8));
    on.swiglu_backward(matrix(dg, 8), matrix(du, 8), matrix(u, 8), matrix(g, 8),
                       matrix(u, 8));
    y.pop_back(); // the last would hide all others in a relative measure
    return outputs{y, dg};
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
