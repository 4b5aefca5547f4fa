// tests/kernels/adamw_test.cpp -- the optimizer, to the last bit.
#include "tests/kernels/harness.hpp"

#include <cmath>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(adamw)

namespace {

/// Some steps from random state; gradients of very different sizes.
outputs steps(kernels::backend& on, std::size_t P) {
  auto w = random_values(P, 1);
  floats m(P), v(P);
  for (std::uint64_t step = 1; step != 6; ++step) {
    auto g = random_values(P, 10 + step);
    for (std::size_t i = 0; i != P; ++i)
      g[i] = std::ldexp(g[i], -static_cast<int>(i % 50));
    kernels::adamw_options options;
    options.learning_rate = 3e-4;
    options.beta2 = 0.95;
    options.weight_decay = 0.1;
    options.step = step;
    options.gradient_scale = 0.37f;
    on.adamw(w, m, v, g, options);
  }
  return {w, m, v};
}

} // namespace

BOOST_AUTO_TEST_CASE(cpu_equals_reference_and_threads_change_no_bit) {
  for (std::size_t P : {1, 15, 16, 17, 4099, 100003})
    BOOST_TEST_CONTEXT("P " << P) {
      auto run = [=](auto& on) { return steps(on, P); };
      check_equals_reference(run);
      check_threads_change_nothing(run);
    }
}

// Another cut of the same tensor, as another plan would make it.
BOOST_AUTO_TEST_CASE(slices_give_the_bits_of_the_whole) {
  cpu_fixture fixture;
  auto w = random_values(1001, 1), w_cut = w;
  floats m(1001), v(1001), m_cut(1001), v_cut(1001);
  auto g = random_values(1001, 2);
  kernels::adamw_options options;
  fixture.cpu->adamw(w, m, v, g, options);
  std::size_t cuts[] = {0, 1, 18, 500, 1001};
  for (std::size_t c = 0; c + 1 != std::size(cuts); ++c) {
    auto first = cuts[c], size = cuts[c + 1] - cuts[c];
    fixture.cpu->adamw(
      {w_cut.data() + first, size}, {m_cut.data() + first, size},
      {v_cut.data() + first, size}, {g.data() + first, size}, options);
  }
  BOOST_TEST((w == w_cut && m == m_cut && v == v_cut));
}

BOOST_AUTO_TEST_CASE(the_formula_holds_in_double) {
  floats w{0.5f}, m{0.1f}, v{0.2f}, g{0.3f};
  kernels::adamw_options o;
  o.learning_rate = 0.01;
  o.weight_decay = 0.1;
  o.step = 7;
  o.gradient_scale = 0.5f;
  kernels::make_reference_backend()->adamw(w, m, v, g, o);
  double m1 = 0.9 * 0.1 + 0.1 * 0.15;
  double v1 = 0.999 * 0.2 + 0.001 * 0.15 * 0.15;
  double m_hat = m1 / (1 - std::pow(0.9, 7));
  double v_hat = v1 / (1 - std::pow(0.999, 7));
  double w1 = 0.5 * (1 - 0.01 * 0.1) - 0.01 * m_hat / (std::sqrt(v_hat) + 1e-8);
  BOOST_TEST(std::abs(w[0] - w1) < 1e-7);
  BOOST_TEST(std::abs(m[0] - m1) < 1e-7);
  BOOST_TEST(std::abs(v[0] - v1) < 1e-7);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
