// runtime/core/measure/link_meter.hpp -- how fast one way to one peer is, from traffic.
//
// Fed with the start and the end of every transfer that is sent that way, an
// end being the receiver's word that all has arrived.
//
// Latency: half of the time of a transfer of at most small_bytes_max bytes
// that no other overlapped, thread wake-ups included; the best of the latest
// latencies_kept, since a busy machine adds to it and nothing takes from it.
// Bandwidth: bytes that arrived over the time in which anything was on its way,
// from at least window_bytes_min bytes; the best of the latest windows_kept,
// since that time includes the receiver's delay until it makes room: in
// training, which of two comes first to a reduction is not the link's affair.
//
// Units: nanoseconds of any clock that never goes back; bytes per second.
// Cost:  a few integer operations per transfer, no memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shoal::core {

class link_meter {
public:
  static constexpr std::uint64_t small_bytes_max = 4096;
  /// Below this the fixed cost of a transfer, not the link, is measured.
  static constexpr std::uint64_t window_bytes_min = 512 << 10;
  /// A link that never pauses is measured by so many bytes at a time.
  static constexpr std::uint64_t window_bytes_max = 64 << 20;

  static constexpr std::size_t latencies_kept = 16;
  static constexpr std::size_t windows_kept = 16;

  /// One transfer under way.
  struct ticket {
    std::int64_t since_ns = 0;
    std::uint64_t number = 0;
    bool alone = false;
  };

  ticket started(std::int64_t now_ns);
  /// @pre each ticket ends once; `arrived`: it was delivered whole
  void ended(const ticket& t, std::int64_t now_ns, std::uint64_t bytes,
             bool arrived);

  std::uint64_t latency_ns() const noexcept;  ///< 0: none
  std::uint64_t bytes_per_s() const noexcept; ///< 0: none
  /// For how long nothing has been measured. @pre either of both is known
  std::int64_t age_ns(std::int64_t now_ns) const noexcept;

private:
  void close_window(std::int64_t now_ns);

  std::uint64_t under_way_ = 0;
  std::uint64_t starts_ = 0;
  std::int64_t window_since_ns_ = 0;
  std::uint64_t window_bytes_ = 0;
  std::array<std::uint64_t, latencies_kept> latencies_{}; ///< 0: none
  std::size_t next_latency_ = 0;
  std::array<std::uint64_t, windows_kept> rates_{}; ///< 0: none
  std::size_t next_rate_ = 0;
  std::int64_t measured_ns_ = 0; ///< when the newest of all samples was taken
};

} // namespace shoal::core
