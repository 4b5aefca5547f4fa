// kernels/reference/inference/paged_attention.hpp -- new keys and values into pages.
//
// The specification of the bytes, which every backend writes: one value at a
// time, by operations that round the same way on every machine. Private to
// kernels/.
#pragma once

#include "kernels/inference/paged_attention.hpp"

namespace shoal::kernels::reference {

/// append_paged() of rows [first, last) of the call.
void append_rows(const kv_pages& cache, matrix_view<const float> k_TKH,
                 matrix_view<const float> v_TKH,
                 std::span<const paged_rows> sequences, std::size_t first,
                 std::size_t last);

} // namespace shoal::kernels::reference
