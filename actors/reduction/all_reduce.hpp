// actors/reduction/all_reduce.hpp -- sums spans of floats over replicas, piece
// by piece.
//
// A bucket is a span that becomes ready as a whole (say, a unit's gradient).
// Each bucket has its own replicas: "replica" means a holder of the bucket
// here. It is divided into pieces of piece_bytes, which the replicas own in
// turn. Each replica sends its part of a piece to the owner once the bucket is
// ready there. The owner adds the parts in replica order, whatever the order of
// arrival, and sends the sum to all: every replica has the owner's bytes, the
// same in every run.
//
// A part is added while it is still in the cache, and the sum of one piece is
// transferred while the next is added. Sums arrive in place. In addition to the
// buckets themselves only `window` pieces per peer are held.
//
// AR-1: all replicas process pieces in one order: buckets in the order given to
//       begin(), then by place; parts and sums have separate windows. So a part
//       waits only for earlier parts, a sum only for its parts and earlier
//       sums: no cycle, whatever the windows.
//
// Buckets in link_hub::memory() are read in place by replicas on the same
// machine: then, of G bytes, each copies 2 G (R - 1) / R and adds half of that.
//
// Traffic:   of G bytes a replica sends and receives 2 G (R - 1) / R.
// Threads:   begin, ready and stop from one thread; `reduced` runs on any and
//            only posts. Arithmetic runs on the queue `sums`.
// Ownership: buckets are kept until their sum is complete and no part of them
//            is being sent. After stop() they may be written until the last
//            copy of `lease` is gone and the work then in `sums` has run.
// Errors:    a transfer that fails ends its bucket: `reduced` has the error.
#pragma once

#include "actors/training/buffers.hpp"
#include "runtime/core/ids.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <system_error>
#include <vector>

namespace shoal::runtime {
class device_queue;
class link_hub;
} // namespace shoal::runtime

namespace shoal::actors {

class all_reduce {
public:
  struct config {
    runtime::link_hub* links = nullptr;
    runtime::device_queue* sums = nullptr;
    buffer_pool* buffers = nullptr;
    std::uint64_t plan = 0;      ///< digest, part of all tags
    core::job_id job = 0;        ///< whose work the sums are
    core::peer_id self{};        ///< this peer
    std::shared_ptr<void> lease; ///< copied by transfers into buckets
    /// Called once per bucket of a step: its sum is in place and no part of it
    /// is being sent.
    std::function<void(std::uint64_t step, std::uint32_t bucket,
                       std::error_code)>
      reduced;
  };
  struct bucket {
    std::uint32_t index = 0;
    std::vector<core::peer_id> holders; ///< all replicas, in the same order
                                        ///< everywhere
    runtime::shared_bytes values;       ///< floats: part before, sum after
  };

  explicit all_reduce(config config);
  ~all_reduce(); ///< As stop().
  all_reduce(const all_reduce&) = delete;
  all_reduce& operator=(const all_reduce&) = delete;

  /// Posts memory for what will arrive. Buckets are in the order in which they
  /// are likely to be ready, the same at every replica (which may lack some of
  /// them).
  /// @pre the former step is reduced
  void begin(std::uint64_t step, std::vector<bucket> buckets);

  /// This replica's part is complete, and is no longer written.
  void ready(std::uint64_t step, std::uint32_t bucket);

  /// After this nothing is sent, added or reported. The caller has to cancel
  /// the transfers of the plan.
  void stop();

  /// Large compared to the fixed cost of a transfer, small enough for the
  /// pieces in progress to stay in a processor's cache.
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  /// Pieces that are posted ahead, and sent at a time, per peer and direction.
  /// Higher: links with more latency are kept busy, at the cost of the cache:
  /// with 8, 4 processes on 2 cores took 1.08x the time (medians of 3,
  /// 2026-11-22).
  static constexpr std::size_t window = 4;

private:
  struct state;
  std::shared_ptr<state> state_;
};

} // namespace shoal::actors
