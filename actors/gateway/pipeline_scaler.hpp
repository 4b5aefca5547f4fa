// actors/gateway/pipeline_scaler.hpp -- proposes the number of pipelines of a
// model whose number follows its load (`serve --replicas auto`).
//
// One for each such model in each gateway. It decides by core::replica_watch, and
// that there is room by the planner. Gateways propose one after another, by the
// place of their peers in the view, so that few propose the same.
//
// Threads: its gateway's.
#pragma once

#include "runtime/core/planning/plan.hpp"
#include "runtime/core/serving/replay.hpp"
#include "runtime/core/serving/replica_watch.hpp"
#include "runtime/jobs/serve_config.hpp"

#include <optional>
#include <string>

namespace shoal::runtime {
class context;
}

namespace shoal::actors {

class pipeline_scaler {
public:
  /// A gateway waits for this long for each one before it, at most for the latter.
  static constexpr core::nanoseconds turn = 1'000'000'000;
  static constexpr core::nanoseconds turns_max = 30'000'000'000;
  /// A proposal may be lost with its peer: it is made again.
  static constexpr core::nanoseconds again_after = 10'000'000'000;

  explicit pipeline_scaler(const runtime::serve_config& config);

  /// Whether the number follows the load: then look() wants to be called about
  /// every second.
  [[nodiscard]] bool active() const noexcept { return watch_.has_value(); }
  /// @returns a line for those that follow the job; usually empty
  std::string look(runtime::context& node, const core::view& v,
                   const core::plan& p, const core::job_entry& job,
                   const core::replay& streams, core::nanoseconds now);

private:
  bool has_room(const core::view& v, const core::plan& p,
                const core::job_entry& job);

  std::optional<core::replica_watch> watch_;
  std::optional<core::nanoseconds> wanted_;   ///< since when
  std::optional<core::nanoseconds> proposed_; ///< last
  core::epoch asked_ = 0;                     ///< the view of `room_`
  bool room_ = false;
};

} // namespace shoal::actors
