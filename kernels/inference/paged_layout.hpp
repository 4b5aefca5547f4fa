// kernels/inference/paged_layout.hpp -- the bytes of a page of keys and values.
//
// A page has a part for each key-value head. In a part, keys lie by columns: of
// value h of all 16 positions one behind the other, so that a register holds as
// many scores as it has lanes. Values lie by rows, which are padded to whole
// registers. Each section begins on a cache line:
//
//   key scales    q8: of each block of 32 values, those of 16 positions
//   keys          H rows of 16
//   value scales  q8: of each position, those of its blocks
//   values        16 rows of value_width
//
// Codes of q8 are signed bytes. Private to kernels/.
#pragma once

#include "kernels/inference/packed_layout.hpp"
#include "kernels/inference/paged_attention.hpp"

namespace shoal::kernels {

constexpr std::size_t kv_value_bytes(kv_type type) {
  return type == kv_type::f32 ? 4 : type == kv_type::bf16 ? 2 : 1;
}

/// Places in the part of one key-value head, in bytes from its beginning.
struct paged_layout {
  std::size_t value_width; ///< of a row of values
  std::size_t blocks;      ///< of 32 values of a head; 0 without scales
  std::size_t keys, value_scales, values;
  std::size_t bytes; ///< of the part

  constexpr paged_layout(kv_type type, std::size_t head_size)
    : value_width((head_size + 15) / 16 * 16),
      blocks(type == kv_type::q8 ? (head_size + block_cols - 1) / block_cols
                                 : 0),
      keys(lines(blocks * kv_page_positions * sizeof(bf16))),
      value_scales(
        keys + lines(head_size * kv_page_positions * kv_value_bytes(type))),
      values(value_scales + keys),
      bytes(values
            + lines(value_width * kv_page_positions * kv_value_bytes(type))) {}

private:
  static constexpr std::size_t lines(std::size_t bytes) {
    return (bytes + 63) / 64 * 64;
  }
};

/// The part of key-value head `kv` in a page.
inline std::byte* part_of(const kv_pages& cache, const paged_layout& layout,
                          kv_page page, std::size_t kv) {
  return cache.data + (page * cache.kv_heads + kv) * layout.bytes;
}

} // namespace shoal::kernels
