// runtime/jobs/other_names.hpp -- what other trainers call keys of a run file.
//
// For errors only: who comes from torchtitan, Hugging Face's Trainer, nanoGPT or
// Megatron types their names at first.
//
// Threads: pure functions.
#pragma once

#include <span>
#include <string_view>

namespace shoal::runtime {

struct other_name {
  std::string_view name;
  std::string_view key; ///< of a run file, with its section
  /// What differs, where the value is not the same.
  std::string_view differs = {};
};
std::span<const other_name> other_names();

/// The entry of "block_size"; null for a name that is not known. Dashes count as
/// underscores.
[[nodiscard]] const other_name* key_called_otherwise(std::string_view name);

} // namespace shoal::runtime
