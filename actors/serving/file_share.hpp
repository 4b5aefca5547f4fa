// actors/serving/file_share.hpp -- what this peer keeps of the files of a served
// model, for the work that fetches and loads them.
//
// Threads: any.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

namespace shoal::actors {

class file_share {
public:
  /// @param kept files that belong on the own disk
  /// @param short_of_room the disk has not the room for all files of the model
  void set(std::set<core::blob_digest> kept, bool short_of_room) {
    const std::lock_guard lock(mutex_);
    known_ = true;
    kept_ = std::move(kept);
    short_of_room_ = short_of_room;
  }
  /// Whether it has been set.
  [[nodiscard]] bool known() const {
    const std::lock_guard lock(mutex_);
    return known_;
  }
  /// Whether a file must not take room on the disk: it is not kept here, and those
  /// that are need the room.
  [[nodiscard]] bool only_passes(const core::blob_digest& file) const {
    const std::lock_guard lock(mutex_);
    return short_of_room_ && !kept_.contains(file);
  }

private:
  mutable std::mutex mutex_;
  bool known_ = false;
  bool short_of_room_ = false;
  std::set<core::blob_digest> kept_;
};

} // namespace shoal::actors
