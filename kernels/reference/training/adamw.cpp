// kernels/reference/training/adamw.cpp -- one step, each operation rounded once.
#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

#include <cmath>

namespace shoal::kernels {

namespace {

/// base^exponent by squaring: unlike pow(), the same bits in every C library.
double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1)
      result *= base;
    base *= base;
  }
  return result;
}

} // namespace

adamw_factors make_adamw_factors(const adamw_options& options) {
  SHOAL_KERNEL_ASSERT(options.step >= 1);
  auto bias1 = 1 - power(options.beta1, options.step);
  auto bias2 = 1 - power(options.beta2, options.step);
  adamw_factors f;
  f.decay =
    static_cast<float>(1 - options.learning_rate * options.weight_decay);
  f.one_minus_b1 = static_cast<float>(1 - options.beta1);
  f.b2 = static_cast<float>(options.beta2);
  f.one_minus_b2 = static_cast<float>(1 - options.beta2);
  f.minus_step = static_cast<float>(-(options.learning_rate / bias1));
  f.bias2_sqrt = static_cast<float>(std::sqrt(bias2));
  f.epsilon = static_cast<float>(options.epsilon);
  f.gradient_scale = options.gradient_scale;
  return f;
}

namespace reference {

void reference_backend::adamw(vector_view<float> w_P, vector_view<float> m_P,
                              vector_view<float> v_P,
                              vector_view<const float> g_P,
                              const adamw_options& options) {
  SHOAL_KERNEL_ASSERT(w_P.size == m_P.size && w_P.size == v_P.size
                      && w_P.size == g_P.size);
  auto f = make_adamw_factors(options);
  for (std::size_t i = 0; i != w_P.size; ++i) {
    float g = g_P[i] * f.gradient_scale;
    float w = w_P[i] * f.decay;
    float m = m_P[i] + (g - m_P[i]) * f.one_minus_b1;
    float v = v_P[i] * f.b2 + (f.one_minus_b2 * g) * g;
    float denominator = std::sqrt(v) / f.bias2_sqrt + f.epsilon;
    w_P[i] = w + (f.minus_step * m) / denominator;
    m_P[i] = m;
    v_P[i] = v;
  }
}

} // namespace reference

} // namespace shoal::kernels
