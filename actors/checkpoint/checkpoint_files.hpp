// actors/checkpoint/checkpoint_files.hpp -- a model with its training state, as blobs.
//
//   model-0000i-of-0000n.safetensors      parameters of unit i - 1 of n
//   optimizer-0000i-of-0000n.safetensors  its moments, as exp_avg.NAME and
//                                         exp_avg_sq.NAME
//   model.safetensors.index.json, optimizer.safetensors.index.json
//   config.json, generation_config.json, tokenizer_config.json
//
// A checkpoint is a Hugging Face directory in shards, each file a blob, and a
// manifest blob that names them and the step. A shard depends on the state
// alone, not on who writes it. Weights to start from are the same thing at
// step 0 without moments; they and older checkpoints may also be single files
// (model.safetensors, optimizer.safetensors) or be cut elsewhere: who has the
// manifest and the files that the indexes name for a unit can load the unit.
//
// Threads: blocking; on the disk queue.
// Errors:  a failure names the file.
#pragma once

#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "runtime/core/training/job_messages.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/unit_state.hpp"

#include <functional>
#include <set>
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

/// Puts the two files of a unit into the store, unless they are there whole.
/// @param before is told each name before anything of that name is written;
///        a failure of it ends the attempt
model::result<core::written_shard> write_shard(
  const model::unit_layout& layout, const unit_snapshot& unit,
  runtime::store& to,
  const std::function<std::error_code(const core::blob_digest&)>& before);

/// Puts the indexes, the small files and the manifest into the store: the
/// checkpoint exists from then on.
/// @param byte_tokenizer its tokens are bytes: write the files that say so
/// @param carried files of the model that it began with, in the store; they
///        take the place of small files of the same name
/// @pre one shard for each unit, in order
model::result<published>
publish_shards(std::uint64_t step, const model::unit_layout& layout,
               std::span<const core::written_shard> shards, runtime::store& to,
               bool byte_tokenizer = true,
               std::span<const manifest_file> carried = {});

/// Reads a manifest from the store.
model::result<manifest>
read_manifest(const core::blob_digest& digest, runtime::store& from);

/// Whether the store has the manifest and all its files; `missing` gets those
/// it lacks (the manifest alone if that is missing).
bool complete(const core::blob_digest& digest, runtime::store& from,
              std::vector<core::blob_digest>* missing = nullptr);

/// Hashes those of a checkpoint's manifest and files that are here again; what
/// lies is set aside.
/// @returns the names of what is, or was before
std::vector<std::string>
verify_checkpoint(const core::blob_digest& digest, runtime::store& in);

/// The tensors that a unit is loaded from, by each name that they may have; a
/// tied copy from its original.
std::vector<std::string>
tensors_of(const model::unit_layout& layout, model::unit_index unit);

/// The files of a checkpoint that have some tensors. None of what a run from
/// random weights begins with (holds_weights, step 0).
struct chosen_files {
  std::vector<manifest_file> files;
  /// Indexes that the store lacks: then `files` are not yet all.
  std::vector<core::blob_digest> unread;
};
model::result<chosen_files>
files_with(const manifest& m, std::span<const std::string> tensors,
           runtime::store& in);

/// A unit's files, read.
struct unit_files {
  std::vector<model::file_in_memory> files;
  bool weights = true;  ///< else it is what a run from random ones begins with
  bool moments = false; ///< the checkpoint has them
  /// Names of files that lied, and were set aside, or are missing: then the
  /// others are not read either.
  std::vector<std::string> damaged;
};
/// Reads the files that `unit` is loaded from. Each is hashed, but those in
/// `verified`, which grows.
model::result<unit_files>
read_unit_files(const core::blob_digest& digest,
                const model::unit_layout& layout, model::unit_index unit,
                runtime::store& in, std::set<core::blob_digest>& verified);

/// Loads a unit; moments become 0 if the checkpoint has none.
model::status load_unit(const unit_files& from, model::unit_state& into);

} // namespace shoal::actors
