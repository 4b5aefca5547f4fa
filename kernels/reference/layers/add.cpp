// kernels/reference/layers/add.cpp -- sums of two arrays.
#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

void reference_backend::add(matrix_view<float> y_TD,
                            matrix_view<const float> a_TD,
                            matrix_view<const float> b_TD) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TD, a_TD) && same_shape(y_TD, b_TD));
  for (std::size_t t = 0; t != y_TD.rows; ++t)
    for (std::size_t d = 0; d != y_TD.cols; ++d)
      y_TD(t, d) = a_TD(t, d) + b_TD(t, d);
}

void reference_backend::add_both(vector_view<float> a_P,
                                 vector_view<float> b_P) {
  SHOAL_KERNEL_ASSERT(a_P.size == b_P.size);
  for (std::size_t p = 0; p != a_P.size; ++p)
    a_P[p] = b_P[p] = a_P[p] + b_P[p];
}

} // namespace shoal::kernels::reference
