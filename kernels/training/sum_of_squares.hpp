// kernels/training/sum_of_squares.hpp -- the squared norm of one tensor.
//
// The order of the sum is part of the definition, so that every backend,
// with any number of threads, gives the same bits: values are taken in chunks
// of sum_chunk; within a chunk value i goes to lane i % sum_lanes; each lane
// adds in order, in double; the lanes are added as
// ((0+4)+(2+6)) + ((1+5)+(3+7)); the chunks are added in order. The square of
// a float is exact in double.
//
// Traffic:   one read of the tensor.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// 16 KiB of values: large compared with the cost of handing out a task, small
/// enough that a tensor of a million values still feeds 64 threads.
inline constexpr std::size_t sum_chunk = 4096;
/// Eight doubles: one AVX-512 register, two of AVX2, four of SSE2.
inline constexpr std::size_t sum_lanes = 8;

/// Part of kernels::backend.
struct sum_of_squares_ops {
  /// @returns the sum of the squares of g_P.
  virtual double sum_of_squares(vector_view<const float> g_P) = 0;

protected:
  ~sum_of_squares_ops() = default;
};

} // namespace shoal::kernels
