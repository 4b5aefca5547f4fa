// kernels/cpu/layers/gelu.cpp -- value and slope of both forms.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layers/gelu.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

/// erf(x) to a few ulp: x * P(x^2) / Q(x^2), a minimax fit over [-4, 4],
/// beyond which erf is 1 in single precision. Coefficients: Eigen's
/// (MathFunctionsImpl.h, MPL 2.0), also XLA's.
HWY_INLINE vec erf(tag d, vec x) {
  auto four = hn::Set(d, 4.0f);
  x = hn::Max(hn::Min(x, four), hn::Neg(four));
  auto s = hn::Mul(x, x);
  auto p = hn::Set(d, -2.72614225801306e-10f);
  for (float c :
       {2.77068142495902e-08f, -2.10102402082508e-06f, -5.69250639462346e-05f,
        -7.34990630326855e-04f, -2.95459980854025e-03f, -1.60960333262415e-02f})
    p = hn::MulAdd(p, s, hn::Set(d, c));
  auto q = hn::Set(d, -1.45660718464996e-05f);
  for (float c : {-2.13374055278905e-04f, -1.68282697438203e-03f,
                  -7.37332916720468e-03f, -1.42647390514189e-02f})
    q = hn::MulAdd(q, s, hn::Set(d, c));
  return hn::Div(hn::Mul(x, p), q);
}

struct value_and_slope {
  vec value;
  vec slope;
};

/// For large negative x both are 0, for large positive x they are x and 1: the
/// argument of the second term is clamped where exp and the cube are finite.
HWY_INLINE value_and_slope gelu_at(tag d, vec x, gelu_form form) {
  auto half = hn::Set(d, 0.5f);
  auto one = hn::Set(d, 1.0f);
  auto far = hn::Set(d, 12.0f);
  auto held = hn::Max(hn::Min(x, far), hn::Neg(far));
  if (form == gelu_form::exact) {
    auto phi = hn::MulAdd(
      half, erf(d, hn::Mul(held, hn::Set(d, 0.70710678118654752f))), half);
    auto e = hn::Exp(d, hn::Mul(hn::Mul(held, held), hn::Set(d, -0.5f)));
    auto density = hn::Mul(e, hn::Set(d, 0.39894228040143268f));
    return {hn::Mul(x, phi), hn::MulAdd(held, density, phi)};
  }
  auto cubic = hn::Set(d, 0.044715f);
  auto root = hn::Set(d, 0.79788456080286536f);
  auto square = hn::Mul(held, held);
  auto inner = hn::Mul(root, hn::MulAdd(cubic, square, one));
  auto t = hn::Tanh(d, hn::Mul(inner, held));
  auto phi = hn::MulAdd(half, t, half);
  auto rise = hn::Mul(root, hn::MulAdd(hn::Set(d, 3 * 0.044715f), square, one));
  auto bend =
    hn::Mul(hn::Mul(half, held), hn::Mul(hn::NegMulAdd(t, t, one), rise));
  return {hn::Mul(x, phi), hn::Add(phi, bend)};
}

/// `up` may be null: then it is 1.
void gelu_row(float* y, const float* x, const float* up, std::size_t size,
              gelu_form form) {
  const tag d;
  each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
    auto v = gelu_at(d, load(d, x + i, n), form).value;
    if (up != nullptr)
      v = hn::Mul(v, load(d, up + i, n));
    store(v, d, y + i, n);
  });
}

/// `up` and `dup` may be null, and so may `y`.
void gelu_row_gradient(float* dx, float* dup, float* y, const float* dy,
                       const float* x, const float* up, std::size_t size,
                       gelu_form form) {
  const tag d;
  each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
    auto g = gelu_at(d, load(d, x + i, n), form);
    auto dv = load(d, dy + i, n);
    auto slope = hn::Mul(dv, g.slope);
    auto value = g.value;
    if (up != nullptr) {
      auto u = load(d, up + i, n);
      slope = hn::Mul(slope, u);
      value = hn::Mul(value, u);
    }
    store(slope, d, dx + i, n);
    if (dup != nullptr)
      store(hn::Mul(dv, g.value), d, dup + i, n);
    if (y != nullptr)
      store(value, d, y + i, n);
  });
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(gelu_row);
HWY_EXPORT(gelu_row_gradient);

void cpu_backend::gelu(matrix_view<float> y_TF, matrix_view<const float> x_TF,
                       gelu_form form) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TF, x_TF));
  auto row = HWY_DYNAMIC_DISPATCH(gelu_row);
  for_ranges(team_, y_TF.rows, y_TF.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 row(y_TF.row(t), x_TF.row(t), nullptr, y_TF.cols, form);
             });
}

void cpu_backend::gelu_backward(matrix_view<float> dx_TF,
                                matrix_view<const float> dy_TF,
                                matrix_view<const float> x_TF, gelu_form form,
                                matrix_view<float> y_TF) {
  SHOAL_KERNEL_ASSERT(same_shape(dx_TF, x_TF) && same_shape(dy_TF, x_TF));
  SHOAL_KERNEL_ASSERT(y_TF.empty() || same_shape(y_TF, dy_TF));
  auto row = HWY_DYNAMIC_DISPATCH(gelu_row_gradient);
  for_ranges(
    team_, dy_TF.rows, dy_TF.cols, [&](std::size_t first, std::size_t last) {
      for (auto t = first; t != last; ++t)
        row(dx_TF.row(t), nullptr, y_TF.empty() ? nullptr : y_TF.row(t),
            dy_TF.row(t), x_TF.row(t), nullptr, dy_TF.cols, form);
    });
}

void cpu_backend::geglu(matrix_view<float> y_TF,
                        matrix_view<const float> gate_TF,
                        matrix_view<const float> up_TF, gelu_form form) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TF, gate_TF) && same_shape(y_TF, up_TF));
  auto row = HWY_DYNAMIC_DISPATCH(gelu_row);
  for_ranges(
    team_, y_TF.rows, y_TF.cols, [&](std::size_t first, std::size_t last) {
      for (auto t = first; t != last; ++t)
        row(y_TF.row(t), gate_TF.row(t), up_TF.row(t), y_TF.cols, form);
    });
}

void cpu_backend::geglu_backward(matrix_view<float> dgate_TF,
                                 matrix_view<float> dup_TF,
                                 matrix_view<const float> dy_TF,
                                 matrix_view<const float> gate_TF,
                                 matrix_view<const float> up_TF, gelu_form form,
                                 matrix_view<float> y_TF) {
  SHOAL_KERNEL_ASSERT(same_shape(dgate_TF, gate_TF) && same_shape(dup_TF, up_TF)
                      && same_shape(dy_TF, gate_TF)
                      && same_shape(dy_TF, up_TF));
  SHOAL_KERNEL_ASSERT(y_TF.empty() || same_shape(y_TF, dy_TF));
  auto row = HWY_DYNAMIC_DISPATCH(gelu_row_gradient);
  for_ranges(team_, dy_TF.rows, dy_TF.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 row(dgate_TF.row(t), dup_TF.row(t),
                     y_TF.empty() ? nullptr : y_TF.row(t), dy_TF.row(t),
                     gate_TF.row(t), up_TF.row(t), dy_TF.cols, form);
             });
}

} // namespace shoal::kernels::cpu
#endif
