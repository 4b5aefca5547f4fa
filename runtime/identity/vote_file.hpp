// runtime/identity/vote_file.hpp -- stores a peer's view, its vote and its cluster keys.
//
// A peer must not forget these. There is one file for each kind of record, with
// reserved space (slot_file.hpp), so that a full disk does not matter. A
// damaged file is an error, not an empty history, since a peer that has
// forgotten its vote must not vote again.
//
// Why votes are stored: a process that restarts with the view that it left
// votes for its entry in that view. Otherwise a shoal could never decide
// anything again once all of its processes, or a majority, were killed. So the
// process must know what the process before it has said. The alternative is to
// say nothing in its name, but a process cannot choose that afterwards, when it
// finds an old record and no sign that more was said. Therefore a vote that is
// not stored is not sent, even though it would be harmless from a new peer with
// a new incarnation.
//
// If the disk accepts no writes (read-only, broken), perhaps for all peers
// alike, a shoal that waited for it would stop at its first death. The records
// must outlive the process, not the disk. So they then go to a spare folder in
// memory (spare_folders), where a restarted process finds them by their
// sequence number, whatever the disk contains; and they return to the disk when
// it works again (retry). If the spare folders fail, too, the caller gets the
// error: it withholds what it would have sent (core/cluster/outbox.hpp), and
// tries again.
//
// Not promised: a machine that loses its power while its disk accepts no writes
// has lost what it said during that time, and returns in the state before. To
// contradict itself, it must then meet a quorum of the old view that has not
// heard of a newer view either, while all peers that have are cut off.
//
// Threads: one at a time; calls block on the disk.
// Errors:  load() throws setup_error that names the file and the remedy.
#pragma once

#include "runtime/core/cluster/events.hpp"
#include "runtime/identity/slot_file.hpp"

#include <filesystem>
#include <functional>
#include <system_error>

namespace shoal::runtime {

class vote_file {
public:
  /// Keeps the files in `folder`, which must exist; empty: keeps nothing.
  /// `spare`: folders that need not exist, tried in turn while `folder` fails.
  /// `lost`: whether the folder was removed, so that what is there now is another
  /// peer's: then it is left as it is. May be empty.
  explicit vote_file(std::filesystem::path folder,
                     std::vector<std::filesystem::path> spare = {},
                     std::function<bool()> lost = {});

  core::cluster::history load();

  /// Renames view and vote in a folder, which are another peer's, to *.former.
  /// @returns whether there were any. Throws std::filesystem::filesystem_error
  static bool set_aside(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }

  /// @returns an error if the record is stored nowhere; otherwise it is stored,
  /// and
  ///          disk_error() tells whether it is on the disk
  [[nodiscard]] std::error_code write(const core::cluster::record& r);

  /// Writes the records that are only in a spare folder to the disk.
  void retry();

  /// Why the disk does not have all records; none if it has them.
  std::error_code disk_error() const;
  /// The spare folder of those records; empty: nowhere yet.
  const std::filesystem::path& spare_in_use() const { return spare_in_use_; }

  /// Forgets view and vote. The keys stay: this peer may return.
  [[nodiscard]] std::error_code erase();

private:
  struct kind {
    slot_file disk;
    std::uint64_t sequence = 0;
    std::vector<std::byte> away; ///< the record, if the disk does not have it
    std::error_code error;       ///< of the disk, at its last write
  };

  bool lost() const { return lost_ && lost_(); }
  std::error_code write_to_disk(kind& k);
  std::error_code store(kind& k);
  void clear_spare(const kind& k);

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> spare_;
  std::filesystem::path spare_in_use_;
  std::function<bool()> lost_;
  std::vector<kind> kinds_;
};

/// Folders for a peer's records while its disk accepts no writes: its own, in
/// memory if the system has any that outlives a process.
std::vector<std::filesystem::path> spare_folders(const core::peer_id& self);

} // namespace shoal::runtime
