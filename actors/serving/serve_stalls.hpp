// actors/serving/serve_stalls.hpp -- what is done when a pipeline does not move, or a
// peer sends it what is not right.
//
// The shell of core::stall_watch for a version of a served model, as job_stalls.hpp
// is for training: it shows the watch what moves here (segments of passes on the
// device, hidden states that arrive, answers, loaded weights), and carries out what
// it decides. A pass may stand still for ten times the longest wait that was
// measured lately, or that the plan predicts for the largest pass, and no shorter
// than stall_min. Then all peers with stages compare what they see:
//
//   a device is over that time, or its peer is silent -> the peer is expelled
//   all wait for each other                           -> the pipeline begins anew
//   that again, stall_watch::retries_max times without a calm_after in between
//                                   -> an end of the stuck link is expelled
//
// Gateways have every stream's tokens and ask for it again (core/serving/replay.hpp).
// An expelled peer is admitted again after a pause that grows
// (core/cluster/membership.hpp); one whose device work cannot be stopped ends.
//
// Threads: the owner's.
#pragma once

#include "runtime/core/serving/pipeline.hpp"
#include "runtime/core/training/stall_watch.hpp"
#include "runtime/jobs/serve_config.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace shoal::runtime {
class context;
}

namespace shoal::core {
struct job_entry; // runtime/core/job_entry.hpp
struct view;      // runtime/core/view.hpp
} // namespace shoal::core

namespace shoal::actors {

/// What a peer sees of its stages of one version.
struct pipeline_sight {
  core::job_header header;
  std::vector<core::peer_id> stages;
  bool works = false;      ///< there are passes that have not ended
  bool loads = false;      ///< weights, of any version
  bool ends = false;       ///< device work of a former place has not stopped
  std::uint64_t moved = 0; ///< changes whenever anything moves
  std::optional<core::peer_id> waits_for;
  std::string where;
};

class serve_stalls {
public:
  /// A pass or an answer that is lost comes again after again_after: twice that
  /// is no stall.
  static constexpr core::nanoseconds stall_min =
    2 * core::serving_pipeline::again_after;
  /// Stalls further apart than this have nothing to do with each other.
  static constexpr core::nanoseconds calm_after = 120'000'000'000;

  /// Damaged passes of a peer until it is expelled. More than one, because memory
  /// of the receiver may be at fault, which then finds others at fault, too.
  static constexpr std::size_t damaged_max = 3;

  /// @param tell says a line to users on all members
  serve_stalls(runtime::context& node, core::island_id id,
               std::function<void(const std::string&)> tell);

  /// Whenever the view or the place changes. Null or empty: there is no place.
  void
  predict(std::shared_ptr<const core::view> view,
          const core::island_place& place, const runtime::serve_config& config);
  /// @param now on the steady clock
  void tick(const pipeline_sight& here, core::nanoseconds now);
  void received(const core::peer_id& from, const core::stall_report& r,
                const pipeline_sight& here, core::nanoseconds now);

  /// A stage here has got hidden states that are not those that `by` computed, and
  /// has not used them: the place of `since` begins anew, or goes on without it.
  void damaged(const core::peer_id& by, std::uint64_t pass, core::epoch since);

private:
  core::stall_watch::sight look(const pipeline_sight& p, core::nanoseconds now);
  void
  carry_out(const core::stall_watch::actions& actions, core::nanoseconds now);
  core::nanoseconds device_busy(core::nanoseconds now) const;
  core::nanoseconds links_silent(const core::job_header& under);
  std::string name_of(const core::peer_id& peer) const;

  runtime::context& node_;
  core::island_id id_;
  std::function<void(const std::string&)> tell_;
  core::stall_watch watch_;
  std::shared_ptr<const core::view> view_;
  std::map<core::peer_id, std::size_t> damaged_; ///< passes
  core::nanoseconds predicted_ = 0;
  std::uint64_t largest_unit_ = 0;   ///< bytes
  std::uint64_t period_ = 1;         ///< without a calm_after
  core::nanoseconds stalled_at_ = 0; ///< last, in this period; 0: not yet
  std::optional<core::job_header> silent_under_; ///< when the links fell silent
  bool silent_since_before_ = false;             ///< under another place
};

/// The longest predicted time of a piece of a pass: a block of its rows on the
/// slowest stage, the head, or its hidden states on the slowest link.
[[nodiscard]] core::nanoseconds
longest_piece(const core::view& view, const core::job_entry& job,
              const core::island_place& place,
              const runtime::serve_config& config);

} // namespace shoal::actors
