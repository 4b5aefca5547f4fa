// runtime/core/planning/file_keepers.hpp -- which peers keep which files of a served
// model.
//
// Each file is on copies_kept disks, as far as there is room: so no peer needs the
// disk for all of them. Every peer computes that by itself from the view, which has
// the room on each disk (device_profile::disk_bytes), and from the list of files.
// Files are immutable, so peers that see different views for a while only have some
// too many.
//
// The disks are tried in an order: that of the peer to which the files were
// uploaded, those of peers that run the model, all others by hash. The first of
// them that have room for all files take part; usually two. Among these a file goes
// to peers that run it, then to those with the largest hash of file and peer,
// weighted by room. So a peer that comes or goes moves few files. Source: D.
// Thaler, C. V. Ravishankar: Using Name-Based Mappings to Increase Hit Rates,
// IEEE/ACM ToN 6 (1998).
//
// F-1: a file has two keepers only if each file that fits somewhere has one.
// F-2: the files of a peer fit its room.
// F-3: where each file has a disk all the same, the largest file still fits a disk
//      that has not all files, at least the first: files that are kept elsewhere
//      pass through it.
//
// Threads: pure functions. Cost: files * log(files), and files * disks * 16 hashes;
// quadratic in the files that do not fit where they belong.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shoal::core {

struct assignment; // runtime/core/assignment.hpp
struct job_entry;  // runtime/core/job_entry.hpp
struct view;       // runtime/core/view.hpp

/// Number of disks that have each file.
inline constexpr std::size_t copies_kept = 2;

struct disk_room {
  peer_id peer{};
  std::uint64_t bytes = 0;
  friend bool operator==(const disk_room&, const disk_room&) = default;
};

/// The disks that keep the files of a served job, with their room for this job:
/// jobs divide a disk by the size of their files. All of them, if they have not the
/// room for copies_kept.
/// @param place where the job runs; may be null
[[nodiscard]] std::vector<disk_room>
disks_of(const view& v, const job_entry& job, const assignment* place);

/// A file of a model, and the peers that run what it has.
struct model_file {
  blob_digest digest{};
  std::uint64_t bytes = 0;
  std::vector<peer_id> runs;
};

/// The keepers of each file. @param disks as of disks_of()
[[nodiscard]] std::vector<std::vector<peer_id>>
file_keepers(std::span<const model_file> files,
             std::span<const disk_room> disks);

/// Why no two disks, or even none, could have each file of a served job, with what
/// each peer has; empty if they can, or if the size of its files is unknown.
/// @param copies that are needed
[[nodiscard]] std::string
lacks_disk(const view& v, const job_entry& job, std::size_t copies);

/// Why files cannot reach their keepers from the node that has them; empty if they
/// can: each has a disk, and there is room for it to pass (F-3).
/// @param uploads that node
[[nodiscard]] std::string
cannot_be_kept(const view& v, const job_entry& job,
               std::span<const model_file> files, const peer_id& uploads);

} // namespace shoal::core
