// runtime/core/serving/replica_watch.hpp -- how many pipelines a served model is
// to have.
//
// A gateway sees what all pipelines of a model report of themselves. If all of
// them have had more work than they get done for `grow_after`, and members with
// room for another pipeline are there, it proposes one more; if the work has for
// `shrink_after` been less than what one fewer can do, one fewer. The number is
// agreed in the view (mark_kind::scaled); streams of a pipeline that is given up
// go on in another one (replay.hpp).
//
//   steady --crowded for grow_after, and room--> one more, steady
//      |----- idle for shrink_after ------------> one fewer, steady
//      `----- one has no place for unplaced_after -> one fewer, steady
//
// A change begins all times anew, as does a pipeline that is not ready: it is
// being loaded, and takes its part of the work soon. So the number changes at
// most once in each of these times, and noise changes nothing.
//
// All gateways watch, and the first to propose wins: the others' proposals are
// void then.
//
// Threads: none of its own; the caller has the clock. Cost: linear in pipelines.
#pragma once

#include "runtime/core/serving/serve_messages.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shoal::core {

struct replica_times {
  /// The start of a pipeline takes the time to read its weights, often a minute:
  /// it is worth that if the crowd has lasted for some part of it.
  nanoseconds grow_after = 20'000'000'000;
  /// Longer than pauses within the hours of use.
  nanoseconds shrink_after = 300'000'000'000;
};

class replica_watch {
public:
  /// A pipeline without a place holds nothing, so it may go soon; but members
  /// that restart come back within this time.
  static constexpr nanoseconds unplaced_after = 60'000'000'000;
  /// A pipeline is crowded if prompts wait for longer than this.
  static constexpr nanoseconds wait_max = 1'000'000'000;
  /// Prompts that wait where their speed is not known yet: the same.
  static constexpr std::uint64_t unmeasured_tokens_max = 512;
  /// Sequences in each pass, of one for each stage, from which on a pass takes
  /// longer with each more.
  static constexpr std::uint32_t rows_many = 16;

  /// @param most pipelines; at least 1
  replica_watch(std::uint32_t most, const replica_times& times)
    : most_(most), times_(times) {}

  /// A pipeline that has a place.
  struct line {
    std::optional<pipeline_report> report; ///< of this place
    std::uint32_t stages = 1;
  };

  /// To be called about every second.
  /// @param agreed number of pipelines in the view
  /// @returns the number to propose; nothing: it is right. One more only if
  ///          there is room for it, which is the caller's to know.
  [[nodiscard]] std::optional<std::uint32_t>
  look(std::uint32_t agreed, std::span<const line> placed, nanoseconds now);

  /// Whether the pipeline has more work than it gets done.
  [[nodiscard]] static bool is_crowded(const line& l);

private:
  /// How long something has been so.
  struct streak {
    std::optional<nanoseconds> since;
    bool lasts(bool is, nanoseconds now, nanoseconds long_enough);
  };

  std::uint32_t most_;
  replica_times times_;
  std::uint32_t agreed_ = 0;
  streak crowded_, idle_, unplaced_;
};

} // namespace shoal::core
