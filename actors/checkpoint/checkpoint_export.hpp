// actors/checkpoint/checkpoint_export.hpp -- joins shards of a model in a
// directory.
//
// A checkpoint has a file for each unit. Loaders of Hugging Face models read
// that as well. A model that transformers would write as a single file is
// joined into one here, so that model.safetensors is where users expect it. The
// optimizer's shards stay: a run that resumes fetches parts of them.
//
// Threads: blocking. Errors: a failure names the file; the shards stay.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>

namespace shoal::actors {

/// Joins the model's shards in a directory into model.safetensors, if there are
/// several and together they have at most `bytes_max` of data.
model::status
join_shards(const std::filesystem::path& directory, std::uint64_t bytes_max);
model::status join_shards(const std::filesystem::path& directory);

} // namespace shoal::actors
