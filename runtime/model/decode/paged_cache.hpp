// runtime/model/decode/paged_cache.hpp -- the keys and values of a stage's blocks.
//
// A stage for generation computes batches of rows (row_batch.hpp). Keys and values
// of earlier positions are in pages, so a batch computes only its own rows. Who
// owns which page is decided elsewhere (runtime/core/serving/pages.hpp); each stage
// of a pipeline has memory of its own for every page.
//
// a row has the same bits whatever other rows are in the batch, however a
// prompt is cut into pieces, and whatever its pages are (kernels/README.md).
//
// Shapes:    T rows; hidden states T rows of D; logits as many rows of V as the
//            batch wants.
// Cost:      a batch of many rows goes through the blocks in parts of
//            batch_rows_max, so that its memory has a bound.
// Threads:   one call at a time per stage, of its caches and their passes. Passes
//            that share pages run one after the other.
// Ownership: the stage belongs to the caller and outlives the cache, which
//            outlives its passes.
#pragma once

#include "kernels/inference/paged_attention.hpp"
#include "runtime/model/decode/inference.hpp"
#include "runtime/model/decode/row_batch.hpp"
#include "runtime/model/pass.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace shoal::model {

using kernels::kv_type;

/// The type with this name ("f32", "bf16", "q8").
std::optional<kv_type> kv_type_named(std::string_view name);

/// The type for a model if nothing else is asked for: bf16, or f32 if the
/// matrices of its blocks are f32, apart from routers.
kv_type usual_kv_type(const inference_stage& stage);

/// Rows that go through the blocks at once: enough that reading the weights once
/// for all of them costs less than the products.
inline constexpr std::size_t batch_rows_max = 512;

class paged_cache {
public:
  /// Reserves the memory of all pages. If `window_pages` is not 0, blocks with a
  /// window have memory for that many pages only, which have numbers of their own
  /// (row_batch::sequence::window_pages). @pre pages >= 1
  paged_cache(inference_stage& stage, std::size_t pages, kv_type type,
              std::size_t window_pages = 0);

  /// The bytes of one page of `blocks` blocks.
  static std::uint64_t
  page_bytes(const model_config& config, std::size_t blocks, kv_type type);

  /// The pages of blocks with a window that a sequence needs at once, if its rows
  /// come in batches of at most `rows` of them. 0: no block has one.
  static std::size_t
  window_pages_for(const model_config& config, std::size_t rows);

  std::size_t pages() const noexcept { return pages_; }
  /// 0: blocks with a window have all pages, like others.
  std::size_t window_pages() const noexcept { return window_pages_; }
  kv_type type() const noexcept { return type_; }
  /// All pages, of all blocks.
  std::uint64_t bytes() const noexcept;

  /// Whether a batch, perhaps of another machine, keeps the rules: it has rows,
  /// positions and pages exist, each sequence has the pages of its positions, and
  /// no page is written twice.
  [[nodiscard]] bool accepts(const row_batch& batch) const;

  /// Begins to compute a batch. The first stage reads `ids`, others `hidden_in`.
  /// All but the last write `hidden_out`; the last writes `logits_out`, and in
  /// `normed_out` hidden states after the final norm.
  /// @pre accepts(batch); valid_ids(); sizes are T, T*D, T*D, logits()*V and
  /// normed()*D;
  /// spans stay until the pass has ended
  std::unique_ptr<pass>
  begin_batch(const row_batch& batch, std::span<const token_id> ids,
              std::span<const float> hidden_in, std::span<float> hidden_out,
              std::span<float> logits_out, std::span<float> normed_out = {});

  /// The same from end to end.
  void compute(const row_batch& batch, std::span<const token_id> ids,
               std::span<const float> hidden_in, std::span<float> hidden_out,
               std::span<float> logits_out, std::span<float> normed_out = {}) {
    run(
      *begin_batch(batch, ids, hidden_in, hidden_out, logits_out, normed_out));
  }

private:
  class batch_pass;

  bool windowed(unit_index unit) const;
  bool accepts_pages(const row_batch& batch, bool of_windows) const;

  inference_stage& stage_;
  std::size_t pages_, window_pages_;
  kv_type type_;
  std::vector<aligned_buffer> blocks_; ///< per block: all pages
};

} // namespace shoal::model
