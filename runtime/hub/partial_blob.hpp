// runtime/hub/partial_blob.hpp -- a file that is being downloaded: the bytes so
// far, and their hash.
//
// They lie in HASH.incomplete beside the blob and stay there until they are
// complete, or are found to be wrong. The next download goes on behind them.
//
// Threads: one for each object; one process for each file (hub_cache::lock()).
// Errors:  a failure names the file and the system's reason.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/hub/blob_hash.hpp"
#include "runtime/hub/hub_listing.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>

namespace shoal::hub {

class partial_blob {
public:
  /// @param blob where the file goes
  /// @param shared  whether other processes keep away from HASH.incomplete; if
  ///                not, the file has a name of this process and is not resumed
  partial_blob(std::filesystem::path blob, const hub_file& file, bool shared);
  /// Removes a file that nobody can go on with.
  ~partial_blob();
  partial_blob(const partial_blob&) = delete;
  partial_blob& operator=(const partial_blob&) = delete;

  /// Reads what an earlier download has left. @param goes_on  is called again
  /// and again with the bytes read; false ends that
  model::status open(const std::function<bool(std::uint64_t)>& goes_on);
  /// Bytes so far.
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Whether some of them are of an earlier download.
  bool resumed() const noexcept { return resumed_; }

  /// @pre bytes() + more.size() is at most the file's size
  model::status add(std::span<const std::byte> more);
  model::status restart();

  /// Makes it the blob, on the disk for good, if all bytes have come and have
  /// the hash that the hub names. @returns false if they have another
  model::result<bool> finish();

private:
  std::filesystem::path blob_, place_;
  const hub_file& file_;
  bool shared_;
  runtime::posix::descriptor fd_;
  std::optional<blob_hash> hash_;
  std::uint64_t bytes_ = 0;
  bool resumed_ = false;
};

} // namespace shoal::hub
