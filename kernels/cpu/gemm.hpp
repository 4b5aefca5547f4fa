// kernels/cpu/gemm.hpp -- one matrix product on the calling thread.
//
// oneDNN splits a product over its threads, also along K where the output is
// small, and so gives other bits with other numbers of threads. Here it never
// gets more than the calling thread; callers cut products themselves.
//
// Errors: aborts if oneDNN cannot get memory.
#pragma once

#include "kernels/packed_weight.hpp"
#include "kernels/tensor.hpp"

namespace shoal::kernels::cpu {

enum class transposed { no, yes };

/// One side of a product, row-major.
struct gemm_operand {
  const float* data;
  std::size_t stride;
  transposed order = transposed::no;
  /// In place of `data`, if it is not null; only in product() in fp32, of rows
  /// that are contiguous along the sum.
  const bf16* halves = nullptr;
};

/// Computes c = alpha * op(a) * op(b) + beta * c, where op() is the transpose
/// if asked for. Sizes are those of c and of the sum, `depth`.
void gemm(matrix_view<float> c, gemm_operand a, gemm_operand b,
          std::size_t depth, float alpha, float beta);

} // namespace shoal::kernels::cpu
