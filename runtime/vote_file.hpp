// runtime/vote_file.hpp -- what a peer must not forget: its view, its vote and
// its cluster keys.
//
// One file for each kind of record, with room reserved (node/slot_file.hpp), so
// that a full disk does not matter. A damaged file is an error and not an empty
// history, since a peer that has forgotten its vote must not vote again.
//
// Why votes are stored: a process that starts again with the view that it left
// votes for its entry in it, or a shoal whose processes were all killed, or
// whose majority was, could never decide anything again. So it has to know what
// the process before it said; to say nothing in its name is the alternative,
// and cannot be chosen after the fact, by a process that finds an old record
// and no sign that more was said. That is why a vote that is not stored is not
// told, even though as a new peer, with a new incarnation, it were harmless.
//
// Where the disk takes nothing (read-only, broken), all the same to all peers
// perhaps, a shoal that waited for it would stop at its first death. What has
// to be remembered must outlive the process, not the disk: so the records then
// go to a spare folder in memory (spare_folders), where a process that starts
// again finds them, by their sequence number, whatever the disk says; and back
// to the disk when that works again (retry). If the spare folders fail too the
// error is the caller's: it withholds what it would have told (core/cluster/
// outbox.hpp), and asks again.
//
// Not promised: a machine that loses its power while its disk takes nothing
// has lost what it said meanwhile, and comes back as it was before. To
// contradict that it must then meet a quorum of the old view that has not heard
// of a newer one either, while all who have are cut off.
//
// Threads: one at a time; calls block on the disk.
// Errors:  load() throws node_error that names file and remedy.
#pragma once

#include "runtime/core/cluster/events.hpp"
#include "runtime/node/slot_file.hpp"

#include <filesystem>
#include <system_error>

namespace shoal::runtime {

class vote_file {
public:
  /// Keeps the files in `folder`, which exists; empty: keeps nothing. `spare`:
  /// folders that need not exist, tried in turn while `folder` fails.
  explicit vote_file(std::filesystem::path folder,
                     std::vector<std::filesystem::path> spare = {});

  core::cluster::history load();

  const std::filesystem::path& folder() const { return folder_; }

  /// @returns an error if the record is stored nowhere; else it is, and
  ///          disk_error() tells whether that is on the disk
  [[nodiscard]] std::error_code write(const core::cluster::record& r);

  /// Brings to the disk what is stored in a spare folder only.
  void retry();

  /// Why the disk does not have all records; none if it has.
  std::error_code disk_error() const;
  /// Where those are that it does not have; empty: nowhere yet.
  const std::filesystem::path& spare_in_use() const { return spare_in_use_; }

  /// Forgets view and vote; the keys stay: this peer may come back.
  [[nodiscard]] std::error_code erase();

private:
  struct kind {
    slot_file disk;
    std::uint64_t sequence = 0;
    std::vector<std::byte> away; ///< the record, if the disk does not have it
    std::error_code error;       ///< of the disk, at its last write
  };

  std::error_code store(kind& k);
  void clear_spare(const kind& k);

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> spare_;
  std::filesystem::path spare_in_use_;
  std::vector<kind> kinds_;
};

/// Where a peer's records go while its disk takes none: folders of its own, in
/// memory if the system has any that outlives a process.
std::vector<std::filesystem::path> spare_folders(const core::peer_id& self);

} // namespace shoal::runtime
