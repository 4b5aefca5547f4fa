// runtime/jobs/serve_config.hpp -- a served model as its job describes it.
//
// It travels with the job as JSON, in the place of a run file:
//
//   {"serve": {"context": 4096, "kv_type": "bf16", ...}, "model": {config.json}}
//
// Units: tokens, bytes. Errors: model::failure that names the key.
#pragma once

#include "kernels/inference/packed_weight.hpp"
#include "kernels/inference/paged_attention.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/planning/layout/pass_times.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/serving/serve_messages.hpp"
#include "runtime/model/config/config.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::core {
struct job_entry; // runtime/core/job_entry.hpp
}

namespace shoal::runtime {

/// Guesses behind the last token of a sequence (core/serving/batcher.hpp). Measured
/// with one stream of a llama of 85 M values, f32, one thread, that repeats itself:
/// 10.1 ms of processor time for a token without guesses, 3.9 with 4, 3.1 with 8;
/// of a text that does not, the same in the bounds of the measurement (2026-11-26).
inline constexpr std::uint64_t speculate_usual = 8;

struct serve_config {
  model::model_config model;
  /// Of matrices; nothing: as they are stored.
  std::optional<kernels::weight_type> quantize;
  kernels::kv_type kv = kernels::kv_type::bf16;
  std::uint64_t context = 0;                 ///< most tokens of a sequence
  std::uint64_t cache_tokens = 0;            ///< of all sequences of a pipeline
  std::uint64_t pass_tokens = 512;           ///< in a pass
  std::uint64_t streams_max = 256;           ///< that have pages at once
  std::uint64_t queue_max = 1024;            ///< that wait for pages
  std::uint64_t speculate = speculate_usual; ///< most guesses in a row; 0: none
  core::pooling pooled = core::pooling::last; ///< of embeddings; not none
  std::uint64_t stored_bytes = 4;             ///< of a stored value of a matrix
  /// The training job whose checkpoints are served, each as a version; 0: none.
  core::job_id follows = 0;
  /// Most pipelines, if their number follows the load; 0: it is fixed.
  std::uint64_t replicas_max = 0;
  std::uint64_t grow_after = 20;    ///< s (replica_watch.hpp)
  std::uint64_t shrink_after = 300; ///< s
};

/// Cache of a pipeline if nothing is asked for: that of this number of sequences
/// of the whole context, but no more than this number of tokens, if one sequence
/// fits.
inline constexpr std::uint64_t cache_sequences_usual = 16;
inline constexpr std::uint64_t cache_tokens_usual = 32'768;

/// The value of cache_tokens for a context, if nothing is asked for.
std::uint64_t usual_cache_tokens(std::uint64_t context);

/// Sequences of a pass in which many generate, as the planner takes it.
inline constexpr std::uint64_t usual_sequences = 16;
/// Blocks with a sliding window need no more of the cache than their windows. If
/// pages of their own save more than half of the cache, these are they: windows
/// of as many sequences of the whole context as the cache holds, and at least a
/// quarter of its tokens, for short sequences. Otherwise none, since a sequence
/// that begins as another one did finds more of it in pages for all blocks.
core::window_pages window_pages_of(const serve_config& config);

/// Embeddings that one pass may end with: they are one message.
std::uint64_t pooled_rows_of(const serve_config& config);

std::string to_json(const serve_config& config);
model::result<serve_config> parse_serve(std::string_view json);

/// Bytes of the weights of a unit (model/units.hpp), as stages hold them.
std::uint64_t weight_bytes(const serve_config& config, std::uint32_t unit);
/// Bytes of the cache of one block, for all tokens.
std::uint64_t block_cache_bytes(const serve_config& config);

/// The costs of a pass with `tokens` of each of `sequences`, at the end of
/// `context` tokens each.
core::pass_costs
pass_costs_of(const serve_config& config, std::uint64_t sequences,
              std::uint64_t tokens, std::uint64_t context);

/// What a job that serves a model needs, for the planner: memory of weights and
/// cache, and the cost of a pass in which many sequences generate.
/// @param pipelines at least 1
core::job_entry serve_entry(const serve_config& config, std::string name,
                            std::uint32_t pipelines);

} // namespace shoal::runtime
