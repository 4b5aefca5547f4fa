// kernels/cpu/product/bf16_tile.hpp -- 32 x 32 results of a product of bf16 matrices.
//
//   c[m,n] (+)= sum_k a[m,k] * b[k,n],  m, n < 32, k < 32 * steps
//
// All three are stored in pieces of 1 KiB, the size of a tile of AMX, in the
// order in which they are read. For each step of 32 values of k:
//   a: two pieces of 16 rows: (m, k) at [m / 16][m % 16][k]
//   b: two pieces of 16 columns, with pairs of k of all columns, as the dot
//      products of AVX-512 BF16 take them: [n / 16][k / 2][n % 16][k % 2]
//   c: four pieces: (m, n) at [m / 16][n / 16][m % 16][n % 16]
//
// Precision: the processor adds two products and the running sum at a time, by
//            its own rule; AMX and AVX-512 agree within float rounding.
// Private to kernels/cpu; needs usable_features().bf16.
#pragma once

#include "kernels/cpu/isa/features.hpp"
#include "kernels/packed_weight.hpp"

namespace shoal::kernels::cpu {

inline constexpr std::size_t tile_side = 32;
/// Values of k in one step.
inline constexpr std::size_t tile_depth = 32;

/// Values of a or b in one step.
inline constexpr std::size_t step_values = tile_side * tile_depth;
/// Values in a piece of a or b.
inline constexpr std::size_t piece_values = step_values / 2;

/// Runs of cache lines that a call prefetches, one line of each per step.
inline constexpr std::size_t prefetch_runs = 4;

struct bf16_tile_call {
  const bf16* a;
  const bf16* b;
  std::size_t steps;
  float* c; ///< on a boundary of 64 bytes
  bool add; ///< otherwise c is overwritten
  /// Memory that will be read soon, to be fetched into the second-level cache:
  /// one line of each run per step, since many at once would delay the loads of
  /// the step itself. Any address is allowed.
  const void* prefetch[prefetch_runs];
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

/// Where a run of pieces is written: one piece for each step.
struct piece_writer {
  bf16* to;
  std::size_t steps;
  /// Values from the piece of one step to the piece of the next.
  std::size_t stride = step_values;
};

/// A float is the sum of two bf16 values, except for 2^-17 of it.
enum class half : bool { high, low };

/// Rounds at most 16 rows to pieces of a, or to pieces of b with one column per
/// row. Rows and columns past the end become 0.
void round_to_a(matrix_view<const float> x, piece_writer into,
                half of = half::high);
void round_to_b(matrix_view<const float> x, piece_writer into,
                half of = half::high);
/// Rounds at most 32 rows of at most 16 columns to the piece of b in which each
/// row is one value of k.
void round_rows_to_b(matrix_view<const float> x, bf16* piece,
                     half of = half::high);

/// Copies rows to pieces of a in the same way.
void copy_to_a(matrix_view<const bf16> w, piece_writer into);

/// Unpacks chunks of q8 or q4, from `panel` on, to pieces of b; two steps each.
void unpack_to_b(weight_type type, const std::byte* panel, piece_writer into);

} // namespace shoal::kernels::cpu
