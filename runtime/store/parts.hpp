// runtime/store/parts.hpp -- the bytes received so far of unfinished blobs.
//
// A fetch that was interrupted, also by the end of its process, continues where
// it stopped: its bytes so far are in a file named by the blob's digest. They
// are not synced; if a power failure damages them, the hash of the complete
// blob shows it. One writer at a time has a part. Old parts are removed when
// the store is opened and when another part is begun.
//
// Threads: any. All functions but bytes() block on the disk.
// Errors:  none; a part that cannot be opened or kept counts as absent.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/files/posix.hpp"

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
  /// The file, and the right to write it while this object lives. It may
  /// outlive the part_files object.
  class part {
  public:
    part(std::shared_ptr<writers> all, const core::blob_digest& digest,
         std::filesystem::path file, posix::descriptor at_end);
    ~part();
    part(const part&) = delete;
    part& operator=(const part&) = delete;

    const std::filesystem::path file;
    posix::descriptor fd; ///< at the end of the existing bytes

  private:
    std::shared_ptr<writers> all_;
    core::blob_digest digest_;
  };

  /// Removes parts that are too old.
  explicit part_files(std::filesystem::path folder);

  /// The bytes of a part; 0: there is none.
  std::uint64_t bytes(const core::blob_digest& digest) const;
  /// Null while another writer has it, or if the disk refuses it.
  std::unique_ptr<part> begin(const core::blob_digest& digest);
  /// Like begin(), but after the existing bytes. Null if there are none.
  std::unique_ptr<part> go_on(const core::blob_digest& digest);
  /// Not while it has a writer. @returns the bytes that it had
  std::uint64_t remove(const core::blob_digest& digest);

  /// Those that are too old. @returns their bytes
  std::uint64_t remove_old();

  static constexpr std::chrono::hours age_max{24};
  static constexpr std::size_t files_max = 64; ///< the newest stay

private:
  std::filesystem::path file_of(const core::blob_digest& digest) const;
  std::unique_ptr<part> open(const core::blob_digest& digest, int flags);

  std::filesystem::path folder_;
  std::shared_ptr<writers> writers_ = std::make_shared<writers>();
};

} // namespace shoal::runtime
