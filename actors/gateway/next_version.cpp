// actors/gateway/next_version.cpp -- reads the log of the job that is followed.
#include "actors/gateway/next_version.hpp"

#include "actors/checkpoint/blob_set.hpp"
#include "actors/training/training_state.hpp" // steady_now
#include "runtime/context.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/core/serving/version_turn.hpp"
#include "runtime/core/view.hpp"
#include "runtime/jobs/job_log.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

/// A proposal may be lost.
constexpr core::nanoseconds propose_every = 5'000'000'000;
/// Until a proposal names it, others may remove a checkpoint: one that was fetched
/// before this time is fetched again, if any of its files are gone.
constexpr core::nanoseconds fetched_for = 3'000'000'000;

void read_log(runtime::context& node, served_model& model) {
  auto& f = model.follows;
  for (const runtime::job_event& e :
       node.log().read(model.config().follows, f.read, f.read))
    if (e.kind == runtime::job_event_kind::checkpoint)
      f.newest = {e.step, e.digest};
}

/// Whether this peer speaks for the first pipeline that has a place.
bool speaks(runtime::context& node, const served_model& model) {
  const auto plan = node.plan();
  const auto at =
    std::ranges::find(plan->jobs, model.entry().id, &core::assignment::job);
  if (at == plan->jobs.end())
    return false;
  for (const core::island_place& island : at->islands)
    if (!island.replicas.empty())
      return island.replicas.front().stages.front().lead().peer == node.self();
  return false;
}

bool has_streams(const served_version& v) {
  return v.streams.size() > 0
         || std::ranges::any_of(v.streams.reports(),
                                [](const auto& r) { return r.streams > 0; });
}

core::version_state state_of(const served_version& v) {
  return {v.is.step,
          v.streams.all_ready(),
          v.streams.ready() > 0,
          has_streams(v),
          std::max(v.since, v.unready_since.value_or(0)),
          v.idle_since};
}

/// Fetches the files of the next version to the own disk. One that no peer has
/// any more is not the next one.
void fetch_next(runtime::context& node,
                const std::shared_ptr<served_model>& model,
                const poster& post) {
  auto& f = model->follows;
  f.fetching = true;
  std::vector<core::peer_id> holders;
  const auto view = node.view();
  for (const core::member& m : view->members)
    holders.push_back(m.id.peer);
  blob_set set;
  set.weights.push_back(f.next->manifest);
  fetch_all(node, std::move(set), std::move(holders),
            [model, post](std::error_code error) {
              post([model, error] {
                auto& done = model->follows;
                done.fetching = false;
                if (!error) {
                  done.fetched = steady_now();
                  return;
                }
                done.proposed = steady_now(); // and tried again a while later
                if (refused_by_disk(error) || !done.next)
                  return;
                const std::uint64_t step = done.next->step;
                if (error == runtime::errc::not_found
                    && std::exchange(done.lost_step, step) != step)
                  done.lost = "no peer has the checkpoint of step "
                              + std::to_string(step)
                              + " any more, so it is not served: a larger "
                                "checkpoint.keep_latest_k keeps them longer";
                done.next.reset();
              });
            });
}

} // namespace

void propose_next_version(runtime::context& node,
                          const std::shared_ptr<served_model>& model,
                          const poster& post, core::nanoseconds now) {
  for (const auto& v : model->versions()) {
    if (has_streams(*v))
      v->idle_since = now;
    if (v->streams.all_ready())
      v->unready_since.reset();
    else if (!v->unready_since)
      v->unready_since = now;
    const bool former = v != model->versions().front()
                        && model->versions().front()->streams.all_ready();
    if (!former)
      v->former_since.reset();
    else if (!v->former_since)
      v->former_since = now;
  }
  read_log(node, *model);
  auto& f = model->follows;
  if ((f.proposed != 0 && now - f.proposed < propose_every)
      || !speaks(node, *model))
    return;
  const auto& versions = model->versions();
  const auto& newest = versions.front()->is;
  using what = core::version_turn::what;
  const core::version_turn turn = core::turn_of(
    state_of(*versions.front()),
    versions.size() > 1 ? std::optional(state_of(*versions.back()))
                        : std::nullopt,
    f.newest ? std::optional(f.newest->step) : std::nullopt, now);
  if (turn.to_do == what::release) {
    f.proposed = now;
    node.propose_version(model->entry().id, newest, newest.step);
  }
  if (turn.to_do != what::next || f.fetching)
    return;
  if (!f.next || f.next->step <= newest.step || now - f.fetched > fetched_for) {
    f.next = f.newest;
    return fetch_next(node, model, post);
  }
  f.proposed = now;
  node.propose_version(model->entry().id, *f.next, turn.keeps);
}

} // namespace shoal::actors
