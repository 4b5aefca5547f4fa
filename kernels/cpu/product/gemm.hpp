// kernels/cpu/product/gemm.hpp -- one matrix product on the calling thread.
//
// oneDNN splits a product over its threads, also along K where the output is
// small, so its bits depend on the number of threads. Here it never gets more
// than the calling thread; callers cut products themselves.
//
// Errors: aborts if oneDNN cannot get memory.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels::cpu {

enum class transposed { no, yes };

/// One side of a product, row-major.
struct gemm_operand {
  const float* data;
  std::size_t stride;
  transposed order = transposed::no;
};

/// Computes c = alpha * op(a) * op(b) + beta * c, where op() transposes on
/// request. Sizes are those of c, and `depth`, the length of the sum.
void gemm(matrix_view<float> c, gemm_operand a, gemm_operand b,
          std::size_t depth, float alpha, float beta);

} // namespace shoal::kernels::cpu
