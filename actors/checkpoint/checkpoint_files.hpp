// actors/checkpoint/checkpoint_files.hpp -- a model with its training state, as
// blobs.
//
//   model-0000i-of-0000n.safetensors      parameters of unit i - 1 of n
//   optimizer-0000i-of-0000n.safetensors  its moments, as exp_avg.NAME and
//                                         exp_avg_sq.NAME
//   model.safetensors.index.json, optimizer.safetensors.index.json
//   config.json, generation_config.json, tokenizer_config.json
//
// A checkpoint is a Hugging Face directory in shards, with each file a blob,
// and a manifest blob that lists them and the step. A shard depends only on the
// state, not on the peer that writes it. Initial weights have the same form, at
// step 0 and without moments. They and older checkpoints may also be single
// files (model.safetensors, optimizer.safetensors) or be split differently:
// with the manifest and the files that the indexes name for a unit, a peer can
// load the unit.
//
// Threads: blocking; on the disk queue.
// Errors:  a failure names the file.
#pragma once

#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "runtime/core/state/part_set.hpp"
#include "runtime/core/training/job_messages.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/unit_state.hpp"

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace shoal::runtime {
class store;
}

namespace shoal::actors {

/// A unit's state as returned by copy_state_out().
struct unit_snapshot {
  model::unit_index unit = 0;
  std::span<const float> state; ///< parameters, first, second moment
};

struct published {
  core::blob_digest manifest{};
  std::uint64_t bytes = 0;
};

/// Puts the two files of a unit into the store, unless they are there intact.
/// @param before is called with each name before anything of that name is
/// written; its failure ends the attempt
model::result<core::written_shard> write_shard(
  const model::unit_layout& layout, const unit_snapshot& unit,
  runtime::store& to,
  const std::function<std::error_code(const core::blob_digest&)>& before);

/// Puts the indexes, the small files and the manifest into the store: from then
/// on the checkpoint exists.
/// @param byte_tokenizer the model's tokens are bytes: write the files that say
/// so
/// @param carried files of the initial model, in the store; they replace small
/// files of the same name
/// @pre one shard for each unit, in order
model::result<published>
publish_shards(std::uint64_t step, const model::unit_layout& layout,
               std::span<const core::written_shard> shards, runtime::store& to,
               bool byte_tokenizer = true,
               std::span<const manifest_file> carried = {});

/// Reads a manifest from the store.
model::result<manifest>
read_manifest(const core::blob_digest& digest, runtime::store& from);

/// The files of a manifest that a store with these parts has: all but the shards
/// of other parts. @param units of the model
std::vector<manifest_file> files_of_parts(const manifest& m, std::size_t units,
                                          const core::part_set& parts);

/// The parts of which the store lacks shards. Nothing if it lacks the manifest
/// or a file that belongs to no part.
std::optional<core::part_set>
parts_lacking(const core::blob_digest& digest, std::size_t units,
              runtime::store& from);

/// Writes small files of a checkpoint that the store lacks and the job determines:
/// one damaged blob would spoil all of its checkpoints here.
void mend_small_files(const core::blob_digest& digest,
                      const model::unit_layout& layout, bool byte_tokenizer,
                      runtime::store& in);

/// Whether the store has the manifest and all its files; `missing` gets those
/// that it lacks (only the manifest if that is missing).
bool complete(const core::blob_digest& digest, runtime::store& from,
              std::vector<core::blob_digest>* missing = nullptr);

/// Hashes a checkpoint's manifest and files that are here again; damaged ones
/// are set aside.
/// @returns the names of the damaged ones, also of earlier ones
std::vector<std::string>
verify_checkpoint(const core::blob_digest& digest, runtime::store& in);

/// The names of the tensors from which a unit is loaded, with all alternatives;
/// a tied copy is loaded from its original.
std::vector<std::string>
tensors_of(const model::unit_layout& layout, model::unit_index unit);

/// The files of a checkpoint that contain given tensors. None from the files
/// with which a run from random weights begins (holds_weights, step 0), and none of
/// the optimizer's for serving: a model that is served keeps no others.
struct chosen_files {
  std::vector<manifest_file> files;
  /// Indexes that the store lacks: `files` is then incomplete.
  std::vector<core::blob_digest> unread;
};
model::result<chosen_files>
files_with(const manifest& m, std::span<const std::string> tensors,
           model::purpose purpose, runtime::store& in);

/// The contents of a unit's files.
struct unit_files {
  std::vector<model::file_in_memory> files;
  bool weights = true;  ///< false: initial files of a run from random weights
  bool moments = false; ///< the checkpoint has them
  /// Names of files that were damaged, and set aside, or are missing: the
  /// others are then not read either.
  std::vector<std::string> damaged;
};
/// Reads the files from which `unit` is loaded. Each is hashed, except those in
/// `verified`, to which verified files are added.
model::result<unit_files>
read_unit_files(const core::blob_digest& digest,
                const model::unit_layout& layout, model::unit_index unit,
                model::purpose purpose, runtime::store& in,
                std::set<core::blob_digest>& verified);

/// Loads a unit; moments are set to 0 if the checkpoint has none.
model::status load_unit(const unit_files& from, model::unit_state& into);

} // namespace shoal::actors
