// actors/reduction/all_reduce.hpp -- sums spans of floats over replicas, piece by piece.
//
// A bucket is a span that is ready at once (say, a unit's gradient). Each has
// replicas of its own: "replica" is a holder of the bucket here. It goes by
// pieces of piece_bytes; the replicas own its pieces in turn. Each replica
// sends its part of a piece to the owner once the bucket is ready there; the
// owner adds the parts in replica order, whatever the order of arrival, and
// sends the sum to all: every replica has the owner's bytes, the same in every
// run.
//
// A part is added while it is still in the cache, and the sum of one piece
// travels while the next is added. Sums arrive in place. Beyond the buckets
// themselves only `window` pieces per peer are held.
//
// AR-1: all replicas take pieces in one order: buckets as given to begin(),
//       then by place; parts and sums have windows of their own. So a part
//       waits for nothing but earlier parts, a sum for its parts and earlier
//       sums: no cycle, whatever the windows.
//
// Buckets in link_hub::memory() are read where they lie by replicas of the same
// machine: then of G bytes each copies 2 G (R - 1) / R and adds half of that.
//
// Traffic:   of G bytes a replica sends and receives 2 G (R - 1) / R.
// Threads:   begin, ready and stop from one thread; `reduced` runs on any and
//            only posts. Arithmetic runs on the queue `sums`.
// Ownership: buckets are kept until their sum is there and nothing of them is
//            being sent. After stop() they are written until the last copy of
//            `lease` is gone and what `sums` then holds has run.
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
    std::uint64_t plan = 0;      ///< digest, in all tags
    core::peer_id self{};        ///< this one
    std::shared_ptr<void> lease; ///< copied by transfers into buckets
    /// Once per bucket of a step: its sum is in place and nothing of it is
    /// being sent.
    std::function<void(std::uint64_t step, std::uint32_t bucket,
                       std::error_code)>
      reduced;
  };
  struct bucket {
    std::uint32_t index = 0;
    std::vector<core::peer_id> holders; ///< all replicas, in one order
    runtime::shared_bytes values;       ///< floats: part before, sum after
  };

  explicit all_reduce(config config);
  ~all_reduce(); ///< As stop().
  all_reduce(const all_reduce&) = delete;
  all_reduce& operator=(const all_reduce&) = delete;

  /// Posts what will come. Buckets are in the order in which they are likely
  /// to be ready, the same at every replica (which may lack some of them).
  /// @pre the step before is reduced
  void begin(std::uint64_t step, std::vector<bucket> buckets);

  /// This replica's part is complete, and not written any more.
  void ready(std::uint64_t step, std::uint32_t bucket);

  /// Nothing more is sent, added or told. The links' plan is the caller's to
  /// cancel.
  void stop();

  /// Large against what a transfer costs, small enough that the pieces under
  /// way stay in a processor's cache.
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  /// Pieces posted ahead, and sent at a time, per peer and direction. Higher
  /// means that longer ways are kept full, at the cost of the cache: with 8, 4
  /// processes on 2 cores took 1.08x the time (medians of 3, 2026-11-22).
  static constexpr std::size_t window = 4;

private:
  struct state;
  std::shared_ptr<state> state_;
};

} // namespace shoal::actors
