// runtime/node/profile_keeper.cpp -- speed of this node, as observed during
// work.
#include "runtime/node/profile_keeper.hpp"

#include "runtime/core/measure/median.hpp"
#include "runtime/core/planning/placement.hpp"

#include <algorithm>
#include <utility>

namespace shoal::runtime {

profile_keeper::profile_keeper(const core::peer_id& self,
                               const core::device_profile& measured_at_start)
  : self_(self), watch_(measured_at_start) {
}

/// The members that work for an island on the cores of this node's machine.
static std::size_t on_cores_of(const core::view& v, const core::member* self,
                               const core::island_place& at) {
  if (self == nullptr || self->host.empty() || self->device.kind != "cpu")
    return 1;
  std::size_t found = 0;
  for (const core::member_id& id : core::workers(at.replicas)) {
    const core::member* m = core::find_member(v, id.peer);
    found +=
      m != nullptr && m->host == self->host && m->device.kind == "cpu" ? 1 : 0;
  }
  return found;
}

void profile_keeper::step(core::nanoseconds now,
                          const std::shared_ptr<const core::view>& v,
                          const std::shared_ptr<const core::plan>& p,
                          const core::island_id& id, core::nanoseconds busy) {
  if (!v || !p)
    return;
  const core::job_id job = id.job;
  std::lock_guard lock(mutex_);
  expectation& e = expected_[job];
  if (e.view != v) {
    e = {v, 0, 0, e.since};
    const core::member* self = core::find_member(*v, self_);
    for (const core::assignment& a : p->jobs) {
      if (a.job != job || id.index >= a.islands.size())
        continue;
      const core::island_place& at = a.islands[id.index];
      if (std::exchange(e.since, at.since) != at.since)
        watch_.placed(job, on_cores_of(*v, self, at));
      // While state is being moved, a device does more than steps.
      if (self != nullptr && at.arriving.empty())
        for (const auto& need : core::predict(*v, job, at).members)
          if (need.where == self->id) {
            e.busy = need.busy;
            e.mflops = self->device.mflops;
          }
    }
    std::erase_if(expected_, [&](const auto& entry) {
      const core::job_entry* j = core::find_job(*v, entry.first);
      return entry.first != job
             && (j == nullptr || j->state != core::job_state::running);
    });
  }
  watch_.step(now, job, e.busy, busy, e.mflops);
}

void profile_keeper::links(core::nanoseconds now, const core::view& v,
                           const std::vector<used_link>& used,
                           const std::vector<link_hub::link_stat>& stats) {
  struct figures {
    std::vector<std::uint64_t> latency, rate;
  };
  std::map<std::string, figures> kinds;
  const core::member* self = core::find_member(v, self_);
  for (const used_link& u : used) {
    const core::member* other = core::find_member(v, u.peer);
    if (self == nullptr || other == nullptr)
      continue;
    const bool here = !self->host.empty() && self->host == other->host;
    figures& f = kinds[here ? "host" : u.fabric];
    for (const auto& s : stats) {
      if (s.peer != u.peer || s.fabric != u.fabric)
        continue;
      if (s.latency_ns != 0)
        f.latency.push_back(s.latency_ns);
      if (s.bytes_per_s != 0)
        f.rate.push_back(s.bytes_per_s);
    }
  }
  std::lock_guard lock(mutex_);
  if (std::ranges::none_of(v.jobs, [](const core::job_entry& j) {
        return j.state == core::job_state::running
               && j.kind == core::job_kind::train;
      }))
    watch_.no_job();
  for (auto& [name, f] : kinds)
    watch_.network(now, name, core::nanoseconds(core::median(f.latency)),
                   core::median(f.rate));
}

void profile_keeper::disk(std::uint64_t bytes, bool refused) {
  std::lock_guard lock(mutex_);
  watch_.disk(bytes, refused);
}

std::optional<core::profile_watch::proposal>
profile_keeper::take(core::nanoseconds now) {
  std::lock_guard lock(mutex_);
  return watch_.take(now);
}

} // namespace shoal::runtime
