// runtime/core/planning/plan_text.cpp -- a job's plan on one line.
#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/followers.hpp"
#include "runtime/core/planning/placement.hpp"
#include "runtime/core/planning/placer.hpp"
#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>

namespace shoal::core {
namespace {

/// Above this number of stages, over all replicas, they are counted and not
/// listed: a line has to be readable, and an event's text is bounded
/// (jobs/job_log.hpp).
constexpr std::size_t stages_listed_max = 16;
/// The same limit for members that are idle for different reasons.
constexpr std::size_t reasons_listed_max = 3;

std::string name_of(const view& v, const peer_id& peer) {
  const member* m = find_member(v, peer);
  return m && !m->name.empty() ? m->name : short_name(peer);
}

std::string layers(const stage_place& s) {
  if (s.first_block == s.last_block)
    return " no layers";
  if (s.first_block + 1 == s.last_block)
    return " layer " + std::to_string(s.first_block);
  return " layers " + std::to_string(s.first_block) + "-"
         + std::to_string(s.last_block - 1);
}

std::string places(const view& v, const island_place& a, const placer& kind) {
  std::size_t stages = 0, deepest = 0;
  for (const replica_place& r : a.replicas) {
    stages += r.stages.size();
    deepest = std::max(deepest, r.stages.size());
  }
  std::string out;
  if (deepest > 1 && kind.has_schedule)
    out = std::string(to_text(a.schedule)) + ", ";
  if (stages > stages_listed_max)
    return out + std::to_string(a.replicas.size()) + " " + kind.replica
           + (a.replicas.size() == 1 ? " of " : "s of ")
           + std::to_string(deepest) + (deepest == 1 ? " stage" : " stages")
           + " on " + std::to_string(workers(a.replicas).size()) + " peers";
  for (std::size_t r = 0; r < a.replicas.size(); ++r) {
    out += (r ? "; " : "") + std::string(kind.replica) + " " + std::to_string(r)
           + ":";
    bool first = true;
    for (const stage_place& s : a.replicas[r].stages) {
      out += (first ? " " : ", ") + name_of(v, s.lead().peer) + layers(s);
      first = false;
    }
  }
  return out;
}

/// "; idle: b (shares its host's cores with a)"; members with the same reason
/// are listed together.
std::string idle(const view& v, const assignment& a) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const idle_member& m : idle_members(v, a)) {
    auto at = std::ranges::find(by_reason, m.why,
                                &decltype(by_reason)::value_type::first);
    if (at == by_reason.end())
      at = by_reason.insert(at, {m.why, {}});
    at->second.push_back(name_of(v, m.who.peer));
  }
  std::string out;
  for (std::size_t i = 0; i < by_reason.size() && i < reasons_listed_max; ++i) {
    const auto& [why, names] = by_reason[i];
    out += i == 0 ? "; idle: " : ", ";
    out += names.size() <= 2
             ? names.front() + (names.size() == 2 ? " and " + names[1] : "")
             : std::to_string(names.size()) + " peers";
    out += " (" + why + ")";
  }
  return out + (by_reason.size() > reasons_listed_max ? " and others" : "");
}

} // namespace

std::string to_text(const view& v, const assignment& a) {
  return to_text(v, a, unheld_wishes(v, a));
}

std::string to_text(const view& v, const island_id& id, const island_place& a) {
  if (a.replicas.empty())
    return "waits: " + a.why_waiting;
  const job_entry* job = find_job(v, id.job);
  std::string out = places(v, a, placer_of(job ? job->kind : job_kind::train));
  if (job && (job->want_copies > 0 || !a.followers.empty())) {
    const std::uint32_t copies =
      holdings(a).least_copies(part_table(job->blocks)) - 1;
    if (copies > 0) {
      out += "; " + std::to_string(copies)
             + (copies == 1 ? " copy in memory" : " copies in memory");
      if (!a.followers.empty() && a.copy_every > 1)
        out += ", every " + std::to_string(a.copy_every) + " steps";
    }
  }
  if (!a.part_keepers.empty())
    out += "; " + std::to_string(a.part_keepers.size())
           + " disks share each checkpoint";
  if (makes_detour(a.replicas))
    out += "; members run stages of several replicas meanwhile";
  if (!a.arriving.empty())
    out += "; state is on its way to";
  for (const peer_id& peer : holdings(a).receivers())
    out += " " + name_of(v, peer);
  return out;
}

std::string to_text(const view& v, const assignment& a,
                    const std::vector<unheld_wish>& unheld) {
  std::string out;
  const job_entry* job = find_job(v, a.job);
  const std::string part = // as the users of each kind of job call it
    job && job->kind == job_kind::serve ? "replica " : "island ";
  for (std::uint32_t i = 0; i < a.islands.size(); ++i) {
    if (a.islands.size() > 1)
      out += (i == 0 ? part : "; " + part) + std::to_string(i) + ": ";
    out += to_text(v, {a.job, i}, a.islands[i]);
  }
  if (waits(a))
    return out;
  for (const unheld_wish& w : unheld)
    out += "; " + to_text(w);
  return out + idle(v, a);
}

} // namespace shoal::core
