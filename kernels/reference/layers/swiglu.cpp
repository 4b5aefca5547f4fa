// kernels/reference/layers/swiglu.cpp -- the gate of floats.
#include "kernels/reference/layers/swiglu.hpp"

#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

void reference_backend::swiglu(matrix_view<float> y_TF,
                               matrix_view<const float> gate_TF,
                               matrix_view<const float> up_TF) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TF, gate_TF) && same_shape(y_TF, up_TF));
  loops::swiglu<float>(y_TF, gate_TF, up_TF);
}

void reference_backend::swiglu_backward(matrix_view<float> dgate_TF,
                                        matrix_view<float> dup_TF,
                                        matrix_view<const float> dy_TF,
                                        matrix_view<const float> gate_TF,
                                        matrix_view<const float> up_TF,
                                        matrix_view<float> y_TF) {
  SHOAL_KERNEL_ASSERT(same_shape(dgate_TF, gate_TF) && same_shape(dup_TF, up_TF)
                      && same_shape(dy_TF, gate_TF)
                      && same_shape(dy_TF, up_TF));
  SHOAL_KERNEL_ASSERT(y_TF.empty() || same_shape(y_TF, dy_TF));
  loops::swiglu_backward<float>(dgate_TF, dup_TF, dy_TF, gate_TF, up_TF, y_TF);
}

} // namespace shoal::kernels::reference
