// tests/runtime/core/planning/arrivals_test.cpp -- state that moves while a job
// goes on.
#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/planning/followers.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"
#include "tests/support/held_parts.hpp"

#include <algorithm>

BOOST_AUTO_TEST_SUITE(arrivals)

using namespace shoal::core;

namespace {

/// Members with much memory, and a job with much state.
view large(std::size_t members) {
  view v = make_view(members);
  for (member& m : v.members)
    m.device.memory_bytes = 10'000'000'000'000;
  job_entry& j = v.jobs[0];
  j.block_state_bytes = 20'000'000'000;
  j.embed_state_bytes = j.head_state_bytes = 1'000'000'000;
  return v;
}

void join(view& v, std::uint8_t n) {
  v.members.push_back(make_member(n, 100'000, 10'000'000'000'000));
}

void arrive(view& v) {
  mark(v, mark_kind::arrived);
}

std::size_t units_in(const std::vector<holder_place>& places) {
  std::size_t n = 0;
  for (const holder_place& f : places)
    n += f.last_unit - f.first_unit;
  return n;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_joiner_gets_much_state_before_it_takes_part) {
  const view one = large(1);
  view v = next_view(one);
  join(v, 2);
  const island_place was = only(one), meanwhile = only(v);
  const peer_id joiner = v.members.back().id.peer;
  BOOST_TEST((meanwhile.replicas == was.replicas));
  BOOST_TEST((meanwhile.schedule == was.schedule));
  BOOST_TEST(!arriving_at(meanwhile, joiner).empty());
  BOOST_TEST((holdings(meanwhile).receivers() == std::vector{joiner}));
  BOOST_TEST((participants_of(meanwhile) == participants_of(was)));
  BOOST_TEST(std::ranges::count(meanwhile.sealers, v.members.back().id) == 1);
  BOOST_TEST(to_text(v, meanwhile).find("on its way to") != std::string::npos);

  view then = next_view(v);
  BOOST_TEST((only(then) == meanwhile)); // nothing else changes it
  arrive(then);
  const island_place better = only(then);
  BOOST_TEST(better.arriving.empty());
  BOOST_TEST((better.replicas != was.replicas));
  BOOST_TEST(better.since == then.number);
  // All that the joiner has to hold has arrived.
  const auto came = arriving_at(meanwhile, joiner);
  for (const std::uint32_t u : held_by(better, joiner))
    BOOST_TEST(came.contains(u));
}

BOOST_AUTO_TEST_CASE(arrivals_are_not_given_up_for_a_changed_speed) {
  view v = next_view(large(2));
  v.jobs[0].want_replicas = 1;
  join(v, 3);
  const island_place meanwhile = only(v);
  BOOST_REQUIRE(!meanwhile.arriving.empty());
  view slower = next_view(v);
  slower.members[0].device.mflops /= 3;
  BOOST_TEST((only(slower) == meanwhile));
  // Once it is there, what else has changed counts.
  view then = next_view(slower);
  arrive(then);
  BOOST_TEST((only(then).replicas != meanwhile.replicas));
}

// Others may have been about to take over its work, or have old copies: these
// need not continue.
BOOST_AUTO_TEST_CASE(a_returning_peer_takes_its_place_again) {
  for (int victim = 0; victim < 4; ++victim)
    for (const std::uint64_t faster : {0u, 10'000u}) {
      view v = large(4);
      v.jobs[0].want_replicas = v.jobs[0].want_stages = 2;
      v.jobs[0].want_copies = 1;
      v.jobs[0].want_copy_every = 24;
      for (member& m : v.members) // reductions are no matter beside the rest
        m.networks.push_back({"tls", 1'000, 100'000'000'000'000});
      // Without what would move, others would be a little better.
      for (member& m : v.members)
        m.device.mflops += faster * m.id.peer[0];
      view after = next_view(v);
      const member lost = after.members[std::size_t(victim)];
      after.members.erase(after.members.begin() + victim);
      view back = next_view(after);
      back.members.insert(back.members.begin() + victim, lost);
      back.members[std::size_t(victim)].id.incarnation = back.number;
      const island_place meanwhile = only(back);
      BOOST_TEST(
        (holdings(meanwhile).receivers() == std::vector{lost.id.peer}));
      view then = next_view(back);
      arrive(then);
      BOOST_TEST(workers(only(then)).size() == 4u);
      BOOST_TEST(only(then).arriving.empty());
    }
}

BOOST_AUTO_TEST_CASE(a_join_or_leave_meanwhile_makes_another_plan) {
  view v = next_view(large(2));
  join(v, 3);
  const island_place meanwhile = only(v);
  BOOST_REQUIRE(!meanwhile.arriving.empty());
  view more = next_view(v);
  join(more, 4);
  more.members.back().id.incarnation = more.number;
  BOOST_TEST((only(more) != meanwhile));
  view less = next_view(v);
  less.members.pop_back(); // at which it arrives
  BOOST_TEST((only(less) != meanwhile));
  view again = next_view(v);
  mark(again, mark_kind::retried);
  BOOST_TEST(only(again).since == again.number);
}

BOOST_AUTO_TEST_CASE(a_short_move_is_made_at_once) {
  view v = make_view(1);
  v.jobs[0].block_state_bytes = 1'000'000;
  v = next_view(v);
  join(v, 2);
  BOOST_TEST(only(v).arriving.empty());
  BOOST_TEST(workers(only(v)).size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_layout_that_has_lost_a_member_is_not_kept) {
  view v = large(3);
  v.jobs[0].want_replicas = 1;
  v.jobs[0].want_stages = 3;
  view after = next_view(v);
  const member_id lost = only(v).replicas[0].stages[1].lead();
  std::erase_if(after.members, [&](const member& m) { return m.id == lost; });
  for (const replica_place& r : only(after).replicas)
    for (const stage_place& s : r.stages)
      BOOST_TEST((s.lead() != lost));
}

BOOST_AUTO_TEST_CASE(a_new_follower_gets_its_state_first) {
  view v = large(3);
  v.jobs[0].want_replicas = 1;
  v.jobs[0].want_stages = 2;
  v.jobs[0].want_copies = 1;
  v.jobs[0].want_copy_every = 1;
  const island_place first = only(v);
  BOOST_TEST(first.arriving.empty()); // all begin at the origin
  BOOST_REQUIRE(!first.followers.empty());
  // The one that only follows goes; another comes.
  const auto at_work = workers(first);
  member_id spare{};
  for (const member& m : v.members)
    if (!at_work.contains(m.id))
      spare = m.id;
  view after = next_view(v);
  std::erase_if(after.members, [&](const member& m) { return m.id == spare; });
  join(after, 9);
  const island_place meanwhile = only(after);
  BOOST_TEST((meanwhile.replicas == first.replicas));
  BOOST_TEST(meanwhile.copy_every == 1u);
  BOOST_TEST(units_in(meanwhile.arriving) > 0u);
  BOOST_TEST(units_in(meanwhile.arriving) + units_in(meanwhile.followers)
             == units_in(first.followers));
  view then = next_view(after);
  arrive(then);
  BOOST_TEST(copies_of(only(then), v.jobs[0].blocks) == 2u);
  BOOST_TEST(only(then).arriving.empty());
}

BOOST_AUTO_TEST_CASE(without_memory_for_arrivals_all_wait) {
  const view one = large(1);
  const job_entry& job = one.jobs[0];
  view v = next_view(one);
  join(v, 2);
  // As much as a replica needs, and nothing for gradients that are kept.
  v.members.back().device.memory_bytes =
    state_bytes(job, {0, job.blocks + 2}) * 21 / 20;
  const island_place a = only(v);
  BOOST_TEST(a.arriving.empty());
  BOOST_TEST(workers(a).size() == 2u);
}

BOOST_AUTO_TEST_CASE(replicas_take_turns_at_sending) {
  view v = large(2);
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 1;
  view after = next_view(v);
  v.jobs[0].want_replicas = 3;
  after.jobs[0].want_replicas = 3;
  join(after, 3);
  const island_place a = only(after);
  BOOST_REQUIRE(!a.arriving.empty());
  BOOST_REQUIRE(a.replicas.size() == 2u);
  for (const holder_place& f : a.arriving)
    for (std::uint32_t u = f.first_unit; u < f.last_unit; ++u) {
      const peer_id from = holdings(a).source(u).peer;
      BOOST_TEST((from == a.replicas[u % 2].stages.front().lead().peer));
      const auto held = held_by(a, from);
      BOOST_TEST(held.contains(u));
      BOOST_TEST(holdings(a).holders(u) == 2u);
    }
}

BOOST_AUTO_TEST_CASE(a_copy_is_cut_into_even_pieces) {
  BOOST_TEST(pieces_of(1).count == 1u);
  BOOST_TEST(pieces_of(arrival_piece_bytes).count == 1u);
  BOOST_TEST(pieces_of(arrival_piece_bytes + 1).count == 2u);
  const std::uint64_t large = 7 * arrival_pieces_max * arrival_piece_bytes + 5;
  const arrival_pieces p = pieces_of(large);
  BOOST_TEST(p.count <= arrival_pieces_max);
  BOOST_TEST(p.count * p.bytes >= large);
  BOOST_TEST((p.count - 1) * p.bytes < large);
}

BOOST_AUTO_TEST_CASE(a_source_rests_but_a_copy_gets_there) {
  const nanoseconds ms = 1'000'000, step = 300 * ms;
  // A small part of a step: 5 % of the time.
  BOOST_TEST(rest_after_piece(2 * ms, step, 2) == 38 * ms);
  // One that needs a large part of each step: within half of the backlog.
  for (const std::uint32_t count : {10u, 100u, 1000u})
    for (const nanoseconds took : {ms / 100, ms, 20 * ms, 5'000 * ms}) {
      const nanoseconds rest = rest_after_piece(took, step, count);
      BOOST_TEST(rest >= 0);
      BOOST_TEST(rest <= 19 * took);
      if (rest > 0)
        BOOST_TEST((took + rest) * count
                   <= step * nanoseconds(arrival_backlog_max / 2));
    }
  BOOST_TEST(rest_after_piece(5'000 * ms, step, 10) == 0);
  BOOST_TEST(rest_after_piece(ms, 0, 10) == 0); // no step yet
  BOOST_TEST(rest_after_piece(0, step, 10) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
