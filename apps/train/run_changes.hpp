// apps/train/run_changes.hpp -- the differences of a resumed run from before.
//
// A checkpoint holds weights, moments and a count of steps. They have a meaning
// only for the model that made them, and the count identifies samples only in
// the order in which that run visits its text. A key that affects either must
// stay unchanged; otherwise `shoal audit` could not prove the steps. A key that
// only affects how the weights are updated from now on (learning rate,
// clipping, precision, the last step) may change, as with torchtitan, but the
// change is reported. Where and how a run is computed, kept and shown may
// change without a report.
//
// Threads: any. Errors: none.
#pragma once

#include "runtime/jobs/run_config.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

enum class change_kind {
  refused, ///< the checkpoint is useless for such a run
  text,    ///< matters if it changes the text, whose digest decides
  told,    ///< the run goes on with the new value
  free,    ///< changes no bit that a run on one peer computes
};

/// The kind of a change to a key. A new section is reported.
change_kind kind_of(std::string_view section, std::string_view key);

/// A key with a changed value, as JSON; "none" if it has none.
struct run_change {
  std::string key; ///< "training.seed"
  std::string before;
  std::string now;
  change_kind kind = change_kind::free;
};

/// All differences, in the order of the run file. Values left to be chosen are
/// compared by the choice: training.global_batch_size = -1 is 4 x
/// training.local_batch_size.
std::vector<run_change>
changes(const runtime::run_config& before, const runtime::run_config& now);

/// "training.seed was 0 and is 1; ..." for one kind; empty: there are none.
std::string to_text(const std::vector<run_change>& all, change_kind kind);

/// Whether the learning rate of the step after `done` differs, but for optimizer.lr.
bool rate_jumps(const runtime::run_config& before,
                const runtime::run_config& now, std::int64_t done);

} // namespace shoal::apps
