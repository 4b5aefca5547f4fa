// apps/bench/link_meter.hpp -- the speed of transfers between two fabrics of
// this process.
//
// Each figure is one run, so that a caller can interleave runs of the things to
// be compared and take medians: on a shared machine, long runs one after
// another would mostly compare states of the machine.
//
// Units:   seconds and bytes.
// Threads: one; the fabrics' progress threads do the rest.
// Errors:  std::runtime_error when the peers do not connect, or a transfer
//          fails.
#pragma once

#include "transport/fabric.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace shoal::apps {

class link_meter {
public:
  using maker = std::function<std::unique_ptr<transport::fabric>(
    transport::fabric_handler& handler)>;

  /// Two nodes that connect. Both are told to: some fabrics need that.
  link_meter(const maker& first, const maker& second);
  ~link_meter();

  /// Seconds to move `count` transfers of `bytes` each from first to second,
  /// all queued at once.
  double bulk(std::size_t bytes, int count);

  /// Seconds from a control message to its answer; the median of `count`.
  /// Driven by the handlers, on the progress threads.
  double round_trip(int count, std::size_t bytes = 64);

  /// Like round_trip(), but from a thread of the application and back.
  double round_trip_of_threads(int count);

  /// Like round_trip_of_threads(), while bulk moves in the same direction; and
  /// the maximum.
  struct beside {
    double median = 0;
    double slowest = 0;
  };
  beside round_trip_beside_bulk(int count);

private:
  class end;
  std::unique_ptr<end> first_, second_;
  std::vector<std::byte> from_, into_;
  std::uint32_t sequence_ = 0;
};

} // namespace shoal::apps
