// kernels/check.hpp -- aborts when a kernel is called with shapes that do not
// agree. Private to kernels/: include it from .cpp files only.
#pragma once

#include "kernels/paged_attention.hpp"
#include "kernels/tensor.hpp"

namespace shoal::kernels {

/// Prints the violated condition and its place, and aborts.
[[noreturn]] void
check_failed(const char* condition, const char* file, int line) noexcept;

inline bool same_shape(matrix_view<const float> a, matrix_view<const float> b) {
  return a.rows == b.rows && a.cols == b.cols;
}

/// Checks the views of a call over whole sequences against its shape; `o` and
/// `q` may be their gradients.
void check_attention(matrix_view<const float> o_TNH,
                     matrix_view<const float> q_TNH,
                     matrix_view<const float> k_TKH,
                     matrix_view<const float> v_TKH,
                     const attention_shape& shape) noexcept;

/// Checks views and pages of calls with a cache.
void check_append_paged(const kv_pages& cache, matrix_view<const float> k_TKH,
                        matrix_view<const float> v_TKH,
                        std::span<const paged_rows> sequences) noexcept;
void check_attention_paged(matrix_view<const float> o_TNH,
                           matrix_view<const float> q_TNH,
                           const kv_pages& cache,
                           std::span<const paged_rows> sequences,
                           const attention_shape& shape) noexcept;

} // namespace shoal::kernels

#define SHOAL_KERNEL_ASSERT(condition)                                         \
  ((condition)                                                                 \
     ? static_cast<void>(0)                                                    \
     : ::shoal::kernels::check_failed(#condition, __FILE__, __LINE__))
