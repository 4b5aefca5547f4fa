// apps/train/resumed_run.hpp -- the run that `train --resume` goes on with.
//
// run.json in the folder says what that run is. Without a run file each key,
// and the text, is as it says there, but for what flags change; so `train
// --resume DIR` needs nothing more. A run file given stands for all keys.
//
// Threads: one.
// Errors:  a failure names the folder or the path, and the ways out.
#pragma once

#include "apps/common/commands.hpp"
#include "apps/train/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace shoal::apps {

/// `train DIR --resume` means the run in that folder: a run file that is one
/// becomes --out. Fails where --out names another.
model::status take_folder(train_options& o);

class resumed_run {
public:
  /// Finds the newest checkpoint in a folder that nobody else writes to.
  static model::result<resumed_run> find(const std::filesystem::path& out);

  /// The run, resolved. The failure is of wrong use: a key, a flag, a path.
  model::result<runtime::run_config> load(const run_options& given) const;

  /// Fails where the run has no steps left.
  model::status has_steps(const runtime::run_config& run) const;

  const std::filesystem::path& from() const { return from_; } ///< checkpoint
  std::uint64_t step() const { return step_; }
  /// Where the text's tokenizer lies, if not in model.path: it may be gone.
  std::filesystem::path tokenizer_of(const runtime::run_config& run) const;
  /// What follows where the text is not found, or empty: the paths were given.
  std::string way_to_text(const run_options& given) const;

private:
  std::filesystem::path out_;
  std::filesystem::path from_;
  std::uint64_t step_ = 0;
  std::optional<run_record> record_; ///< none: `out` belongs to no run
};

} // namespace shoal::apps
