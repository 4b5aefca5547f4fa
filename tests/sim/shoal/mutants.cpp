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
                                               "disks_unwatched"};
  return names[std::size_t(bug)];
}

std::vector<job_input>
mutate(shoal_world& world, int node, const island_id& id, const job_input& in) {
  std::vector<job_input> told{in};
  const auto* r = std::get_if<ev::received>(&in);
  const island_place* place = world.past(id).told(node);
  if (r == nullptr || place == nullptr)
    return told;
  if (world.has(mutant::epoch_unchecked)) {
    auto& message = std::get<ev::received>(told[0]).message;
    std::visit(
      [&](auto& m) {
        m.on.digest = digest(m.on.id(), *place);
        m.on.since = place->since;
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
