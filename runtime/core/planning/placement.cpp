// runtime/core/planning/placement.cpp -- roles, keepers, sealers.
#include "runtime/core/planning/placement.hpp"

#include "runtime/core/view.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace shoal::core {
namespace {

const member* present(const view& v, const member_id& id) {
  const member* m = find_member(v, id.peer);
  return m && m->id == id ? m : nullptr;
}

/// The participant that reports the progress of the run: `wanted`, unless
/// another one can be reached by more members, or by the submitter.
member_id
best_heard(const view& v, const peer_id& submitter,
           const std::vector<member_id>& taking_part, const member_id& wanted) {
  auto unheard = [&](const member_id& id) {
    std::size_t count = is_cut(v, id.peer, submitter) ? v.members.size() : 0;
    for (const cut_pair& c : v.cuts)
      count += c.low == id || c.high == id;
    return count;
  };
  member_id best = wanted;
  if (!v.cuts.empty())
    for (const member_id& id : taking_part)
      if (unheard(id) < unheard(best))
        best = id;
  return best;
}

/// Whether some worker cannot reach the member: then it takes no part.
bool cut_off(const view& v, const layout_problem& p, const member_id& id) {
  if (v.cuts.empty())
    return false;
  return std::ranges::any_of(p.members, [&](const member* m) {
    return m->id != id && is_cut(v, m->id.peer, id.peer);
  });
}

/// All members that compute or follow, and their hosts.
struct taking_part {
  std::set<member_id> members;
  std::set<std::string> hosts;
};

taking_part who_takes_part(const island_place& a, const view& v) {
  taking_part out;
  for (const member_id& id : workers(a.replicas))
    out.members.insert(id);
  for (const holder_place& f : a.followers)
    out.members.insert(f.where.member);
  for (const member_id& id : out.members)
    if (const member* m = present(v, id); m && !m->host.empty())
      out.hosts.insert(m->host);
  return out;
}

} // namespace

bool usable(const member& m, member_state state) {
  return m.state == state && !m.witness && m.device.mflops > 0;
}

member_state working_state(const view& v) {
  for (const member& m : v.members)
    if (usable(m, member_state::active))
      return member_state::active;
  return member_state::leaving;
}

std::vector<member_id> workers(const std::vector<replica_place>& replicas) {
  std::set<member_id> out;
  for (const replica_place& r : replicas)
    for (const stage_place& s : r.stages)
      for (const shard_place& shard : s.shards)
        out.insert(shard.where.member);
  return {out.begin(), out.end()};
}

void leave_out_cut(const view& v, const island_place* previous,
                   std::vector<const member*>& members) {
  const auto had =
    workers(previous ? previous->replicas : decltype(previous->replicas){});
  auto worth = [&](const member* m) {
    const std::uint64_t speed = std::min(m->device.mflops, cost_never / 32);
    return speed * 10 + (std::ranges::binary_search(had, m->id) ? speed : 0);
  };
  for (;;) {
    std::map<const member*, std::uint64_t> against; // worth of the members cut
                                                    // off from it
    for (const cut_pair& c : v.cuts) {
      auto low =
        std::ranges::find(members, c.low, [](auto* m) { return m->id; });
      auto high =
        std::ranges::find(members, c.high, [](auto* m) { return m->id; });
      if (low == members.end() || high == members.end())
        continue;
      against[*low] += worth(*high);
      against[*high] += worth(*low);
    }
    // Leaves out the member that is worth least compared to those that its
    // absence would keep; in a tie the highest id.
    __extension__ using wide = unsigned __int128;
    const member* out = nullptr;
    for (const member* m : members)
      if (against.contains(m)
          && (!out
              || wide(worth(m)) * against[out]
                   <= wide(worth(out)) * against[m]))
        out = m;
    if (!out)
      return;
    std::erase(members, out);
  }
}

void place_roles(island_place& a, const view& v, const peer_id& submitter,
                 const island_place* previous) {
  if (a.replicas.empty())
    return;
  const std::vector<member_id> taking_part = workers(a.replicas);
  auto here = [&](const member_id& id) {
    return std::ranges::binary_search(taking_part, id);
  };
  auto stay = [&](const member_id& id, const member_id& otherwise) {
    return here(id) ? id : otherwise;
  };
  const island_place was = previous ? *previous : island_place{};
  const auto& stages = a.replicas.front().stages;
  const member_id &first = stages.front().lead(), &last = stages.back().lead();
  // A member that does not keep the data would have to fetch it first.
  const auto kept = std::ranges::find_if(was.keepers, here);
  a.data_source =
    stay(was.data_source, kept == was.keepers.end() ? first : *kept);
  a.checkpointer = stay(was.checkpointer, first);
  a.evaluator = stay(was.evaluator, last);
  a.reporter = stay(was.reporter, last);
  for (member_id* id : {&a.checkpointer, &a.evaluator, &a.reporter})
    *id = best_heard(v, submitter, taking_part, *id);
}

