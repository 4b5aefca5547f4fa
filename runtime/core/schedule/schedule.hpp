// runtime/core/schedule/schedule.hpp -- which item a peer of a pipeline runs
// next.
//
// A microbatch passes the stages forward (F), then backward: the input gradient
// (B), for which the stage before waits, and the weight gradient (W), for which
// no stage waits. A peer runs one item at a time, of any of its stages:
//
//   F if one is ready and its stage may begin another microbatch; else B if
//   one is ready; else W (zero-bubble) or nothing
//
// A stage may begin another microbatch while fewer than kept_max are between F
// and W and fewer than `ahead` between F and B. These two numbers define the
// schedule:
//
//   1F1B         W at once after B; stage s of S keeps S - s
//   interleaved  the same with several stages of the model on each peer, dealt
//                out to the peers in turn: fill and drain of the pipeline are
//                shorter, and more is kept
//   zero-bubble  W waits until the stage is at its limit, or all F are done.
//                ZB-H1 with S kept on every stage, S - s of them ahead; with
//                up to 2 S - 1 kept and 2 (S - s) - 1 ahead: ZB-H2
//
// A peer may run stages of several replicas (detours.hpp): each replica has its
// own limits, and the weight gradients of all of them take turns, so that what
// they share is summed in one order.
//
// The arrival of its inputs decides when an item runs, not a table of times, so
// peers that are slower than planned still work whenever they can.
//
// Invariants
// S-1: forwards, input gradients and weight gradients each run in ascending
//      order of microbatches on every stage, so no schedule changes a sum.
// S-2: of one microbatch: forward before input gradient before weight gradient.
// S-3: a stage keeps at most kept_max microbatches.
// S-4: no peer waits for ever. Take the lowest microbatch m whose backward some
//      stage has not run, and the deepest such stage. If its forward has run,
//      its B can run. Else the stage keeps no microbatch below m that W cannot
//      free, so its forward waits only for the stage before; and so on up to
//      the first. With several replicas order microbatches by their place in
//      the replica, then by replica: every W for which S-5 makes a W wait comes
//      before it.
// S-5: on a peer, the W of the i-th microbatch of a replica runs after those of
//      the i-th of earlier replicas and of the (i-1)th of later replicas, where
//      these exist: no order of arrivals changes a sum.
//
// Units:  nanoseconds in the time line. Cost: next() looks at each stage of
//         the peer.
// Source: D. Narayanan et al.: Memory-Efficient Pipeline-Parallel DNN
// Training, ICML 2021 (1F1B with a flush); D. Narayanan et al.: Efficient
// Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC
// 2021, section 2.2 (interleaved); P. Qi et al.: Zero Bubble Pipeline
// Parallelism, 2023 (B and W apart, H1, H2). Here the order follows arrivals,
// and steps do not overlap, since all peers vote on each: the rest of the
// bubble is the time that the first microbatch takes to reach the last stage.
#pragma once

#include "runtime/core/assignment.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shoal::core {

enum class work_kind : std::uint8_t {
  forward = 1,
  input_gradient = 2,  ///< "B"
  weight_gradient = 3, ///< "W"
};

struct work_item {
  work_kind kind = work_kind::forward;
  std::uint32_t stage = 0;
  std::uint32_t microbatch = 0; ///< of the step, not of the replica
  std::uint32_t replica = 0;
  friend bool operator==(const work_item&, const work_item&) = default;
};

/// One replica's stages, in the form that a schedule needs.
struct pipeline {
  schedule_kind kind = schedule_kind::one_f_one_b;
  std::vector<std::uint32_t> peer_of;  ///< by stage, from 0 on
  std::vector<std::uint32_t> kept_max; ///< by stage; >= 1
  std::vector<std::uint32_t> ahead;    ///< by stage; >= 1
  std::uint32_t peers = 0;
  std::uint32_t first = 0; ///< microbatches [first, last)
  std::uint32_t last = 0;

  std::uint32_t stages() const { return std::uint32_t(peer_of.size()); }
};

/// Peers are numbered in the order in which they occur in the stages. A stage
/// without kept_max gets the number that its schedule wants.
[[nodiscard]] pipeline
make_pipeline(schedule_kind kind, const replica_place& replica);

/// Fills in `ahead`, and kept_max where it is 0. @pre all else is set
void complete(pipeline& p);

