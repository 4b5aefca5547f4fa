// actors/checkpoint/checkpoint_export.hpp -- shards of a model as people expect them.
//
// A checkpoint has a file for each unit. That is what loaders of Hugging Face
// models read, too; but one of a size that transformers would write as a
// single file becomes one here, so that model.safetensors is where people look
// for it. The optimizer's shards stay: who resumes fetches parts of them.
//
// Threads: blocking. Errors: a failure names the file; the shards stay.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>

namespace shoal::actors {

/// Joins the model's shards in a directory into model.safetensors, if there
/// are several and all have at most `bytes_max` of data.
model::status
join_shards(const std::filesystem::path& directory, std::uint64_t bytes_max);
model::status join_shards(const std::filesystem::path& directory);

} // namespace shoal::actors
