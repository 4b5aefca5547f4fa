// actors/gateway/pipeline_scaler.cpp -- a decision, in turn, as a proposal.
#include "actors/gateway/pipeline_scaler.hpp"

#include "runtime/context.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>

namespace shoal::actors {

pipeline_scaler::pipeline_scaler(const runtime::serve_config& config) {
  constexpr core::nanoseconds second = 1'000'000'000;
  if (config.replicas_max > 0)
    watch_.emplace(
      std::uint32_t(config.replicas_max),
      core::replica_times{core::nanoseconds(config.grow_after) * second,
                          core::nanoseconds(config.shrink_after) * second});
}

/// The planner is asked once in each view.
bool pipeline_scaler::has_room(const core::view& v, const core::plan& p,
                               const core::job_entry& job) {
  if (asked_ != v.number) {
    asked_ = v.number;
    room_ = core::has_room_for_more(v, p, job);
  }
  return room_;
}

std::string
pipeline_scaler::look(runtime::context& node, const core::view& v,
                      const core::plan& p, const core::job_entry& job,
                      const core::replay& streams, core::nanoseconds now) {
  const std::uint32_t agreed = core::islands_of(job);
  const auto wanted = watch_->look(agreed, streams.lines(), now);
  if (!wanted) {
    wanted_.reset();
    return {};
  }
  const bool fresh = !wanted_;
  if (fresh)
    wanted_ = now;
  const auto me = std::ranges::find(
    v.members, node.self(), [](const core::member& m) { return m.id.peer; });
  const core::nanoseconds wait =
    std::min(turns_max, turn * (me - v.members.begin()));
  if (now - *wanted_ < wait || (proposed_ && now - *proposed_ < again_after))
    return {};
  if (*wanted > agreed && !has_room(v, p, job))
    return fresh ? "requests wait, but no peers have room for another pipeline"
                 : "";
  proposed_ = now;
  node.propose_pipelines(job.id, *wanted,
                         core::marked(job, core::mark_kind::scaled, 0));
  return *wanted > agreed ? "requests wait: proposing "
                              + std::to_string(*wanted) + " pipelines"
                          : "one pipeline less is enough: proposing "
                              + std::to_string(*wanted);
}

} // namespace shoal::actors
