// actors/checkpoint/blob_set.hpp -- makes sure that a set of blobs is in the
// own store.
//
// Fetches what is missing: single blobs a few at once, then one blob after the
// other, since a manifest's files are known only when the manifest is here, and
// the files of given tensors only when the indexes are here.
//
// Threads: any; `done` runs on some thread and only posts a message.
// Errors:  the first failure ends it, unless set otherwise.
//          std::errc::bad_message: a manifest or an index is invalid, the same on
//          all peers.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/state/part_set.hpp"
#include "runtime/model/unit_state.hpp" // purpose

#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::runtime {
class context;
}

namespace shoal::actors {

struct blob_set {
  std::vector<core::blob_digest> blobs; ///< single ones
  /// Fetches the single ones that there are before it fails for others.
  bool as_many_as_there_are = false;
  std::vector<core::blob_digest> manifests; ///< with all their files
  /// With all their files but those of an optimizer.
  std::vector<core::blob_digest> weights;
  /// The files of a manifest that contain given tensors, as files_with() chooses them.
  struct part {
    core::blob_digest manifest{};
    std::vector<std::string> tensors;
    model::purpose purpose = model::purpose::training;
  };
  std::vector<part> parts;
  /// The files of a manifest but the shards of other parts.
  struct share {
    core::blob_digest manifest{};
    std::size_t units = 0; ///< of the model
    core::part_set parts;
  };
  std::vector<share> shares;
  /// The files of a manifest that are read with a model's text.
  std::vector<core::blob_digest> texts;
  /// The first peer to ask, by blob or by the name of a manifest's file.
  std::map<core::blob_digest, core::peer_id> first;
  std::map<std::string, core::peer_id> first_by_name;
  bool memory_will_do = false; ///< if the own disk refuses
  /// Which blobs must be held in memory, since the disk is for others; any thread.
  std::function<bool(const core::blob_digest&)> only_passes;
  bool leave_out_passing = false; ///< of `parts`: fetches none of these
};

/// Whether the store has everything in `set`.
bool have_all(runtime::context& node, const blob_set& set);

/// Whether an error of a fetch comes from the own disk: no other holder helps.
bool refused_by_disk(std::error_code error);

void fetch_all(runtime::context& node, blob_set set,
               std::vector<core::peer_id> holders,
               std::function<void(std::error_code)> done);

} // namespace shoal::actors
