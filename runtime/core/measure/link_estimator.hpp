// runtime/core/measure/link_estimator.hpp -- estimates the speed of one fabric
// to one peer from its traffic.
//
// Its input are the start and the end of every transfer that is sent over that
// fabric; a transfer ends when the receiver confirms that all has arrived.
//
// Latency: half of the time of a transfer of at most small_bytes_max bytes that
// no other overlapped, thread wake-ups included. The estimate is the best of
// the latest latencies_kept, since a busy machine can only add to it.
// Bandwidth: bytes that arrived, over the time in which anything was in
// transit, for at least window_bytes_min bytes. Of a transfer that began before
// the window, the part of its time that is in the window counts. The estimate is
// the best of the latest windows_kept, since that time includes the receiver's
// delay until it makes room: in training, which of two peers comes first to a
// reduction says nothing about the link. But if the latest windows_alike took
// alike_ns_min together, and their rates differ by no more than a factor of 2,
// the link has become slow: what was measured before is forgotten. On a slow
// link 16 windows would take minutes, in which plans would go on to use its
// former speed.
//
// Units: nanoseconds of any clock that never goes back; bytes per second.
// Cost:  a few integer operations per transfer, no memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shoal::core {

class link_estimator {
public:
  static constexpr std::uint64_t small_bytes_max = 4096;
  /// Below this size the fixed cost of a transfer is measured, not the link.
  static constexpr std::uint64_t window_bytes_min = 512 << 10;
  /// A link that never pauses is measured in windows of this size.
  static constexpr std::uint64_t window_bytes_max = 64 << 20;
  /// A slow link that never pauses is measured in windows of this time, or more
  /// if window_bytes_min take longer.
  static constexpr std::int64_t window_ns_max = 5'000'000'000;

  static constexpr std::size_t latencies_kept = 16;
  static constexpr std::size_t windows_kept = 16;
  static constexpr std::size_t windows_alike = 2;
  static constexpr std::int64_t alike_ns_min = 10'000'000'000;

  /// One transfer in transit.
  struct ticket {
    std::int64_t since_ns = 0;
    std::uint64_t number = 0;
    bool alone = false;
  };

  ticket started(std::int64_t now_ns);
  /// @pre each ticket ends once; `arrived`: it was delivered completely
  void ended(const ticket& t, std::int64_t now_ns, std::uint64_t bytes,
             bool arrived);

  std::uint64_t latency_ns() const noexcept;  ///< 0: none
  std::uint64_t bytes_per_s() const noexcept; ///< 0: none
  /// Time since the last measurement. @pre latency or bandwidth is known
  std::int64_t age_ns(std::int64_t now_ns) const noexcept;

private:
  std::uint64_t in_window(const ticket& t, std::int64_t now_ns,
                          std::uint64_t bytes) const noexcept;
  void close_window(std::int64_t now_ns);
  void forget_if_slow();

  std::uint64_t under_way_ = 0;
  std::uint64_t starts_ = 0;
  std::int64_t window_since_ns_ = 0;
  std::uint64_t window_bytes_ = 0;
  std::array<std::uint64_t, latencies_kept> latencies_{}; ///< 0: none
  std::size_t next_latency_ = 0;
  std::array<std::uint64_t, windows_kept> rates_{}; ///< 0: none
  std::array<std::int64_t, windows_kept> times_{};  ///< of the windows
  std::size_t next_rate_ = 0;
  std::int64_t measured_ns_ = 0; ///< time of the newest sample
};

} // namespace shoal::core
