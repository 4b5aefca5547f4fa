// runtime/jobs/unheld_roles.cpp -- compares placements with members' roles.
#include "runtime/jobs/unheld_roles.hpp"

#include "runtime/core/planning/placement.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <set>

namespace shoal::runtime {

namespace {

/// Members on which a placement puts its role.
std::vector<const core::member*>
places_of(const core::view& v, const core::assignment& place,
          const role_placement& r) {
  std::set<core::member_id> at_work;
  for (const core::island_place& at : place.islands)
    for (const core::member_id& id : core::workers(at.replicas))
      at_work.insert(id);
  std::vector<const core::member*> out;
  for (const core::member& m : v.members) {
    const bool active = m.state == core::member_state::active && !m.witness;
    if (r.where == "every_stage"
          ? at_work.contains(m.id)
          : active && (r.where == "every_peer" || r.where == m.name))
      out.push_back(&m);
  }
  return out;
}

} // namespace

std::vector<core::unheld_wish>
unheld_roles(const core::view& v, const core::assignment& place,
             const std::vector<role_placement>& roles) {
  std::vector<core::unheld_wish> out;
  if (core::waits(place))
    return out;
  for (const role_placement& r : roles) {
    const std::string wanted = "'" + r.name + "' on " + r.where;
    const auto places = places_of(v, place, r);
    if (places.empty()) {
      out.push_back({"roles", wanted, "not started",
                     "no active peer is called '" + r.where + "'"});
      continue;
    }
    std::string lacking;
    std::size_t count = 0;
    for (const core::member* m : places)
      if (std::ranges::find(m->roles, r.name) == m->roles.end()) {
        ++count;
        lacking += (lacking.empty() ? "" : ", ")
                   + (m->name.empty() ? core::short_name(m->id.peer) : m->name);
      }
    if (count == 0)
      continue;
    constexpr std::size_t listed_max = 8; // names on a line
    const bool none = count == places.size();
    std::string why = none ? "no peer there has it" : lacking;
    if (!none && count > listed_max)
      why = std::to_string(count) + " peers";
    if (!none)
      why += count == 1 ? " lacks it" : " lack it";
    out.push_back({"roles", wanted, none ? "not started" : "started on others",
                   why + ": start nodes with `shoal node --plugin FILE`"});
  }
  return out;
}

std::vector<core::unheld_wish>
unheld_of(const core::view& v, const core::assignment& place) {
  std::vector<core::unheld_wish> out = core::unheld_wishes(v, place);
  const core::job_entry* job = core::find_job(v, place.job);
  const auto of_copies = [](const core::unheld_wish& w) {
    return w.key == "fault_tolerance.copies";
  };
  if (!job
      || (std::ranges::none_of(out, of_copies)
          && job->run_json.find("\"roles\"") == std::string::npos))
    return out; // most runs lack nothing: skip reading the run file
  const auto run = parse_run(job->run_json, "job");
  if (!run)
    return out;
  if (run->copies < 0)
    std::erase_if(out, of_copies);
  for (core::unheld_wish& w : unheld_roles(v, place, run->roles))
    out.push_back(std::move(w));
  return out;
}

} // namespace shoal::runtime
