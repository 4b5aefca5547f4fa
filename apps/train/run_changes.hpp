// apps/train/run_changes.hpp -- what a run that goes on would do otherwise than before.
//
// A checkpoint holds weights, moments and a count of steps. They mean something
// only for the model that made them, and the count names samples only in the
// order in which that run visits its text. A key that decides on either must
// stay as it was; `shoal audit` could not prove the steps otherwise. What
// only decides how the weights are updated from now on (learning rate, clipping,
// precision, the last step) may change, as with torchtitan, but is told. Where
// and how a run is computed, kept and shown may change unsaid.
//
// Threads: any. Errors: none.
#pragma once

#include "runtime/jobs/run_config.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

enum class change_kind {
  refused, ///< the checkpoint is of no use to such a run
  text,    ///< matters if the text is another one by it; its digest decides
  told,    ///< the run goes on by the new value
  free,    ///< changes no bit that a run on one peer computes
};

/// Of a key of a run file. A section that is new here is told.
change_kind kind_of(std::string_view section, std::string_view key);

/// A key that has another value, as JSON; "none" where it has none.
struct run_change {
  std::string key; ///< "training.seed"
  std::string before;
  std::string now;
  change_kind kind = change_kind::free;
};

/// All that differs, in the order of the run file. What is left to be chosen is
/// compared as what is chosen: training.global_batch_size = -1 is 4 x
/// training.local_batch_size.
std::vector<run_change>
changes(const runtime::run_config& before, const runtime::run_config& now);

/// "training.seed was 0 and is 1; ..." of one kind; empty: there are none.
std::string to_text(const std::vector<run_change>& all, change_kind kind);

} // namespace shoal::apps
