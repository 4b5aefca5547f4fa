// kernels/reference/layers/gelu.cpp -- both forms, of floats.
#include "kernels/reference/layers/gelu.hpp"

#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

void reference_backend::gelu(matrix_view<float> y_TF,
                             matrix_view<const float> x_TF, gelu_form form) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TF, x_TF));
  loops::gelu<float>(y_TF, x_TF, form);
}

void reference_backend::gelu_backward(matrix_view<float> dx_TF,
                                      matrix_view<const float> dy_TF,
                                      matrix_view<const float> x_TF,
                                      gelu_form form, matrix_view<float> y_TF) {
  SHOAL_KERNEL_ASSERT(same_shape(dx_TF, x_TF) && same_shape(dy_TF, x_TF));
  SHOAL_KERNEL_ASSERT(y_TF.empty() || same_shape(y_TF, dy_TF));
  loops::gelu_backward<float>(dx_TF, dy_TF, x_TF, form, y_TF);
}

void reference_backend::geglu(matrix_view<float> y_TF,
                              matrix_view<const float> gate_TF,
                              matrix_view<const float> up_TF, gelu_form form) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TF, gate_TF) && same_shape(y_TF, up_TF));
  loops::geglu<float>(y_TF, gate_TF, up_TF, form);
}

void reference_backend::geglu_backward(
  matrix_view<float> dgate_TF, matrix_view<float> dup_TF,
  matrix_view<const float> dy_TF, matrix_view<const float> gate_TF,
  matrix_view<const float> up_TF, gelu_form form, matrix_view<float> y_TF) {
  SHOAL_KERNEL_ASSERT(same_shape(dgate_TF, gate_TF) && same_shape(dup_TF, up_TF)
                      && same_shape(dy_TF, gate_TF)
                      && same_shape(dy_TF, up_TF));
  SHOAL_KERNEL_ASSERT(y_TF.empty() || same_shape(y_TF, dy_TF));
  loops::geglu_backward<float>(dgate_TF, dup_TF, dy_TF, gate_TF, up_TF, form,
                               y_TF);
}

} // namespace shoal::kernels::reference
