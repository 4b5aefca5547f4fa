// apps/train/resumed_run.hpp -- the run that `train --resume` continues.
//
// run.json in the folder describes that run. Without a run file each key, and
// the text, is taken from there, unless flags change it; so `train --resume
// DIR` needs nothing more. A given run file replaces all keys.
//
// Threads: one.
// Errors:  a failure names the folder or the path, and the possible solutions.
#pragma once

#include "apps/common/commands.hpp"
#include "apps/train/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace shoal::apps {

/// `train DIR --resume` means the run in that folder: a run file that is a
/// folder becomes --out. Fails if --out names another, or if options exclude each
/// other.
model::status take_folder(train_options& o);

class resumed_run {
public:
  /// Finds the newest checkpoint in a folder to which no other command writes.
  /// @param o  its --out is the folder
  static model::result<resumed_run> find(const train_options& o);

  /// Asks the user where the run's job may go on, or has ended, out of reach: no
  /// node answers here, so this process would train on from an earlier step by itself.
  /// @returns exit_done if it may; else an exit code, with the reason on stderr
  static int may_go_alone(const train_options& o);

  /// The resolved run. A failure is a usage error: a key, a flag, a path.
  model::result<runtime::run_config> load(const run_options& given) const;

  /// The name that its job got, unless `run` asks for another; empty: unknown.
  std::string name(const runtime::run_config& run) const;

  /// Fails if the checkpoint is damaged, or if the model in the folder, which the run
  /// replaces, has been changed by others.
  model::status check_models(const model::watch& told) const;

  /// Fails if the run has no steps left.
  model::status has_steps(const runtime::run_config& run) const;

  /// Whether the run has ended, and the folder has no model of its end: its last
  /// checkpoint was brought there afterwards.
  bool unpublished(const runtime::run_config& run) const;
  /// Makes that the model in the folder. @returns a line about it
  /// @pre unpublished()
  model::result<std::string> publish(const runtime::run_config& run) const;

  const std::filesystem::path& from() const { return from_; } ///< checkpoint
  std::uint64_t step() const { return step_; }
  /// The place of the text's tokenizer if it is not in model.path; it may be
  /// gone.
  std::filesystem::path tokenizer_of(const runtime::run_config& run) const;
  /// The advice if the text is not found; empty if the paths were given.
  std::string way_to_text(const run_options& given) const;

private:
  std::filesystem::path out_;
  std::filesystem::path from_;
  std::uint64_t step_ = 0;
  std::optional<run_record> record_; ///< none: `out` belongs to no run
};

} // namespace shoal::apps
