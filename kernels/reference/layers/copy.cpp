// kernels/reference/layers/copy.cpp -- moves values, and sets them.
#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

void reference_backend::copy(matrix_view<float> to_TD,
                             matrix_view<const float> from_TD) {
  SHOAL_KERNEL_ASSERT(same_shape(to_TD, from_TD));
  for (std::size_t t = 0; t != to_TD.rows; ++t)
    for (std::size_t d = 0; d != to_TD.cols; ++d)
      to_TD(t, d) = from_TD(t, d);
}

void reference_backend::copy(vector_view<float> to_P,
                             vector_view<const float> from_P) {
  SHOAL_KERNEL_ASSERT(to_P.size == from_P.size);
  for (std::size_t p = 0; p != to_P.size; ++p)
    to_P[p] = from_P[p];
}

void reference_backend::fill(vector_view<float> x_P, float value) {
  for (std::size_t p = 0; p != x_P.size; ++p)
    x_P[p] = value;
}

} // namespace shoal::kernels::reference
