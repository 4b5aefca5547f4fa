// runtime/observe/flight_record.hpp -- the latest events of a node, to explain
// stalls.
//
// A ring in memory, to which actors add what they begin and what has ended.
// When a job stalls every peer of it writes its ring to <data dir>/flight/: one
// JSON object per line, oldest first, after a first line with the reason. It
// shows which peer was waiting for which.
//
//   {"reason": "...", "job": "...", "peer": "...", "unix_us": ..., ...}
//   {"unix_us": 1763777000123456, "event": "forward", "job": 7, "step": 41,
//    "a": 0, "b": 3, "peer": "9f86d081"}
//
// `a` and `b` are two numbers of the event: the stage and the microbatch of
// "forward", the unit of "reduced".
//
// Threads: any. Memory: events_kept x 64 bytes. Cost of add: a lock, a clock.
// Errors:  write: std::errc. The newest files_kept files stay.
#pragma once

#include "runtime/core/ids.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::runtime {

class flight_record {
public:
  static constexpr std::size_t events_kept = 2000;
  static constexpr std::size_t files_kept = 16;

  struct event {
    std::int64_t unix_us = 0;
    const char* what = nullptr; ///< a constant text
    core::job_id job = 0;
    std::uint64_t step = 0;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::array<std::uint8_t, 4> peer{}; ///< the first bytes; zeros: none
  };

  /// `what` must outlive the record: a literal.
  void add(const char* what, core::job_id job = 0, std::uint64_t step = 0,
           std::uint64_t a = 0, std::uint64_t b = 0,
           const core::peer_id& peer = {}) noexcept;

  /// Oldest first.
  std::vector<event> events() const;

  /// Content of the first line of a file.
  struct reason {
    std::string text;
    core::job_id job = 0;
    std::uint64_t step = 0;
    core::peer_id peer{};                 ///< the peer that wrote the record
    std::vector<std::string> under_way{}; ///< transfers, as text
  };
  /// Writes a new file below `folder`, which is created. @returns its path
  std::filesystem::path write(const std::filesystem::path& folder,
                              const reason& why, std::error_code& error) const;

private:
  mutable std::mutex mutex_;
  std::vector<event> ring_; ///< grows to events_kept
  std::uint64_t added_ = 0;
};

} // namespace shoal::runtime
