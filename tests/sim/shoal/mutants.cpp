// tests/sim/shoal/mutants.cpp -- changes messages and actions like a bug.
#include "tests/sim/shoal/mutants.hpp"

#include "runtime/core/planning/plan.hpp"
#include "tests/sim/shoal/world.hpp"
#include "tests/support/held_parts.hpp"

#include <algorithm>

namespace shoal::sim {

using namespace core;
namespace act = core::job_action;
namespace ev = core::job_event;

namespace {

bool asks_again(const job_input& in) {
  const auto* r = std::get_if<ev::received>(&in);
  if (r == nullptr)
    return false;
  if (const auto* v = std::get_if<vote>(&r->message))
    return v->again;
  const auto* s = std::get_if<seal>(&r->message);
  return s != nullptr && s->again;
}

} // namespace

const char* name_of(mutant bug) {
  constexpr const char* names[mutant_count] = {"nothing",
                                               "epoch_unchecked",
                                               "answers_dropped",
                                               "cursor_off_by_one",
                                               "rollback_forgotten",
                                               "vote_counted_twice",
                                               "stale_part_summed",
                                               "moments_not_moved",
                                               "votes_not_stored",
                                               "cancel_forgotten",
                                               "applied_twice",
                                               "checksum_ignored",
                                               "former_views_shown",
                                               "loss_unsaid",
                                               "optimizer_restarts",
                                               "tags_without_plan",
                                               "followers_do_not_apply",
                                               "disks_unwatched",
                                               "numbers_not_changed",
                                               "all_islands_changed",
                                               "ends_with_one_island",
                                               "marks_of_another",
                                               "samples_shared",
                                               "all_islands_canceled",
                                               "end_not_obeyed"};
  return names[std::size_t(bug)];
}

void mutate(const shoal_world& world, const view& v, plan& p) {
  for (assignment& a : p.jobs) {
    const auto before = std::ranges::find(v.previous, a.job, &assignment::job);
    if (before == v.previous.end()
        || before->islands.size() != a.islands.size())
      continue;
    const bool changed = std::ranges::any_of(
      a.islands, [&](const island_place& i) { return i.since == v.number; });
    for (std::size_t i = 0; i < a.islands.size(); ++i)
      if (world.has(mutant::numbers_not_changed))
        a.islands[i].since = before->islands[i].since;
      else if (world.has(mutant::all_islands_changed) && changed)
        a.islands[i].since = v.number;
  }
}

void mutate(const shoal_world& world, core::cluster::event& e) {
  namespace cl = core::cluster;
  const auto next = [&](job_id job, std::uint32_t island) {
    return (island + 1) % world.work(job).entry.want_islands;
  };
  if (auto* s = std::get_if<cl::set_job_state>(&e)) {
    if (world.has(mutant::ends_with_one_island))
      s->since = 0;
    if (world.has(mutant::marks_of_another))
      s->island = next(s->id, s->island);
  } else if (auto* r = std::get_if<cl::retry_job>(&e)) {
    if (world.has(mutant::marks_of_another))
      r->id.index = next(r->id.job, r->id.index);
  } else if (auto* n = std::get_if<cl::job_arrived>(&e)) {
    if (world.has(mutant::marks_of_another))
      n->id.index = next(n->id.job, n->id.index);
  }
}

std::vector<job_input>
mutate(shoal_world& world, int node, const island_id& id, const job_input& in) {
  if (world.has(mutant::end_not_obeyed)
      && std::holds_alternative<ev::drain>(in))
    return {};
  std::vector<job_input> told{in};
  const auto* r = std::get_if<ev::received>(&in);
  const island_place* place = world.past(id).told(node);
  if (r == nullptr || place == nullptr)
    return told;
  if (world.has(mutant::epoch_unchecked)) {
    auto& message = std::get<ev::received>(told[0]).message;
    std::visit(
      [&](auto& m) {
        m.header.digest = digest(m.header.id(), *place);
        m.header.since = place->since;
      },
      message);
  } else if (world.has(mutant::vote_counted_twice)
             && std::holds_alternative<vote>(r->message)
             && world.chance(0.02)) {
    for (const peer_id& p : participants_of(*place))
      if (p != r->from && world.number_of(p) != node) {
        told.push_back(ev::received{p, r->message});
        break;
      }
  }
  return told;
}

void mutate(shoal_world& world, int node, const island_id& id,
            const job_input& in, job_actions& out) {
  if (world.has(mutant::answers_dropped) && asks_again(in))
    std::erase_if(out, [](const job_output& a) {
      return std::holds_alternative<act::send>(a);
    });
  if (world.has(mutant::loss_unsaid))
    std::erase_if(out, [](const job_output& a) {
      return std::holds_alternative<act::lost_state>(a)
             || std::holds_alternative<act::went_back>(a);
    });
  const island_place* place = world.past(id).told(node);
  if (world.has(mutant::followers_do_not_apply) && place != nullptr)
    for (job_output& a : out)
      if (auto* apply = std::get_if<act::apply>(&a))
        for (const peer_id& p : participants_of(*place))
          if (world.number_of(p) == node)
            for (const part_index u : followed_by(*place, p))
              std::erase(apply->units, u);
  const auto adopts = [](const job_output& a) {
    return std::holds_alternative<act::adopt>(a);
  };
  if (world.has(mutant::applied_twice) && std::ranges::any_of(out, adopts))
    for (job_output& a : out)
      if (auto* apply = std::get_if<act::apply>(&a)) {
        const auto once = apply->units;
        apply->units.insert(apply->units.end(), once.begin(), once.end());
      }
}

} // namespace shoal::sim
