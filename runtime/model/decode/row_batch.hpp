// runtime/model/decode/row_batch.hpp -- rows of many sequences in one pass.
//
// A row is a token at its position in a sequence: of a sequence that generates
// one, of a prompt a piece. Their keys and values go to pages of a cache
// (paged_cache.hpp), in which the earlier ones of the sequence are already.
//
// Plain data: it says nothing of tokens or hidden states, which go beside it.
#pragma once

#include "runtime/core/serving/pages.hpp"

#include <cstddef>
#include <vector>

namespace shoal::model {

struct row_batch {
  struct sequence {
    std::size_t first = 0;            ///< position of its first row
    std::size_t rows = 0;             ///< at least one
    std::vector<core::page_id> pages; ///< of all positions up to its last row
    std::size_t logits = 0; ///< the last rows whose logits are computed
                            ///< (0: a piece of a prompt, but not its end)
    /// As `pages`, in blocks with a window, if the cache keeps only windows
    /// (paged_cache.hpp). Entries of positions that no row sees may be anything.
    std::vector<core::page_id> window_pages = {};
    /// The last rows whose hidden states after the final norm are wanted. Only if
    /// `logits` is 0.
    std::size_t normed = 0;
  };
  std::vector<sequence> sequences; ///< rows in this order, one behind the other

  [[nodiscard]] std::size_t rows() const noexcept;
  /// Rows of logits, in the order of their rows.
  [[nodiscard]] std::size_t logits() const noexcept;
  /// The same of hidden states.
  [[nodiscard]] std::size_t normed() const noexcept;
};

/// A batch of one sequence in pages 0, 1, 2 and so on: for a cache that holds no
/// other. If `window_pages` is not 0, blocks with a window use that many pages in
/// turn.
[[nodiscard]] row_batch
one_sequence(std::size_t first, std::size_t rows, std::size_t logits,
             std::size_t window_pages = 0);

} // namespace shoal::model
