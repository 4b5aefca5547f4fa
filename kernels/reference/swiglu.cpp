// kernels/reference/swiglu.cpp -- silu(gate) * up and its gradients.
#include "kernels/check.hpp"
#include "kernels/reference/backend.hpp"

#include <cmath>

namespace shoal::kernels::reference {

void reference_backend::swiglu(matrix_view<float> y_TF,
                               matrix_view<const float> gate_TF,
                               matrix_view<const float> up_TF) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TF, gate_TF) && same_shape(y_TF, up_TF));
  for (std::size_t t = 0; t != y_TF.rows; ++t)
    for (std::size_t f = 0; f != y_TF.cols; ++f) {
      double g = gate_TF(t, f);
      y_TF(t, f) = static_cast<float>(g / (1 + std::exp(-g)) * up_TF(t, f));
    }
}

void reference_backend::swiglu_backward(matrix_view<float> dgate_TF,
                                        matrix_view<float> dup_TF,
                                        matrix_view<const float> dy_TF,
                                        matrix_view<const float> gate_TF,
                                        matrix_view<const float> up_TF) {
  SHOAL_KERNEL_ASSERT(same_shape(dgate_TF, gate_TF) && same_shape(dup_TF, up_TF)
                      && same_shape(dy_TF, gate_TF)
                      && same_shape(dy_TF, up_TF));
  for (std::size_t t = 0; t != dy_TF.rows; ++t)
    for (std::size_t f = 0; f != dy_TF.cols; ++f) {
      double g = gate_TF(t, f), u = up_TF(t, f), dy = dy_TF(t, f);
      auto sigmoid = 1 / (1 + std::exp(-g));
      auto slope = sigmoid * (1 + g * (1 - sigmoid));
      dgate_TF(t, f) = static_cast<float>(dy * u * slope);
      dup_TF(t, f) = static_cast<float>(dy * g * sigmoid);
    }
}

} // namespace shoal::kernels::reference
