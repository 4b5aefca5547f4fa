// kernels/cpu/layers/copy.cpp -- moves values, and sets them.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#include <algorithm>

namespace shoal::kernels::cpu {

void cpu_backend::copy(matrix_view<float> to_TD,
                       matrix_view<const float> from_TD) {
  SHOAL_KERNEL_ASSERT(same_shape(to_TD, from_TD));
  for_ranges(team_, to_TD.rows, to_TD.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 std::copy_n(from_TD.row(t), from_TD.cols, to_TD.row(t));
             });
}

void cpu_backend::copy(vector_view<float> to_P,
                       vector_view<const float> from_P) {
  SHOAL_KERNEL_ASSERT(to_P.size == from_P.size);
  for_ranges(team_, to_P.size, 1, [&](std::size_t first, std::size_t last) {
    std::copy_n(from_P.data + first, last - first, to_P.data + first);
  });
}

void cpu_backend::fill(vector_view<float> x_P, float value) {
  for_ranges(team_, x_P.size, 1, [&](std::size_t first, std::size_t last) {
    std::fill(x_P.data + first, x_P.data + last, value);
  });
}

} // namespace shoal::kernels::cpu
