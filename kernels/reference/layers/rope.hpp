// kernels/reference/layers/rope.hpp -- rotation of pairs (i, i + H/2).
//
// Of floats for the backend, which checks shapes; of doubles for the test that
// compares gradients with differences. Private to kernels/reference.
#pragma once

#include "kernels/layers/rope.hpp"

namespace shoal::kernels::reference::loops {

/// `direction` is 1 for the rotation and -1 for its inverse, which a gradient
/// takes. @pre all positions are in the table
template <class Scalar>
void rotate(matrix_view<Scalar> x_TNH,
            vector_view<const std::int32_t> positions_T,
            const rope_table& table, float direction) {
  auto half = table.head_size / 2;
  for (std::size_t t = 0; t != x_TNH.rows; ++t) {
    auto p = static_cast<std::size_t>(positions_T[t]);
    for (std::size_t h = 0; h != x_TNH.cols; h += table.head_size)
      for (std::size_t i = 0; i != half; ++i) {
        auto cos = table.cos_PH2[p * half + i];
        auto sin = table.sin_PH2[p * half + i] * direction;
        auto a = x_TNH(t, h + i);
        auto b = x_TNH(t, h + half + i);
        x_TNH(t, h + i) = a * cos - b * sin;
        x_TNH(t, h + half + i) = b * cos + a * sin;
      }
  }
}

} // namespace shoal::kernels::reference::loops
