// runtime/store/parts.hpp -- what has come so far of blobs on their way.
//
// A fetch that is cut, be it by the end of its process, goes on where it
// stopped: its bytes so far are in a file that the blob's digest names. They
// are not synced; what a power failure makes of them, the hash of the whole
// finds out. One writer at a time has a part. Old ones go when the store is
// opened and when another is begun.
//
// Threads: any. All but bytes() block on the disk.
// Errors:  none; a part that cannot be had, or kept, is none.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/posix.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>

namespace shoal::runtime {

/// The parts of one store; private to runtime/store.
class part_files {
  struct writers {
    std::mutex mutex;
    std::set<core::blob_digest> now;
  };

public:
  /// The file, and the right to write it until this is gone. May outlive the
  /// folder's object.
  class part {
  public:
    part(std::shared_ptr<writers> all, const core::blob_digest& digest,
         std::filesystem::path file, posix::descriptor at_end);
    ~part();
    part(const part&) = delete;
    part& operator=(const part&) = delete;

    const std::filesystem::path file;
    posix::descriptor fd; ///< at the end of what is there

  private:
    std::shared_ptr<writers> all_;
    core::blob_digest digest_;
  };

  /// Removes what has been here for too long.
  explicit part_files(std::filesystem::path folder);

  /// 0: nothing of it is here.
  std::uint64_t bytes(const core::blob_digest& digest) const;
  /// Null while somebody has it, or where the disk refuses it.
  std::unique_ptr<part> begin(const core::blob_digest& digest);
  /// As begin(), behind what is there. Null if nothing is.
  std::unique_ptr<part> go_on(const core::blob_digest& digest);
  void remove(const core::blob_digest& digest);

  static constexpr std::chrono::hours age_max{24};
  static constexpr std::size_t files_max = 64; ///< the newest stay

private:
  std::filesystem::path file_of(const core::blob_digest& digest) const;
  std::unique_ptr<part> open(const core::blob_digest& digest, int flags);
  void remove_old();

  std::filesystem::path folder_;
  std::shared_ptr<writers> writers_ = std::make_shared<writers>();
};

} // namespace shoal::runtime