/// The number of microbatches that a stage keeps with enough memory, and the
/// smallest number with which its schedule makes sense.
struct kept_range {
  std::uint32_t least = 1;
  std::uint32_t wanted = 1;
};
[[nodiscard]] kept_range kept_of(const pipeline& p, std::uint32_t stage);

/// The index in `p.peer_of` of a member, or nothing.
[[nodiscard]] std::optional<std::uint32_t>
index_of(const replica_place& replica, const peer_id& peer);

/// One peer's part in a replica.
struct pipeline_role {
  std::uint32_t replica = 0;
  const pipeline* line = nullptr;
  std::uint32_t peer = 0;
};

/// What one peer does, item by item.
class work_order {
public:
  work_order() = default;
  /// All of a step. @pre roles ordered by replica, all with the same schedule
  explicit work_order(std::span<const pipeline_role> roles);
  work_order(const pipeline& p, std::uint32_t peer); ///< replica 0
  /// Forward only, for evaluation: `count` microbatches from 0.
  static work_order
  forward_only(const pipeline& p, std::uint32_t peer, std::uint32_t count);

  /// The next item, which must have run before the next call; nothing if all
  /// items that may run wait for an input. `ready(item)` says whether the input
  /// of a forward or an input gradient has arrived.
  template <class Ready>
  std::optional<work_item> next(Ready&& ready) {
    for (const candidate& c : in_order())
      if (may_run(c) && (c.kind == work_kind::weight_gradient || ready(at(c))))
        return begin(c);
    return std::nullopt;
  }

  bool finished() const noexcept { return left_ == 0; }
  /// Whether a stage has begun its last weight gradient.
  bool gradients_final(std::uint32_t stage, std::uint32_t replica = 0) const;

private:
  struct lane { ///< a stage of this peer
    std::uint32_t replica = 0;
    std::uint32_t stage = 0;
    std::uint32_t first = 0; ///< microbatches [first, first + count)
    std::uint32_t count = 0;
    std::uint32_t kept_max = 1;
    std::uint32_t ahead = 1;
    std::uint32_t forwards = 0; ///< begun
    std::uint32_t inputs = 0;
    std::uint32_t weights = 0;
  };
  struct candidate {
    work_kind kind = work_kind::forward;
    std::uint32_t lane = 0;
  };

  void add(const pipeline_role& role);
  bool is_turn_of(const lane& l) const; // S-5
  std::span<const candidate> in_order();
  bool may_run(const candidate& c) const;
  work_item at(const candidate& c) const;
  work_item begin(const candidate& c);
  std::uint32_t done(const candidate& c) const;

  schedule_kind kind_ = schedule_kind::one_f_one_b;
  bool backward_ = true;
  bool several_replicas_ = false;
  std::uint32_t group_ = 1;
  std::uint64_t left_ = 0;
  std::vector<lane> lanes_;
  std::vector<candidate> order_; ///< most urgent first
};

/// Time of one microbatch on a stage.
struct stage_time {
  std::uint64_t forward = 0;
  std::uint64_t input_gradient = 0;
  std::uint64_t weight_gradient = 0;
  std::uint64_t transfer = 0; ///< to the next stage, and back from it
  std::uint64_t total() const {
    return forward + input_gradient + weight_gradient;
  }
};

/// The simulated course of a step.
struct timeline {
  std::uint64_t span = 0;          ///< from the start of the step to the end of
                                   ///< its last item
  std::vector<std::uint64_t> busy; ///< by peer
  std::vector<std::uint32_t> kept; ///< by stage: most microbatches at one time
  struct entry {
    work_item item;
    std::uint32_t peer = 0;
    std::uint64_t begin = 0, end = 0;
  };
  std::vector<entry> items; ///< in order of start, if asked for

  /// Idle time of all peers within the span, in thousandths of their total
  /// time.
  std::uint32_t bubble_permille() const;
};

/// Simulates all peers of a pipeline together. @pre times by stage
[[nodiscard]] timeline
simulate(const pipeline& p, std::span<const stage_time> times,
         bool with_items = false);

/// The largest number of microbatches that stage `stage` of `stages` keeps in
/// 1F1B.
[[nodiscard]] std::uint32_t
live_microbatches_max(std::uint32_t stage, std::uint32_t stages,
                      std::uint32_t microbatches);

} // namespace shoal::core
