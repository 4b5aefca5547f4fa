// actors/placed_roles.cpp -- starts actors from [[roles]] and a view.
#include "actors/placed_roles.hpp"

#include "actors/training/training_state.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/view.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/jobs/unheld_roles.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <cstdio>

namespace shoal::actors {

using runtime::placed_role;

/// Adds a role beside each stage that `self` computes in island `n`.
static void add_stages(const core::island_place& island, std::size_t n,
                       const placed_role& one, const core::peer_id& self,
                       std::vector<placed_role>& to) {
  for (std::size_t i = 0; i < island.replicas.size(); ++i)
    for (std::size_t s = 0; s < island.replicas[i].stages.size(); ++s) {
      if (island.replicas[i].stages[s].lead().peer != self)
        continue;
      placed_role& beside = to.emplace_back(one);
      beside.island = int(n);
      beside.replica = int(i);
      beside.stage = int(s);
      if (n > 0)
        beside.address.append(":").append(std::to_string(n)).append("/");
      else
        beside.address.append(":");
      beside.address.append(std::to_string(i)).append(".");
      beside.address.append(std::to_string(s));
    }
}

std::vector<placed_role>
wanted_here(const core::view& v, const core::assignment& place,
            const std::vector<runtime::role_placement>& roles,
            const core::peer_id& self) {
  std::vector<placed_role> out;
  const core::member* me = core::find_member(v, self);
  const bool active =
    me && me->state == core::member_state::active && !me->witness;
  const std::string job = "@" + core::job_text(place.job);
  for (const runtime::role_placement& r : roles) {
    placed_role one{place.job, r.name, r.parameters, r.name + job};
    if (r.where == "every_stage") {
      for (std::size_t n = 0; n < place.islands.size(); ++n)
        add_stages(place.islands[n], n, one, self, out);
    } else if (active && (r.where == "every_peer" || r.where == me->name)) {
      if (r.where != "every_peer")
        one.address.append("=").append(std::to_string(&r - roles.data()));
      out.push_back(std::move(one));
    }
  }
  return out;
}

void placed_roles::on_view(const runtime::view_changed& m) {
  for (const core::job_entry& entry : m.view->jobs) {
    if (entry.state != core::job_state::running)
      continue;
    for (const core::assignment& a : m.plan->jobs)
      if (a.job == entry.id)
        follow(entry, a, m);
  }
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    const core::job_entry* entry = core::find_job(*m.view, at->first);
    if (entry && entry->state == core::job_state::running) {
      ++at;
      continue;
    }
    for (const auto& [address, actor] : at->second.actors)
      end(address, actor);
    at = jobs_.erase(at);
  }
}

void placed_roles::follow(const core::job_entry& entry,
                          const core::assignment& place,
                          const runtime::view_changed& m) {
  auto at = jobs_.find(entry.id);
  if (at == jobs_.end()) {
    auto run = runtime::parse_run(entry.run_json, "job");
    at = jobs_.emplace(entry.id, job_roles{}).first;
    if (run)
      at->second.roles = run->roles;
  }
  job_roles& here = at->second;
  if (here.roles.empty())
    return;
  std::map<std::string, placed_role> wanted;
  for (placed_role& r : wanted_here(*m.view, place, here.roles, node_.self()))
    wanted.emplace(r.address, std::move(r));
  for (auto old = here.actors.begin(); old != here.actors.end();) {
    if (wanted.contains(old->first)) {
      ++old;
      continue;
    }
    end(old->first, old->second);
    old = here.actors.erase(old);
  }
  tell_unheld(*m.view, place, here);
  const bool moved = here.told != place;
  here.told = place;
  const runtime::job_place now{m.view,
                               std::make_shared<const core::assignment>(place)};
  for (const auto& [address, role] : wanted) {
    const bool runs = here.actors.contains(address);
    if (!runs)
      start(role, here);
    if (auto actor = here.actors.find(address);
        actor != here.actors.end() && (moved || !runs))
      caf::anon_send(actor->second, now);
  }
}

void placed_roles::start(const placed_role& role, job_roles& of) {
  const auto& known = node_.roles().placed;
  const auto make = known.find(role.name);
  caf::actor actor;
  if (make != known.end())
    actor = make->second(node_.system(), node_, role);
  if (actor) {
    of.actors[role.address] = actor;
    node_.bind_role(role.address, actor);
    return;
  }
  if (lacking_.emplace(role.job, role.name).second)
    node_.say("[roles] this node lacks the role '" + role.name
              + "' that a run file places here: start it with `shoal node "
                "--plugin FILE`");
}

/// Every peer writes it to the job's log, so that all who watch the job see it.
void placed_roles::tell_unheld(const core::view& v,
                               const core::assignment& place, job_roles& of) {
  for (const core::unheld_wish& w : runtime::unheld_roles(v, place, of.roles)) {
    runtime::job_event e;
    e.kind = runtime::job_event_kind::notice;
    e.text = core::to_text(w);
    if (!of.unheld.insert(e.text).second)
      continue;
    e.unix_ms = unix_ms();
    node_.log().add(place.job, e);
  }
}

void placed_roles::end(const std::string& address, const caf::actor& actor) {
  node_.bind_role(address, {});
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

void placed_roles::end_all() {
  for (const auto& [id, job] : jobs_)
    for (const auto& [address, actor] : job.actors)
      end(address, actor);
  jobs_.clear();
}

} // namespace shoal::actors
