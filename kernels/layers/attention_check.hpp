// kernels/layers/attention_check.hpp -- aborts when attention is called with views
// that do not agree. Private to kernels/: include it from .cpp files only.
#pragma once

#include "kernels/layers/attention.hpp"

namespace shoal::kernels {

void check_heads(const attention_shape& shape) noexcept;

/// Checks the views of a call over whole sequences against its shape; `o` and
/// `q` may be their gradients.
void check_attention(matrix_view<const float> o_TNH,
                     matrix_view<const float> q_TNH,
                     matrix_view<const float> k_TKH,
                     matrix_view<const float> v_TKH,
                     const attention_shape& shape) noexcept;

} // namespace shoal::kernels
