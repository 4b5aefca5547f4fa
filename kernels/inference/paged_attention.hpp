// kernels/inference/paged_attention.hpp -- attention of new tokens to a cache in pages.
//
// Formula, heads, windows and soft caps as in attention.hpp. The cache of a layer
// is memory for pages; a page holds the keys and values of kv_page_positions
// consecutive positions of one sequence, and the pages of a sequence lie
// anywhere. One call takes new rows of many sequences: single tokens of some, and
// pieces of prompts of others.
//
//   type   bits per value   values
//   f32    32               as they are
//   bf16   16               rounded to nearest, ties to even
//   q8     8.5              code in [-127, 127] times the scale (bf16) of a block
//                           of 32 values of a head, as in packed_weight.hpp
//
// Shapes:    T new rows: those of each sequence behind those of the one before.
//            N query heads, K key-value heads of H values. Inside a page, keys lie
//            with positions side by side (paged_layout.hpp).
// Precision: sums in float. Tolerance against reference/, which reads the same
//            rounded keys and values: 1e-5 relative to the largest value. The
//            bytes that append_paged() writes are the same on every backend. A row
//            has the same bits whatever other rows and sequences are in the call,
//            in whatever pages the cache is, and however a prompt is cut (R-1 of
//            README.md): a row reads also its own key and value from the cache,
//            rounded as later rows read them.
// Traffic:   of each sequence, the pages that its rows see, once for each 64 rows
//            of heads that share a key-value head.
// Cost:      4*N*H operations for each pair of a row and a position that it sees.
// Errors:    none. A block of q8 with a value that is not finite becomes NaN.
#pragma once

#include "kernels/layers/attention.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::kernels {

/// How keys and values are kept.
enum class kv_type : std::uint8_t { f32, bf16, q8 };

/// "f32", "bf16", "q8".
const char* name_of(kv_type type) noexcept;

/// Positions of a page: a register of 16 lanes.
inline constexpr std::size_t kv_page_positions = 16;

/// The number of a page in the memory of a layer.
using kv_page = std::uint32_t;

/// The bytes of a page of one layer: a multiple of 64.
std::size_t kv_page_bytes(kv_type type, std::size_t kv_heads,
                          std::size_t head_size) noexcept;

/// The memory of a layer: `pages` pages, one behind the other.
struct kv_pages {
  std::byte* data = nullptr; ///< on a cache-line boundary
  std::size_t pages = 0;
  kv_type type = kv_type::f32;
  std::size_t kv_heads = 0;  ///< K
  std::size_t head_size = 0; ///< H

  std::size_t page_bytes() const noexcept {
    return kv_page_bytes(type, kv_heads, head_size);
  }
};

/// The rows of one sequence in a call.
struct paged_rows {
  /// Of its positions from 0 to its last row. Those of positions that no row of
  /// the call sees, because of the window, are not read: any number will do.
  vector_view<const kv_page> pages;
  std::size_t first = 0; ///< position of its first row
  std::size_t rows = 0;
};

/// Part of kernels::backend; outputs never overlap inputs.
struct paged_attention_ops {
  /// Writes the keys and values of new rows to their places in the cache.
  /// @pre no two sequences write to one page
  virtual void
  append_paged(const kv_pages& cache, matrix_view<const float> k_TKH,
               matrix_view<const float> v_TKH,
               std::span<const paged_rows> sequences) = 0;

  /// Computes o_TNH, each row against the positions up to its own, which are in
  /// the cache. @pre shape.batch == 1, shape.tokens == T
  virtual void
  attention_paged(matrix_view<float> o_TNH, matrix_view<const float> q_TNH,
                  const kv_pages& cache, std::span<const paged_rows> sequences,
                  const attention_shape& shape) = 0;

protected:
  ~paged_attention_ops() = default;
};

} // namespace shoal::kernels
