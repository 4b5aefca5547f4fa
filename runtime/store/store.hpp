// runtime/store/store.hpp -- content-addressed blobs on this node's disk.
//
// A blob is named by the SHA-256 of its bytes. Blobs are written under a
// temporary name, synced and renamed, so a blob with a name is complete; it is
// verified again when it is first read. Peers fetch blobs from each other in
// chunks over control messages (runtime/node); every holder of a blob serves
// it.
//
// Threads: any; calls block on the disk, so actors call them from device or
//          I/O work, not from handlers (contains() is cheap).
// Errors:  std::error_code of the file system; errc::corrupt if a blob's bytes
//          do not hash to its name (the blob is then set aside).
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/store/disk_meter.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::runtime {

/// A blob mapped read-only; unmapped when its last owner releases it.
class blob {
public:
  virtual ~blob() = default;
  virtual std::span<const std::byte> bytes() const noexcept = 0;
};

/// Writes one blob piece by piece.
class blob_writer {
public:
  /// Without commit() nothing remains; but see store::write_of().
  virtual ~blob_writer() = default;
  [[nodiscard]] virtual std::error_code
  append(std::span<const std::byte> bytes) = 0;
  /// @returns the digest; with `expected` set, errc::corrupt if it differs.
  [[nodiscard]] virtual std::error_code
  commit(core::blob_digest& digest,
         const std::optional<core::blob_digest>& expected) = 0;
  /// The bytes written so far.
  virtual std::uint64_t written() const = 0;
};

class store {
public:
  /// Opens or makes the store in `folder`. Throws std::system_error.
  static std::unique_ptr<store> open(const std::filesystem::path& folder);
  virtual ~store() = default;

  virtual bool contains(const core::blob_digest& digest) const = 0;
  virtual std::uint64_t size(const core::blob_digest& digest) const = 0;
  /// The time since it was written; 0 if it is not here.
  virtual std::chrono::seconds age(const core::blob_digest& digest) const = 0;
  virtual std::unique_ptr<blob_writer> write() = 0;

  /// From now on, if the disk refuses this blob, it is held in memory, as long
  /// as all such blobs stay within memory_bytes_max. For data that this node
  /// cannot do without. Until the process ends, the store treats it like any
  /// other blob.
  virtual void may_stay_in_memory(const core::blob_digest&) {}
  /// The same without a look at the disk, which others' data need: until let_go(),
  /// remove() or belongs_on_disk(). The limit is another (held_blobs.hpp).
  virtual void stay_in_memory(const core::blob_digest& digest) {
    may_stay_in_memory(digest);
  }
  /// What was to stay in memory is data of this node now: settle() writes it.
  virtual void belongs_on_disk(const core::blob_digest&) {}
  /// Drops a blob if it was to stay in memory; else does nothing.
  virtual void let_go(const core::blob_digest&) {}
  /// Like write(), for a blob of this name. The written bytes remain without
  /// commit(), also after this process, unless the disk refused some.
  virtual std::unique_ptr<blob_writer> write_of(const core::blob_digest&) {
    return write();
  }
  /// The bytes that a writer has left of an unfinished blob. Cheap.
  virtual std::uint64_t begun(const core::blob_digest&) const { return 0; }
  /// Like write_of(), but continues after those bytes, which it reads. Null:
  /// there are none.
  virtual std::unique_ptr<blob_writer> go_on(const core::blob_digest&) {
    return nullptr;
  }
  virtual bool in_memory(const core::blob_digest&) const { return false; }
  /// Writes blobs in memory to the disk, as many as it accepts now.
  virtual void settle() {}

  [[nodiscard]] virtual std::shared_ptr<const blob>
  read(const core::blob_digest& digest, std::error_code& error) = 0;
  /// Hashes a blob again, even if this process has read it before.
  /// @returns errc::corrupt if the hash differs (the blob is then set aside),
  /// or errc::not_found
  [[nodiscard]] virtual std::error_code
  verify(const core::blob_digest& digest) = 0;
  /// Whether a blob of that name was corrupt and has not been written again.
  virtual bool set_aside(const core::blob_digest& digest) const = 0;
  virtual std::error_code remove(const core::blob_digest& digest) = 0;
  /// For another peer, which may remove its copy now: for pledged_for,
  /// remove_unless_pledged() keeps this one, unless that job has ended.
  /// @returns false if the disk does not have the blob, or has pledged it to too many
  virtual bool pledge(const core::blob_digest& digest, core::job_id) {
    return contains(digest) && !in_memory(digest);
  }
  /// @param ended whether a job has ended, so that no pledge to it counts
  /// @returns std::errc::device_or_resource_busy if it is pledged
  [[nodiscard]] virtual std::error_code
  remove_unless_pledged(const core::blob_digest& digest,
                        const std::function<bool(core::job_id)>& /*ended*/) {
    return remove(digest);
  }
  /// A client has uploaded a blob, and may be about to submit a job with it
  /// (claimed_blobs.hpp).
  virtual void claim(std::uint64_t /*client*/, const core::blob_digest&) {}
  /// It uploads a further blob.
  virtual void renew_claims(std::uint64_t /*client*/) {}
  /// It has submitted this job with what it has uploaded.
  virtual void submitted(std::uint64_t /*client*/, core::job_id) {}
  /// It has gone, and has submitted nothing.
  virtual void drop_claims(std::uint64_t /*client*/) {}
  /// Whether a client needs this blob for a job that a view does not list yet.
  /// @param lists whether the view lists a job
  virtual bool
  claimed(const core::blob_digest&,
          const std::function<bool(core::job_id)>& /*lists*/) const {
    return false;
  }
  virtual std::vector<core::blob_digest> list() const = 0;
  /// The file system of the store, for this user, or what the store may take of
  /// it. All 0: not known.
  struct space {
    std::uint64_t free_bytes = 0; ///< 0 for a while after the disk has refused
    std::uint64_t all_bytes = 0;
    std::uint64_t reserve_bytes = 0; ///< of the free ones, left to others
    /// What may be filled with data that other peers could have instead.
    [[nodiscard]] std::uint64_t to_fill() const noexcept {
      return free_bytes - std::min(free_bytes, reserve_bytes);
    }
  };
  virtual space room() const { return {}; }
  /// The bytes of all files of the store.
  virtual std::uint64_t used_bytes() const { return 0; }
  /// Of these, the bytes of files that are being written, or were begun.
  virtual std::uint64_t unfinished_bytes() const { return 0; }
  /// The activity of its disk; blobs that were read before cost the disk
  /// nothing.
  virtual disk_meter::reading activity() const { return {}; }

  /// Share of a disk that is left to others if no amount was chosen for the store,
  /// but no more than the bytes below. A node that trains writes checkpoints, and a
  /// system whose disk is full misbehaves. A share, because disks may be small:
  /// 1/20 is what ext4 keeps for root; and 1 GiB suffices for a system on a disk of
  /// any size.
  static constexpr std::uint64_t reserve_share = 20;
  static constexpr std::uint64_t reserve_bytes_max = std::uint64_t{1} << 30;
  /// A disk that has refused to write is taken for full for this long, whatever it
  /// says of its room.
  static constexpr std::chrono::seconds full_after_refusal{60};

  /// Twice the time in which a peer acts on a pledge.
  static constexpr std::chrono::seconds pledged_for{60};

  static constexpr std::uint64_t blob_bytes_max = std::uint64_t{1} << 40;
  static constexpr std::uint64_t memory_bytes_max = std::uint64_t{1} << 30;
};

} // namespace shoal::runtime
