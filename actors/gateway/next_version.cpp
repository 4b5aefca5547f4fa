// actors/gateway/next_version.cpp -- reads the log of the job that is followed.
#include "actors/gateway/next_version.hpp"

#include "actors/checkpoint/blob_set.hpp"
#include "runtime/context.hpp"
#include "runtime/jobs/job_log.hpp"

#include <algorithm>

namespace shoal::actors {

namespace {

/// A version has to be without streams for this time: those of a pipeline that
/// has another place now come again in less.
constexpr core::nanoseconds idle_min = 5'000'000'000;
/// A version that is not ready after this time is replaced by a newer one.
constexpr core::nanoseconds loads_max = 60'000'000'000;
/// A proposal may be lost.
constexpr core::nanoseconds propose_every = 5'000'000'000;

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
                if (error && !refused_by_disk(error))
                  done.next.reset();
              });
            });
}

} // namespace

void propose_next_version(runtime::context& node,
                          const std::shared_ptr<served_model>& model,
                          const poster& post, core::nanoseconds now) {
  for (const auto& v : model->versions())
    if (has_streams(*v))
      v->idle_since = now;
  read_log(node, *model);
  auto& f = model->follows;
  const served_version& newest = *model->versions().front();
  if (!f.newest || f.newest->step <= newest.is.step
      || (f.proposed != 0 && now - f.proposed < propose_every)
      || !speaks(node, *model))
    return;
  const bool ready = newest.streams.all_ready();
  const served_version& oldest = *model->versions().back();
  const bool idle = &oldest == &newest || now - oldest.idle_since >= idle_min;
  // The one that stays beside the next.
  const served_version* keeps = nullptr;
  if (ready && idle)
    keeps = &newest;
  else if (!ready && &oldest != &newest && !has_streams(newest)
           && now - newest.since >= loads_max)
    keeps = &oldest;
  if (keeps == nullptr || f.fetching)
    return;
  if (!f.next || f.next->step <= newest.is.step) {
    f.next = f.newest;
    return fetch_next(node, model, post);
  }
  f.proposed = now;
  node.propose_version(model->entry().id, *f.next, keeps->is.step);
}

} // namespace shoal::actors
