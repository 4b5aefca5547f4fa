// kernels/reference/layers/scale.cpp -- functions of single values, in place.
#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

#include <cmath>

namespace shoal::kernels::reference {

void reference_backend::scale(matrix_view<float> x_TD, float factor) {
  for (std::size_t t = 0; t != x_TD.rows; ++t)
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      x_TD(t, d) *= factor;
}

void reference_backend::softcap(matrix_view<float> x_TD, float cap) {
  SHOAL_KERNEL_ASSERT(cap > 0);
  for (std::size_t t = 0; t != x_TD.rows; ++t)
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      x_TD(t, d) =
        static_cast<float>(cap * std::tanh(double{x_TD(t, d)} / cap));
}

} // namespace shoal::kernels::reference
