// tests/runtime/core/planning/detours_test.cpp -- stand-ins for a dead stage.
#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/followers.hpp"
#include "runtime/core/schedule/schedule.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"
#include "tests/support/held_parts.hpp"

#include <algorithm>
#include <random>

BOOST_AUTO_TEST_SUITE(detours)

using namespace shoal::core;

namespace {

/// Members with much memory and fast links, and a job with more state than a
/// step can move.
view large(std::size_t members, std::int32_t replicas, std::int32_t stages) {
  view v = make_view(members);
  for (member& m : v.members) {
    m.device.memory_bytes = 10'000'000'000'000;
    m.networks = {{"fast", 1'000, 1'000'000'000'000}};
  }
  job_entry& j = v.jobs[0];
  j.block_state_bytes = 20'000'000'000;
  j.embed_state_bytes = j.head_state_bytes = 1'000'000'000;
  j.want_replicas = replicas;
  j.want_stages = stages;
  return v;
}

void lose(view& v, const member_id& id) {
  std::erase_if(v.members, [&](const member& m) { return m.id == id; });
}

/// By member, microbatches of stages that it runs.
std::map<member_id, std::uint32_t> work_of(const island_place& a) {
  std::map<member_id, std::uint32_t> out;
  for (const replica_place& r : a.replicas)
    for (const stage_place& s : r.stages)
      out[s.lead()] += r.last_microbatch - r.first_microbatch;
  return out;
}

/// Whether each stage is on a member that held all of it before.
bool needs_no_move(const view& v, const island_place& a) {
  const island_place& was = v.previous.at(0).islands.at(0);
  for (std::uint32_t r = 0; r < a.replicas.size(); ++r)
    for (std::uint32_t s = 0; s < a.replicas[r].stages.size(); ++s) {
      const peer_id& who = a.replicas[r].stages[s].lead().peer;
      const auto held = held_by(was, who);
      const part_range units = parts_of(a, r, s);
      for (std::uint32_t u = units.first; u < units.last; ++u)
        if (!held.contains(u) || !find_member(v, who))
          return false;
    }
  return true;
}

/// What a member does on a detour where every input is there at once.
std::vector<work_kind> order_of(const island_place& a, const peer_id& who) {
  std::vector<pipeline> lines;
  for (const replica_place& r : a.replicas)
    lines.push_back(make_pipeline(a.schedule, r));
  std::vector<pipeline_role> roles;
  for (std::uint32_t r = 0; r < a.replicas.size(); ++r)
    if (const auto at = index_of(a.replicas[r], who))
      roles.push_back({r, &lines[r], *at});
  work_order order(roles);
  std::vector<work_kind> out;
  while (const auto item = order.next([](const work_item&) { return true; }))
    out.push_back(item->kind);
  BOOST_TEST(order.finished());
  return out;
}

/// Items between the first B and the first W after it.
std::ptrdiff_t waits(const std::vector<work_kind>& order) {
  return std::ranges::find(order, work_kind::weight_gradient)
         - std::ranges::find(order, work_kind::input_gradient) - 1;
}

} // namespace

/// A stand-in has microbatches of two replicas, and work for which others wait
/// comes first; less of that if its memory cannot keep enough of both.
BOOST_AUTO_TEST_CASE(weight_gradients_wait_on_a_detour) {
  for (const bool room : {true, false}) {
    view four = large(4, 2, 2);
    four.jobs[0].want_schedule = schedule_kind::one_f_one_b;
    if (!room) // twelve for each member, less its state
      four.jobs[0].activation_bytes = 800'000'000'000;
    const island_place was = only(four);
    BOOST_TEST((was.schedule == schedule_kind::one_f_one_b));
    view v = next_view(four);
    lose(v, was.replicas[1].stages[1].lead());
    const island_place meanwhile = only(v);
    BOOST_REQUIRE(makes_detour(meanwhile.replicas));
    BOOST_TEST((meanwhile.schedule == schedule_kind::zero_bubble));
    for (const replica_place& r : meanwhile.replicas)
      BOOST_TEST((room ? r.stages[1].kept_max > 1 : r.stages[1].kept_max == 1));
    const auto other = meanwhile.replicas[0].stages[1].lead().peer;
    const std::ptrdiff_t between = waits(order_of(meanwhile, other));
    BOOST_TEST((room ? between > 0 : between >= 0));

    v = next_view(v); // some other change
    BOOST_TEST((only(v).schedule == meanwhile.schedule));
    v.members = four.members; // and it is back, with its state at once
    for (member& m : v.members)
      if (m.id == was.replicas[1].stages[1].lead())
        m.id.incarnation = v.number;
    job_entry& j = v.jobs[0];
    j.block_state_bytes = j.embed_state_bytes = j.head_state_bytes = 1'000;
    BOOST_TEST((only(v).schedule == schedule_kind::one_f_one_b));
  }
}

BOOST_AUTO_TEST_CASE(the_same_stage_of_another_replica_stands_in) {
  const view four = large(4, 2, 2);
  const island_place was = only(four);
  BOOST_REQUIRE(was.replicas.size() == 2u && !makes_detour(was.replicas));
  view v = next_view(four);
  const member_id lost = was.replicas[1].stages[1].lead();
  const member_id beside = was.replicas[1].stages[0].lead();
  const member_id other = was.replicas[0].stages[1].lead();
  lose(v, lost);
  const island_place meanwhile = only(v);
  BOOST_TEST_MESSAGE(to_text(v, meanwhile));
  BOOST_TEST(makes_detour(meanwhile.replicas));
  BOOST_TEST(runs_all(v.jobs[0], meanwhile.replicas));
  BOOST_TEST(needs_no_move(v, meanwhile));
  BOOST_REQUIRE(meanwhile.replicas.size() == 2u);
  BOOST_TEST(replica_count(meanwhile.replicas) == 2u); // none is dropped
  BOOST_TEST((meanwhile.replicas[1].stages[0].lead() == beside));
  BOOST_TEST((meanwhile.replicas[1].stages[1].lead() == other));
  // Both are at all microbatches, or at half of them.
  const auto work = work_of(meanwhile);
  BOOST_TEST(work.at(other) == v.jobs[0].microbatches);
  BOOST_TEST(work.at(beside) == v.jobs[0].microbatches / 2);
  BOOST_TEST((holdings(meanwhile).receivers() == std::vector{beside.peer}));
  BOOST_TEST(to_text(v, meanwhile).find("several replicas")
             != std::string::npos);

  view then = next_view(v);
  BOOST_TEST((only(then) == meanwhile)); // nothing else changes it
  mark(then, mark_kind::arrived);
  const island_place better = only(then);
  BOOST_TEST(!makes_detour(better.replicas));
  BOOST_TEST(better.arriving.empty());
  BOOST_TEST(replica_count(better.replicas) == 2u);
  const auto came = arriving_at(meanwhile, beside.peer);
  const auto had = held_by(meanwhile, beside.peer);
  for (const std::uint32_t u : held_by(better, beside.peer))
    BOOST_TEST((came.contains(u) || had.contains(u)));
}

BOOST_AUTO_TEST_CASE(several_replicas_share_what_the_dead_stage_had) {
  const view v6 = large(6, 3, 2);
  view v = next_view(v6);
  const island_place was = only(v6);
  lose(v, was.replicas[0].stages[0].lead());
  const island_place a = only(v);
  BOOST_TEST_MESSAGE(to_text(v, a));
  BOOST_TEST(makes_detour(a.replicas));
  BOOST_TEST(needs_no_move(v, a));
  BOOST_TEST(replica_count(a.replicas) == 3u);
  BOOST_TEST(runs_all(v.jobs[0], a.replicas));
  // Two first stages are left for 8 microbatches: 4 and 4.
  std::map<member_id, std::uint32_t> first;
  for (const replica_place& r : a.replicas)
    first[r.stages[0].lead()] += r.last_microbatch - r.first_microbatch;
  BOOST_REQUIRE(first.size() == 2u);
  for (const auto& [who, count] : first)
    BOOST_TEST(count == 4u);
}

BOOST_AUTO_TEST_CASE(a_follower_stands_in_where_there_is_one_pipeline) {
  view three = large(3, 1, 3);
  three.jobs[0].want_copies = 1;
  three.jobs[0].want_copy_every = 1;
  const island_place was = only(three);
  BOOST_REQUIRE(!was.followers.empty());
  for (std::size_t s = 0; s < 3; ++s) {
    view v = next_view(three);
    lose(v, was.replicas[0].stages[s].lead());
    const island_place a = only(v);
    BOOST_TEST(runs_all(v.jobs[0], a.replicas));
    BOOST_TEST(needs_no_move(v, a));
    BOOST_TEST(a.replicas.size() == 1u);
    // Nobody follows what it runs.
    for (const holder_place& f : a.followers)
      for (std::uint32_t r = 0; r < a.replicas.size(); ++r)
        for (std::uint32_t i = 0; i < a.replicas[r].stages.size(); ++i) {
          const part_range units = parts_of(a, r, i);
          BOOST_TEST((a.replicas[r].stages[i].lead() != f.where.member
                      || f.last_unit <= units.first
                      || units.last <= f.first_unit));
        }
  }
}

BOOST_AUTO_TEST_CASE(two_ways_that_are_the_same_are_one) {
  const view four = large(4, 2, 2);
  const island_place was = only(four);
  view v = next_view(four);
  lose(v, was.replicas[1].stages[0].lead());
  lose(v, was.replicas[1].stages[1].lead());
  const island_place a = only(v);
  BOOST_TEST(a.replicas.size() == 1u);
  BOOST_TEST(!makes_detour(a.replicas));
  BOOST_TEST(runs_all(v.jobs[0], a.replicas));
}

BOOST_AUTO_TEST_CASE(a_second_loss_makes_another_detour) {
  const view six = large(6, 3, 2);
  view v = next_view(six);
  const island_place was = only(six);
  lose(v, was.replicas[0].stages[0].lead());
  view then = next_view(v);
  lose(then, was.replicas[1].stages[1].lead());
  const island_place a = only(then);
  BOOST_TEST(needs_no_move(then, a));
  BOOST_TEST(runs_all(then.jobs[0], a.replicas));
  BOOST_TEST(makes_detour(a.replicas));
}

/// Each loss makes several replicas of one: there is an end to that.
BOOST_AUTO_TEST_CASE(many_losses_do_not_make_replicas_without_end) {
  view v = large(96, 48, 2);
  v.jobs[0].microbatches = 4096;
  v = next_view(v);
  const island_place was = only(v);
  BOOST_REQUIRE(was.replicas.size() == 48u);
  for (std::size_t r = 0; r < 30; ++r) // one stage of each, in turn
    lose(v, was.replicas[r].stages[r % 2].lead());
  layout_problem p{v.jobs[0], {}, {}, &v.previous[0].islands[0], {}};
  for (const member& m : v.members) {
    p.members.push_back(&m);
    p.memory[m.id.peer] = m.device.memory_bytes;
  }
  const auto replicas = detour(p);
  BOOST_TEST(replicas.size() > 48u);
  BOOST_TEST(replicas.size() <= detour_replicas_max);
  BOOST_TEST(runs_all(v.jobs[0], replicas));
}

BOOST_AUTO_TEST_CASE(without_memory_for_it_there_is_none) {
  view four = large(4, 2, 2);
  job_entry& j = four.jobs[0];
  j.activation_bytes = 1'000'000'000;
  const island_place was = only(four);
  view v = next_view(four);
  lose(v, was.replicas[1].stages[1].lead());
  const member_id other = was.replicas[0].stages[1].lead();
  for (member& m : v.members) // its own stage, and nothing besides
    if (m.id == other)
      m.device.memory_bytes =
        4 * (j.block_state_bytes + j.activation_bytes) + j.head_state_bytes;
  for (const replica_place& r : only(v).replicas)
    for (const stage_place& s : r.stages)
      BOOST_TEST((s.lead() != was.replicas[1].stages[1].lead()));
  BOOST_TEST(!makes_detour(only(v).replicas));
}

BOOST_AUTO_TEST_CASE(layouts_after_any_losses_are_sound) {
  std::size_t found = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 rng(seed);
    auto below = [&](unsigned n) { return unsigned(rng() % n); };
    const auto replicas = std::int32_t(1 + below(4));
    const auto stages = std::int32_t(1 + below(4));
    view v = large(std::size_t(replicas * stages) + below(3), replicas, stages);
    v.jobs[0].microbatches = std::uint32_t(replicas) + below(12);
    v.jobs[0].want_copies = below(3);
    v.jobs[0].want_copy_every = 1 + below(2);
    for (member& m : v.members)
      m.device.mflops = 50'000 + below(100'000);
    for (int turn = 0; turn < 4 && v.members.size() > 1; ++turn) {
      v = next_view(v);
      lose(v, v.members[below(unsigned(v.members.size()))].id);
      const island_place a = only(v);
      BOOST_TEST_CONTEXT("seed " << seed << " turn " << turn << ": "
                                 << to_text(v, a)) {
        if (a.replicas.empty())
          break;
        BOOST_TEST(runs_all(v.jobs[0], a.replicas));
        if (makes_detour(a.replicas)) {
          ++found;
          BOOST_TEST(needs_no_move(v, a));
          BOOST_TEST(copies_of(a, v.jobs[0].blocks) >= 1u);
        }
        for (const replica_place& r : a.replicas)
          for (const stage_place& s : r.stages)
            BOOST_TEST((find_member(v, s.lead().peer) != nullptr));
      }
    }
  }
  BOOST_TEST(found > 100u);
}

BOOST_AUTO_TEST_SUITE_END()
