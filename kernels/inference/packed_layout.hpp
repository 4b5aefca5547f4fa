// kernels/inference/packed_layout.hpp -- the layout of the bytes of a q8 or q4 weight.
//
// A panel is 16 outputs; a chunk of a panel is 64 inputs (two blocks). The
// chunks of a panel follow each other, and so do the panels. So a product reads
// one stream, and a register of 16 lanes of 32 bits holds four inputs of all 16
// outputs.
//
//   chunk of q8: 64 bytes of scales, then 16 groups of 64 bytes
//   chunk of q4: 64 bytes of scales, then 8 groups of 64 bytes
//   scales:      lane n: scale of block 0 in the low half, block 1 in the high
//   group g, q8: lane n, byte j: code of input 4g + j, plus 128
//   group g, q4: the same with indices into q4_codes: inputs 4g + j of block 0
//                in the low four bits, of block 1 in the high four bits
//
// Codes are stored plus 128: the dot product of unsigned and signed bytes needs
// them unsigned. Outputs past the last have scale 0; a product must multiply
// inputs past the last by 0.
//
// Private to kernels/.
#pragma once

#include "kernels/inference/packed_weight.hpp"

namespace shoal::kernels {

inline constexpr std::size_t block_cols = 32;
inline constexpr std::size_t panel_rows = 16;
inline constexpr std::size_t chunk_cols = 2 * block_cols;
inline constexpr std::size_t scale_bytes = 64;
/// Added to each code in memory.
inline constexpr int code_offset = 128;

/// Scales below this count as 0: the inverse of a scale must be finite.
inline constexpr float scale_min = 1e-30f;

/// The values of the four-bit codes: the 16 levels with the least mean square
/// error for blocks of 32 normally distributed values whose scale may have
/// either sign and is the best of nine near the largest value (Lloyd's
/// iteration, 60,000 blocks). The error is 0.0055 of the variance, against
/// 0.0072 for 16 equally spaced levels and the largest value as scale.
inline constexpr std::int8_t q4_codes[16] = {
  -108, -84, -66, -51, -37, -25, -13, -2, 9, 21, 33, 46, 61, 78, 101, 127};

/// The scales tried for a block of q4, relative to the scale at which the value
/// of the largest magnitude becomes 127.
inline constexpr float q4_factors[] = {1.0f,  0.94f, 1.06f, 0.97f, 1.03f,
                                       0.91f, 1.1f,  0.88f, 1.14f};

constexpr std::size_t chunk_bytes(weight_type type) {
  return scale_bytes + (type == weight_type::q8 ? 1024 : 512);
}
constexpr std::size_t chunks_of(std::size_t cols) {
  return (cols + chunk_cols - 1) / chunk_cols;
}
constexpr std::size_t panels_of(std::size_t rows) {
  return (rows + panel_rows - 1) / panel_rows;
}
constexpr std::size_t
panel_bytes(weight_type type, std::size_t rows, std::size_t cols) {
  return panels_of(rows) * chunks_of(cols) * chunk_bytes(type);
}

/// Memory for panels or rows, on a cache-line boundary, with large pages if it
/// is large. @throws std::bad_alloc
std::shared_ptr<std::byte> allocate_packed(std::size_t bytes);

/// Memory for many weights, one after the other: small weights get large pages,
/// too, and a prefetch past the end of one weight reads the beginning of the
/// next. A slab lives as long as any weight in it.
class packed_memory {
public:
  /// @throws std::bad_alloc
  std::shared_ptr<std::byte> take(std::size_t bytes);

private:
  std::shared_ptr<std::byte> slab_;
  std::size_t left_ = 0;
};

} // namespace shoal::kernels
