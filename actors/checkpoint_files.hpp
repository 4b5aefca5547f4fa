// actors/checkpoint_files.hpp -- a model with its training state, as blobs.
//
// A checkpoint is a Hugging Face directory plus optimizer.safetensors (AdamW's
// moments, as exp_avg.NAME and exp_avg_sq.NAME), each file a blob, and a
// manifest blob that names them and the step. Weights to start from are the
// same thing at step 0 without moments. A peer that has the manifest and its
// files can resume, export or serve them.
//
// Threads: blocking; on the disk queue.
// Errors:  a failure names the file.
#pragma once

#include "actors/checkpoint_manifest.hpp"
#include "runtime/model/hf_directory.hpp"
#include "runtime/model/result.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace shoal::runtime {
class store;
}

namespace shoal::actors {

/// A unit's state as copy_state_out() gives it.
struct unit_snapshot {
  model::unit_index unit = 0;
  std::span<const float> state; ///< parameters, first, second moment
};

struct published {
  core::blob_digest manifest{};
  std::uint64_t bytes = 0;
};

/// Writes the files of a step below `scratch`, puts them and a manifest into
/// the store, and removes `scratch` again.
/// @pre every unit once, in order
model::result<published>
publish_checkpoint(std::uint64_t step, const model::unit_layout& layout,
                   std::span<const unit_snapshot> units,
                   const std::filesystem::path& scratch, runtime::store& to);

/// Puts the files of a directory (a Hugging Face model, or a checkpoint that
/// was exported) into the store. Step 0 if it has no optimizer state.
model::result<published>
import_directory(const std::filesystem::path& directory, std::uint64_t step,
                 runtime::store& to);

/// Reads a manifest from the store.
model::result<manifest>
read_manifest(const core::blob_digest& digest, runtime::store& from);

/// Whether the store has the manifest and all its files; `missing` gets those
/// it lacks (the manifest alone if that is missing).
bool complete(const core::blob_digest& digest, runtime::store& from,
              std::vector<core::blob_digest>* missing = nullptr);

/// Writes the manifest's files into a directory, for readers of files.
model::status export_files(const manifest& m, runtime::store& from,
                           const std::filesystem::path& directory);

/// Loads one unit from a directory made by export_files().
model::status
load_unit(const std::filesystem::path& directory, model::unit_state& into);

} // namespace shoal::actors