namespace {

/// Adds a member that may be a keeper, unless the list has `most` of them.
/// @param any_kind also a witness
void add_keeper(std::vector<member_id>& to, const member* m, bool any_kind,
                std::size_t most, const view& v, const layout_problem& p) {
  // A keeper seals: what becomes of it must not stop another island.
  const bool elsewhere =
    islands_of(p.job) > 1 && std::ranges::find(p.members, m) == p.members.end();
  if (m && m->state == working_state(v) && (any_kind || !m->witness)
      && !elsewhere && !cut_off(v, p, m->id) && to.size() < most
      && std::ranges::find(to, m->id) == to.end())
    to.push_back(m->id);
}

} // namespace

void place_keepers(island_place& a, const view& v, const layout_problem& p,
                   const island_place* previous) {
  if (p.job.kind == job_kind::serve)
    return; // file_keepers.hpp
  const std::size_t wanted =
    std::max<std::size_t>(keepers_min, p.job.want_copies + 1);
  const auto add = [&](const member* m, bool any_kind, std::size_t most) {
    add_keeper(a.keepers, m, any_kind, most, v, p);
  };
  if (previous)
    for (const member_id& id : previous->keepers)
      add(present(v, id), true, wanted + 1);
  const bool kept = previous && previous->keepers == a.keepers;
  if (!previous || previous->keepers.empty())
    add(find_member(v, p.job.submitter), true, wanted); // it already has them
  if (!a.replicas.empty())
    for (const member_id& id :
         {a.data_source, a.checkpointer, a.evaluator, a.reporter})
      add(present(v, id), false, wanted);
  for (const member_id& id : workers(a.replicas))
    add(present(v, id), false, wanted);
  add(find_member(v, p.job.submitter), true, wanted);
  for (const member& m : v.members)
    add(&m, false, wanted);
  const bool moved = !kept || previous->replicas != a.replicas
                     || previous->followers != a.followers;
  if (const taking_part at_work = who_takes_part(a, v);
      moved && std::ranges::all_of(a.keepers, [&](const member_id& id) {
        return at_work.members.contains(id);
      }))
    for (const bool elsewhere : {true, false})
      for (const member& m : v.members)
        if (!at_work.members.contains(m.id)
            && elsewhere != at_work.hosts.contains(m.host))
          add(&m, false, wanted + 1);
  std::ranges::sort(a.keepers);
}

void place_part_keepers(island_place& a, const view& v, const layout_problem& p,
                        const island_place* previous) {
  const std::size_t wanted = p.job.want_part_keepers;
  if (wanted <= a.keepers.size())
    return;
  const auto add = [&](const member* m, bool any_kind) {
    add_keeper(a.part_keepers, m, any_kind, wanted, v, p);
  };
  if (previous)
    for (const member_id& id : previous->part_keepers)
      add(present(v, id), true);
  for (const member_id& id : a.keepers)
    add(present(v, id), true);
  for (const member_id& id : workers(a.replicas))
    add(present(v, id), false);
  for (const member& m : v.members)
    add(&m, false);
  if (a.part_keepers.size() <= a.keepers.size())
    a.part_keepers.clear();
  std::ranges::sort(a.part_keepers);
}

void place_sealers(island_place& a, const view& v, const layout_problem& p,
                   const island_place* previous) {
  if (p.job.kind == job_kind::serve)
    return; // nothing is sealed
  std::set<member_id> all(a.keepers.begin(), a.keepers.end());
  all.insert(a.part_keepers.begin(), a.part_keepers.end());
  for (const member_id& id : workers(a.replicas))
    all.insert(id);
  for (const auto* places : {&a.followers, &a.arriving})
    for (const holder_place& f : *places)
      all.insert(f.where.member);
  if (previous) {
    auto keep = [&](const std::vector<member_id>& ids) {
      for (const member_id& id : ids)
        if (present(v, id) && !cut_off(v, p, id))
          all.insert(id);
    };
    keep(previous->sealers);
    keep(workers(previous->replicas));
    keep(previous->keepers);
    keep(previous->part_keepers);
  }
  a.sealers.assign(all.begin(), all.end());
}

} // namespace shoal::core
