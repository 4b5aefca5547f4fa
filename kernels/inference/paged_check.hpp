// kernels/inference/paged_check.hpp -- aborts when attention with a cache is called
// with views or pages that do not agree. Private to kernels/: include it from .cpp
// files only.
#pragma once

#include "kernels/inference/paged_attention.hpp"

namespace shoal::kernels {

void check_append_paged(const kv_pages& cache, matrix_view<const float> k_TKH,
                        matrix_view<const float> v_TKH,
                        std::span<const paged_rows> sequences) noexcept;
void check_attention_paged(matrix_view<const float> o_TNH,
                           matrix_view<const float> q_TNH,
                           const kv_pages& cache,
                           std::span<const paged_rows> sequences,
                           const attention_shape& shape) noexcept;

} // namespace shoal::kernels
