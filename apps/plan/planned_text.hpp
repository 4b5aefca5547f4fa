// apps/plan/planned_text.hpp -- checks the text of a planned run.
//
// `plan` refuses what `train` would refuse: paths that name nothing, files that
// cannot be read, lines that are no documents, less text than a sequence. A
// small text is read for that, and its tokens are counted; for a larger one the
// files are only found and opened, so that a plan takes less time than the
// start of the run.
//
// Threads: one.
// Errors:  a failure begins with "data: ", as in `train`.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/files/field_text.hpp"
#include "runtime/files/json.hpp"
#include "runtime/jobs/run_config.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::apps {

/// More text is not read: this much takes about a second. A compressed file
/// counts as packed_factor times its size.
inline constexpr std::uint64_t planned_text_bytes_max = 16u << 20;
inline constexpr std::uint64_t packed_factor = 8;

/// Known facts about a text. The number of tokens is known if it was read,
/// unless a tokenizer will be trained on it.
struct planned_text {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0; ///< decompressed; if not read, on disk
  bool read = false;
  std::optional<std::uint64_t> train_tokens;
  std::optional<std::uint64_t> held_out_tokens;
  std::vector<std::string> notices; ///< lines for users
};

/// @pre run.data_paths is not empty; load_run() made the run
model::result<planned_text> look_at_text(const runtime::run_config& run);

/// "12 files, 3027 tokens to train on, 160 held out".
std::string to_text(const planned_text& t);

nlohmann::ordered_json text_json(const planned_text& t);
std::vector<runtime::field_text> text_fields();

} // namespace shoal::apps
