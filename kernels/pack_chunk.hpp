// kernels/pack_chunk.hpp -- makes one chunk of a q8 or q4 weight from floats.
//
// Lane n is output n, and each lane is computed on its own by operations that
// round alike everywhere: so the bits do not depend on the instruction set for
// which the caller is compiled, into which all of this is inlined.
//
// Cost: some 20 operations a value for q4, which tries nine scales.
// Private to kernels/.
#pragma once

#include "kernels/packed_layout.hpp"

#include <cstring>

namespace shoal::kernels {

/// 16 lanes in whatever registers the target has.
using lanes_f = float __attribute__((vector_size(4 * panel_rows)));
using lanes_i = std::int32_t __attribute__((vector_size(4 * panel_rows)));

/// Input k of all outputs of a panel, for all inputs of one chunk; 0 where
/// there is none.
struct chunk_values {
  lanes_f at[chunk_cols];
};

namespace pack {

#define SHOAL_PACK_INLINE inline __attribute__((always_inline))

/// Largest scale that counts as 0: its inverse must be finite.
inline constexpr float scale_min = 1e-30f;

SHOAL_PACK_INLINE lanes_f all(float x) {
  return lanes_f{} + x;
}

SHOAL_PACK_INLINE lanes_f magnitude(lanes_f x) {
  return (lanes_f)((lanes_i)x & 0x7fffffff);
}

/// NaN in the lanes of which one of the block's values is not finite, else 0.
SHOAL_PACK_INLINE lanes_f poison(const lanes_f* x) {
  lanes_f sum{};
  for (std::size_t k = 0; k != block_cols; ++k)
    sum += x[k] * 0.0f;
  return sum;
}

/// The upper halves, as bits; NaN becomes the usual NaN.
SHOAL_PACK_INLINE lanes_i bf16_bits(lanes_f x, lanes_i round_by) {
  const lanes_i bits = (lanes_i)x;
  const lanes_i rounded = (bits + round_by) & (lanes_i{} - 65536);
  return x == x ? rounded : lanes_i{} + 0x7fc00000;
}

SHOAL_PACK_INLINE lanes_i bf16_nearest(lanes_f x) {
  return bf16_bits(x, (((lanes_i)x >> 16) & 1) + 0x7fff);
}

/// 1 / scale, and 0 for scales that are stored as 0 or NaN.
SHOAL_PACK_INLINE lanes_f inverse(lanes_f scale) {
  return magnitude(scale) >= scale_min ? 1.0f / scale : lanes_f{};
}

SHOAL_PACK_INLINE lanes_i scale_q8(const lanes_f* x) {
  lanes_f largest{};
  for (std::size_t k = 0; k != block_cols; ++k)
    largest = magnitude(x[k]) > largest ? magnitude(x[k]) : largest;
  lanes_f scale = largest / 127.0f;
  scale = scale >= scale_min ? scale : lanes_f{};
  // Upwards, so that no code exceeds 127.
  return bf16_bits(scale + poison(x), lanes_i{} + 0xffff);
}

SHOAL_PACK_INLINE lanes_i code_q8(lanes_f x, lanes_f inverse_scale) {
  // Adding 1.5 * 2^23 leaves no bits behind the point: rounds to nearest.
  const lanes_f shift = all(12582912.0f);
  lanes_f q = (x * inverse_scale + shift) - shift;
  q = q == q ? q : lanes_f{}; // of values that are not finite
  q = q > 127.0f ? all(127.0f) : q;
  q = q < -127.0f ? all(-127.0f) : q;
  return __builtin_convertvector(q, lanes_i);
}

/// The number of the level nearest to x: how many borders lie below it.
SHOAL_PACK_INLINE lanes_i level_q4(lanes_f x) {
  lanes_i level{};
  for (int j = 0; j != 15; ++j)
    level -= x > (q4_codes[j] + q4_codes[j + 1]) * 0.5f;
  return level;
}

SHOAL_PACK_INLINE lanes_f value_q4(lanes_f x) {
  lanes_f value = all(q4_codes[0]);
  for (int j = 0; j != 15; ++j) {
    const lanes_f up = all(float(q4_codes[j + 1] - q4_codes[j]));
    value += x > (q4_codes[j] + q4_codes[j + 1]) * 0.5f ? up : lanes_f{};
  }
  return value;
}

SHOAL_PACK_INLINE lanes_i scale_q4(const lanes_f* x) {
  // The largest value by magnitude becomes the outermost level, 127, times
  // one of these; then the scale that is best for the levels so found.
  constexpr float factors[] = {1.0f,  0.94f, 1.06f, 0.97f, 1.03f,
                               0.91f, 1.1f,  0.88f, 1.14f};
  lanes_f largest{};
  lanes_f squares{};
  for (std::size_t k = 0; k != block_cols; ++k) {
    largest = magnitude(x[k]) > magnitude(largest) ? x[k] : largest;
    squares += x[k] * x[k];
  }
  lanes_f best{};
  lanes_f best_error = squares; // of scale 0
  for (const float factor : factors) {
    const lanes_f by = inverse(largest * (factor / 127.0f));
    lanes_f products{}, levels{};
    for (std::size_t k = 0; k != block_cols; ++k) {
      const lanes_f level = value_q4(x[k] * by);
      products += x[k] * level;
      levels += level * level;
    }
    const lanes_f scale = (lanes_f)bf16_nearest(products / levels);
    const lanes_f error =
      squares - 2.0f * (scale * products) + scale * scale * levels;
    best = error < best_error ? scale : best;
    best_error = error < best_error ? error : best_error;
  }
  best = magnitude(best) >= scale_min ? best : lanes_f{};
  return bf16_nearest(best + poison(x));
}

SHOAL_PACK_INLINE void put_scales(lanes_i low, lanes_i high, std::byte* to) {
  const lanes_i both =
    (lanes_i)(((low >> 16) & 0xffff) | (high & (lanes_i{} - 65536)));
  std::memcpy(to, &both, sizeof both);
}

} // namespace pack

/// Writes chunk_bytes(weight_type::q8) bytes.
SHOAL_PACK_INLINE void pack_chunk_q8(const chunk_values& x, std::byte* to) {
  const lanes_i scale[2] = {pack::scale_q8(x.at),
                            pack::scale_q8(x.at + block_cols)};
  pack::put_scales(scale[0], scale[1], to);
  for (std::size_t block = 0; block != 2; ++block) {
    const lanes_f by = pack::inverse((lanes_f)scale[block]);
    for (std::size_t g = 0; g != 8; ++g) {
      lanes_i group{};
      for (std::size_t j = 0; j != 4; ++j) {
        const std::size_t k = block * block_cols + 4 * g + j;
        group |= (pack::code_q8(x.at[k], by) + code_offset) << int(8 * j);
      }
      std::memcpy(to + scale_bytes + 64 * (8 * block + g), &group, 64);
    }
  }
}

/// Writes chunk_bytes(weight_type::q4) bytes.
SHOAL_PACK_INLINE void pack_chunk_q4(const chunk_values& x, std::byte* to) {
  const lanes_i scale[2] = {pack::scale_q4(x.at),
                            pack::scale_q4(x.at + block_cols)};
  pack::put_scales(scale[0], scale[1], to);
  const lanes_f by[2] = {pack::inverse((lanes_f)scale[0]),
                         pack::inverse((lanes_f)scale[1])};
  for (std::size_t g = 0; g != 8; ++g) {
    lanes_i group{};
    for (std::size_t block = 0; block != 2; ++block)
      for (std::size_t j = 0; j != 4; ++j) {
        const std::size_t k = block * block_cols + 4 * g + j;
        group |= pack::level_q4(x.at[k] * by[block]) << int(8 * j + 4 * block);
      }
    std::memcpy(to + scale_bytes + 64 * g, &group, 64);
  }
}

/// Packs panel `panel` of a matrix whose rows `read` gives; `rows_KN` is
/// scratch for chunks_of(cols) * chunk_cols * panel_rows floats.
template <weight_type Type>
SHOAL_PACK_INLINE void
pack_panel(std::size_t panel, std::size_t rows, std::size_t cols,
           const row_reader& read, std::vector<float>& scratch, std::byte* to) {
  const std::size_t padded = chunks_of(cols) * chunk_cols;
  scratch.assign(panel_rows * padded, 0.0f);
  for (std::size_t n = 0; n != panel_rows; ++n)
    if (panel * panel_rows + n < rows)
      read(panel * panel_rows + n, scratch.data() + n * padded);
  for (std::size_t c = 0; c != chunks_of(cols); ++c) {
    chunk_values x;
    for (std::size_t k = 0; k != chunk_cols; ++k)
      for (std::size_t n = 0; n != panel_rows; ++n)
        x.at[k][n] = scratch[n * padded + c * chunk_cols + k];
    if (Type == weight_type::q8)
      pack_chunk_q8(x, to + c * chunk_bytes(Type));
    else
      pack_chunk_q4(x, to + c * chunk_bytes(Type));
  }
}

#undef SHOAL_PACK_INLINE

} // namespace shoal::kernels
