// runtime/hub/download_room.hpp -- room on a disk for what downloads of this process
// still need.
//
// Of two downloads that begin side by side each would find the same room free, and
// both would fail when it is used up. So the first one reserves what it lacks, and the
// second one is refused before it begins. A file that both want is counted once.
//
// Threads: any; each object one at a time. Ownership: the room goes with the object.
// Limits:  downloads of other processes are not known.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace shoal::hub {

class download_room {
public:
  /// Bytes that are lacking, by file: the same name is the same file.
  using lacking = std::map<std::string, std::uint64_t>;

  /// @param folder downloads to other ones do not count
  explicit download_room(std::filesystem::path folder);
  ~download_room();
  download_room(const download_room&) = delete;
  download_room& operator=(const download_room&) = delete;

  /// Adds to what is reserved. @param free asked under a lock; errors: unknown
  /// @returns why there is too little room, with what others have reserved
  model::status
  reserve(const lacking& files,
          const std::function<model::result<std::uint64_t>()>& free);
  /// A file lacks only that much by now.
  void lacks(const std::string& file, std::uint64_t bytes);

private:
  const std::filesystem::path folder_;
  lacking own_; ///< guarded by a lock of all
};

} // namespace shoal::hub
