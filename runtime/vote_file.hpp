// runtime/vote_file.hpp -- what a peer must not forget: its view, its vote and
// its cluster keys.
//
// One file for each kind of record, replaced in one step and synced before
// write() returns: so a crash leaves the old or the new one, never a mixture.
// A checksum finds what the disk itself has damaged; such a file is an error
// and not an empty history, since a peer that has forgotten its vote must not
// vote again.
//
// Format: magic 8, bytes of the record 8 (little end first), SHA-256 of the
//         record 32, the record as codec::encode_record makes it.
// Threads: one at a time; calls block on the disk.
// Errors:  load() throws node_error that names file and remedy.
#pragma once

#include "runtime/core/cluster/events.hpp"

#include <filesystem>
#include <system_error>

namespace shoal::runtime {

class vote_file {
public:
  /// Keeps the files in `folder`, which exists; empty: keeps nothing.
  explicit vote_file(std::filesystem::path folder);

  core::cluster::history load() const;
  [[nodiscard]] std::error_code write(const core::cluster::record& r);
  /// Forgets view and vote; the keys stay: this peer may come back.
  [[nodiscard]] std::error_code erase();

private:
  std::filesystem::path folder_;
};

} // namespace shoal::runtime
