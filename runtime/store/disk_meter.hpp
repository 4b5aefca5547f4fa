// runtime/store/disk_meter.hpp -- measures the progress and the speed of a disk.
//
// The store reports each piece of work on a file, and the bytes of it as they
// are done. So an observer can tell a slow disk from one that hangs
// (runtime/core/training/stall_watch.hpp).
//
// Units:   nanoseconds of the steady clock; bytes per second.
// Threads: any.
// Cost:    a few atomic operations for each piece and each block of it.
#pragma once

#include "runtime/core/ids.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace shoal::runtime {

class disk_meter {
public:
  /// Below this, the fixed cost of a file would be measured, not the disk.
  static constexpr std::uint64_t rate_bytes_min = std::uint64_t{1} << 20;
  static constexpr std::size_t rates_kept = 16;

  struct reading {
    std::uint64_t bytes = 0;        ///< moved in total
    core::nanoseconds moved_at = 0; ///< when the latest moved; 0: none yet
    std::uint64_t piece_bytes = 0;  ///< of the piece in progress; 0: none
    std::uint64_t bytes_per_s = 0;  ///< the slowest recent rate; 0: not known
  };
  reading read() const;

  /// One call that reads or writes `bytes` of a file. If there are several at a
  /// time, piece_bytes is that of the latest.
  class piece {
  public:
    piece(disk_meter& meter, std::uint64_t bytes);
    ~piece();
    piece(const piece&) = delete;
    piece& operator=(const piece&) = delete;
    /// `bytes` more of them are done.
    void moved(std::uint64_t bytes);

  private:
    disk_meter& meter_;
    std::uint64_t bytes_;
    core::nanoseconds began_;
  };

private:
  void took(std::uint64_t bytes, core::nanoseconds time);

  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<core::nanoseconds> moved_at_{0};
  std::atomic<std::uint64_t> piece_bytes_{0};
  mutable std::mutex mutex_;
  std::array<std::uint64_t, rates_kept> rates_{}; ///< 0: none
  std::size_t next_rate_ = 0;
};

} // namespace shoal::runtime
