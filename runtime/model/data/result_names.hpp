// runtime/model/data/result_names.hpp -- the names of what a run writes to its
// folder of results.
//
// Other files may lie there, too: a user's notes, or the text itself.
#pragma once

#include <string>

namespace shoal::model {

/// Whether a run writes a file or folder of this name: weights and what belongs
/// to the model, checkpoints, metrics, the run's record. Without the lock.
bool is_result_name(const std::string& name);

} // namespace shoal::model
