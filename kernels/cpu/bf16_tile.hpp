// kernels/cpu/bf16_tile.hpp -- 32 x 32 results of a product of bf16 matrices.
//
//   c[m,n] (+)= sum_k a[m,k] * b[k,n],  m, n < 32, k < 32 * steps
//
// a: rows of k. b: panels of 16 columns, in each pairs of k of all columns:
// value (k, n) at [n / 16][k / 2][n % 16][k % 2], as both the dot products of
// AVX-512 BF16 and the tiles of AMX take it. c: 32 rows of 32 floats.
//
// Precision: two products and the sum so far are added at a time, by the
//            processor's rule; AMX and AVX-512 agree within float rounding.
// Private to kernels/cpu; needs usable_features().bf16.
#pragma once

#include "kernels/cpu/features.hpp"
#include "kernels/packed_weight.hpp"

namespace shoal::kernels::cpu {

inline constexpr std::size_t tile_side = 32;
/// Values of k in one step.
inline constexpr std::size_t tile_depth = 32;

struct bf16_tile_call {
  const bf16* a;
  std::size_t a_stride; ///< values
  const bf16* b;
  std::size_t b_stride; ///< values from one panel to the next
  std::size_t steps;
  float* c; ///< on a boundary of 64 bytes
  bool add; ///< else c is overwritten
};

/// Brackets calls of bf16_tile() on one thread.
class bf16_tiles {
public:
  explicit bf16_tiles(features with);
  ~bf16_tiles();
  bf16_tiles(const bf16_tiles&) = delete;
  bf16_tiles& operator=(const bf16_tiles&) = delete;

  void operator()(const bf16_tile_call& call) const;

private:
  bool amx_;
};

/// to[j * to_stride + i] = from[i * from_stride + j] for i, j < 16: floats, or
/// any words of 32 bits.
void transpose_16(const float* from, std::size_t from_stride, float* to,
                  std::size_t to_stride);

/// Rounds `size` floats; `to` is filled up to `padded` with zeros.
void round_row(const float* from, std::size_t size, bf16* to,
               std::size_t padded);

/// Chunks [first, last) of a panel of q8 or q4 as bf16 panels of b.
void unpack_chunks(weight_type type, const std::byte* panel, std::size_t first,
                   std::size_t last, bf16* to);

} // namespace shoal::kernels::cpu
