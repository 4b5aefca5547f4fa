// kernels/common/check.hpp -- aborts when a kernel is called with shapes that do not
// agree. Private to kernels/: include it from .cpp files only.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// Prints the violated condition and its place, and aborts.
[[noreturn]] void
check_failed(const char* condition, const char* file, int line) noexcept;

inline bool same_shape(matrix_view<const float> a, matrix_view<const float> b) {
  return a.rows == b.rows && a.cols == b.cols;
}

inline bool
has_shape(matrix_view<const float> x, std::size_t rows, std::size_t cols) {
  return x.rows == rows && x.cols == cols;
}

} // namespace shoal::kernels

#define SHOAL_KERNEL_ASSERT(condition)                                         \
  ((condition)                                                                 \
     ? static_cast<void>(0)                                                    \
     : ::shoal::kernels::check_failed(#condition, __FILE__, __LINE__))
