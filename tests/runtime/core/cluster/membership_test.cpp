// tests/runtime/core/cluster/membership_test.cpp -- one core, or two that talk
// without delay: cases that the simulation does not cover.
#include "runtime/core/cluster/local/view_size.hpp"
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_membership {

using namespace shoal::tests;

} // namespace cluster_membership

BOOST_FIXTURE_TEST_SUITE(cluster_membership, cluster_membership::pair_of_nodes)

BOOST_AUTO_TEST_CASE(a_peer_without_history_is_a_shoal_of_one_at_once) {
  begin(a);
  BOOST_TEST(a.core->current().number == 1u);
  BOOST_TEST((a.core->phase() == phase::member));
  BOOST_TEST(a.disk.view.has_value());
}

BOOST_AUTO_TEST_CASE(two_that_meet_become_one_view) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  BOOST_TEST(together());
}

BOOST_AUTO_TEST_CASE(a_member_that_is_gone_does_not_keep_a_peer_outside) {
  begin(a);
  b.disk.view = view_record{a.core->current(), false, {}};
  begin(b);
  // Its connection lingers; when it last spoke the shoal had more members.
  hello gone;
  gone.cluster = b.c.cluster;
  gone.shoal = a.core->current().shoal;
  gone.number = a.core->current().number;
  gone.members = 9;
  gone.joinable = true;
  give(b, peer_up{peer(9), 1});
  give(b, received{peer(9), gone});
  link();
  run(1000 * ms);
  BOOST_TEST(together());
}

BOOST_AUTO_TEST_CASE(a_view_that_names_a_former_process_is_not_for_actors) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  give(b, peer_down{a.c.self.id.peer});
  begin(a); // back with its disk
  const auto shown = [&] {
    const new_view* newest = nullptr;
    for (const action& x : a.said)
      if (const auto* v = std::get_if<new_view>(&x))
        newest = v;
    return newest;
  };
  BOOST_REQUIRE(shown());
  BOOST_TEST(find_member(shown()->current, a.c.self.id.peer));
  BOOST_TEST(!is_ours(*shown(), a.c.self.id.peer));
  BOOST_TEST(is_ours(*shown(), peer(9))); // a peer that is not in it has lost
                                          // its work
  link();
  run(1000 * ms);
  BOOST_TEST(together());
  BOOST_TEST(is_ours(*shown(), a.c.self.id.peer));
}

BOOST_AUTO_TEST_CASE(shoals_of_other_clusters_are_left_alone) {
  b.c.cluster = "another";
  begin(a);
  begin(b);
  link();
  run(2000 * ms);
  BOOST_TEST(a.core->current().members.size() == 1u);
  BOOST_TEST(b.core->current().members.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_clean_leaver_has_no_history_and_the_rest_goes_on) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  for (node* n : {&a, &b}) {
    pair_of_nodes w;
    w.begin(w.a);
    w.begin(w.b);
    w.link();
    w.run(300 * ms);
    node& goes = n == &a ? w.a : w.b;
    node& stays = n == &a ? w.b : w.a;
    w.give(goes, leave{});
    w.run(200 * ms);
    BOOST_TEST((find_member(stays.core->current(), goes.c.self.id.peer)->state
                == member_state::leaving));
    w.give(goes, leave_now{});
    w.run(500 * ms);
    BOOST_TEST(goes.count<left>() == 1u);
    BOOST_TEST(goes.erased);
    BOOST_TEST(stays.core->current().members.size() == 1u);
    BOOST_TEST((stays.core->phase() == phase::member));
  }
}

BOOST_AUTO_TEST_CASE(the_last_member_leaves_and_keeps_its_history) {
  begin(a);
  give(a, leave{});
  BOOST_TEST(a.count<left>() == 0u); // its jobs may still have to be ended
  give(a, leave_now{});
  BOOST_TEST(a.count<left>() == 1u);
  BOOST_TEST(!a.erased);
  BOOST_TEST(a.disk.view.has_value());
}

BOOST_AUTO_TEST_CASE(two_that_leave_together_are_both_gone_soon) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  for (node* n : {&a, &b})
    give(*n, leave{});
  run(500 * ms);
  for (node* n : {&a, &b})
    give(*n, leave_now{});
  run(1000 * ms);
  for (node* n : {&a, &b}) {
    BOOST_TEST(n->count<left>() == 1u);
    for (const action& x : n->said)
      if (const auto* l = std::get_if<left>(&x))
        BOOST_TEST(l->clean);
  }
  BOOST_TEST(int(a.erased) + int(b.erased) == 1); // the shoal sleeps with one
}

BOOST_AUTO_TEST_CASE(a_leaver_without_a_quorum_does_not_wait_long) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  a.core.reset();
  linked = false;
  give(b, peer_down{a.c.self.id.peer});
  run(2000 * ms);
  give(b, leave{});
  run(b.c.alone_patience + 100 * ms);
  BOOST_TEST(b.count<left>() == 1u);
  BOOST_TEST(b.disk.view.has_value());
}

BOOST_AUTO_TEST_CASE(a_restarted_peer_waits_and_names_the_missing_peers) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  a.core.reset();
  linked = false;
  begin(b); // the higher of two: no quorum alone
  run(21'000 * ms);
  BOOST_TEST((b.core->phase() == phase::waiting));
  BOOST_TEST(b.count<waiting_for>() == 2u);
  BOOST_TEST(b.count<new_view>() == 1u);
}

BOOST_AUTO_TEST_CASE(force_makes_a_new_shoal_that_keeps_the_jobs) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  job_entry j;
  j.id = 5;
  give(a, submit_job{j});
  run(300 * ms);
  view old = b.core->current();
  BOOST_TEST(find_job(old, 5) != nullptr);
  a.core.reset();
  linked = false;
  begin(b);
  give(b, recover_force{});
  const view& v = b.core->current();
  BOOST_TEST((v.shoal != old.shoal));
  BOOST_TEST(v.number > old.number);
  BOOST_TEST(v.members.size() == 1u);
  BOOST_TEST(find_job(v, 5) != nullptr);
  give(b, recover_force{}); // nothing to recover from now
  BOOST_TEST(b.count<rejected>() == 1u);
}

BOOST_AUTO_TEST_CASE(both_restarted_are_readmitted_as_new_incarnations) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  view old = a.core->current();
  linked = false;
  wire.clear();
  begin(a);
  begin(b);
  link();
  run(500 * ms);
  BOOST_TEST(together());
  BOOST_TEST((a.core->current().shoal == old.shoal));
  for (const member& m : a.core->current().members)
    BOOST_TEST(m.id.incarnation > old.number);
}

BOOST_AUTO_TEST_CASE(a_killed_peer_is_removed_within_300_ms) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  nanoseconds killed = now;
  b.core.reset();
  linked = false;
  give(a, peer_down{b.c.self.id.peer});
  BOOST_TEST(a.count<connect>() > 0u);
  give(a, connect_failed{b.c.self.addresses[0]});
  while (a.core->current().members.size() > 1 && now - killed < 1000 * ms)
    run(ms);
  BOOST_TEST(now - killed <= 300 * ms);
}

/// Addresses that `n` has been told to dial since `said` had `first` entries.
static std::size_t
dials(const node& n, const std::string& address, std::size_t first = 0) {
  std::size_t count = 0;
  for (std::size_t i = first; i < n.said.size(); ++i)
    if (auto* c = std::get_if<connect>(&n.said[i]))
      count += c->address == address;
  return count;
}

/// One place for each job, if `replicas`; else all wait for members.
template <bool replicas>
std::vector<assignment> plan_all(const view& v) {
  std::vector<assignment> out;
  for (const job_entry& j : v.jobs) {
    assignment& a = out.emplace_back(assignment{j.id, {1, island_place{}}});
    if (replicas)
      a.islands[0].replicas.emplace_back();
  }
  return out;
}

/// How long a peer is out that is killed and at once back, after its loss has
/// been agreed. @param jobs of the shoal; planned by `plan`
nanoseconds time_outside(pair_of_nodes& p, bool job,
                         std::vector<assignment> (*plan)(const view&)) {
  p.a.c.plan_jobs = p.b.c.plan_jobs = plan;
  p.begin(p.a);
  p.begin(p.b);
  p.link();
  p.run(300 * ms);
  if (job) {
    job_entry entry;
    entry.id = 1;
    p.give(p.a, submit_job{entry});
    p.run(300 * ms);
    BOOST_REQUIRE(find_job(p.a.core->current(), 1) != nullptr);
  }
  p.b.core.reset();
  p.linked = false;
  p.give(p.a, peer_down{p.b.c.self.id.peer});
  p.give(p.a, connect_failed{p.b.c.self.addresses[0]});
  while (p.a.core->current().members.size() > 1)
    p.run(ms);
  const nanoseconds lost = p.now;
  p.begin(p.b);
  p.link();
  while (!p.together() && p.now - lost < 20'000 * ms)
    p.run(ms);
  BOOST_TEST(p.together());
  return p.now - lost;
}

BOOST_AUTO_TEST_CASE(a_lost_peer_is_admitted_when_jobs_went_on_without_it) {
  const nanoseconds out = time_outside(*this, true, plan_all<true>);
  BOOST_TEST(out >= 2000 * ms);
  BOOST_TEST(out <= 2600 * ms);
}

BOOST_AUTO_TEST_CASE(a_peer_for_which_jobs_wait_is_admitted) {
  BOOST_TEST(time_outside(*this, true, plan_all<false>) <= 1000 * ms);
}

BOOST_AUTO_TEST_CASE(without_jobs_no_peer_is_kept_outside) {
  BOOST_TEST(time_outside(*this, false, plan_all<true>) <= 1000 * ms);
}

BOOST_AUTO_TEST_CASE(a_seed_is_tried_again_in_company_but_ever_less_often) {
  a.c.seeds = {"far:1"};
  begin(a);
  begin(b);
  link();
  run(1000 * ms);
  BOOST_TEST_REQUIRE(together());
  std::size_t first = a.said.size();
  const auto run_refused = [&](nanoseconds time) {
    const nanoseconds end = now + time;
    std::size_t told = a.said.size();
    while (now < end) {
      run(10 * ms);
      for (; told < a.said.size(); ++told)
        if (auto* c = std::get_if<connect>(&a.said[told]))
          give(a, connect_failed{c->address});
    }
  };
  run_refused(30'000 * ms);
  const std::size_t early = dials(a, "far:1", first);
  BOOST_TEST(early >= 2u); // 5 s, 10 s, 20 s
  BOOST_TEST(early <= 4u);
  run_refused(120'000 * ms);
  first = a.said.size();
  run_refused(150'000 * ms);
  BOOST_TEST(dials(a, "far:1", first) >= 2u); // every 60 to 75 s
  BOOST_TEST(dials(a, "far:1", first) <= 3u);
}

BOOST_AUTO_TEST_CASE(a_seed_whose_peer_is_connected_is_not_dialled) {
  a.c.seeds = {"name-of-b:1"}; // no address that b tells of itself
  begin(a);
  begin(b);
  link();
  give(a, reached{"name-of-b:1", b.c.self.id.peer});
  run(1000 * ms);
  BOOST_TEST_REQUIRE(together());
  const std::size_t first = a.said.size();
  run(100'000 * ms);
  BOOST_TEST(dials(a, "name-of-b:1", first) == 0u);
}

BOOST_AUTO_TEST_CASE(a_listed_address_is_a_seed_and_a_beacon_a_fresh_hint) {
  begin(a);
  begin(b);
  link();
  run(1000 * ms);
  const std::size_t first = a.said.size();
  for (int i = 0; i < 10; ++i) {
    give(a, discovered{"listed:1", true});
    give(a, discovered{"heard:1"});
    give(a, connect_failed{"listed:1"});
    give(a, connect_failed{"heard:1"});
    run(100 * ms);
  }
  BOOST_TEST(dials(a, "listed:1", first) == 1u);
  BOOST_TEST(dials(a, "heard:1", first) == 10u);
}

BOOST_AUTO_TEST_CASE(many_listed_addresses_are_bounded) {
  begin(a);
  begin(b);
  link();
  run(1000 * ms);
  for (int i = 0; i < 5000; ++i)
    give(a, discovered{"listed:" + std::to_string(i), true});
  BOOST_TEST(a.count<connect>() <= 1100u);
}

BOOST_AUTO_TEST_CASE(an_embedded_peer_stores_nothing_and_joins_only_if_told) {
  b.c.embedded = true;
  begin(a);
  begin(b);
  link();
  run(1000 * ms);
  BOOST_TEST(b.count<persist>() == 0u);
  BOOST_TEST(b.core->current().members.size() == 1u);
  pair_of_nodes told;
  told.b.c.embedded = true;
  told.b.c.seeds = {told.a.c.self.addresses[0]};
  told.begin(told.a);
  told.begin(told.b);
  told.link();
  told.run(500 * ms);
  BOOST_TEST(told.together());
  BOOST_TEST(told.b.count<persist>() == 0u);
  BOOST_TEST(
    !find_member(told.a.core->current(), told.b.c.self.id.peer)->voter);
  job_entry j;
  j.id = 4;
  told.give(told.b, submit_job{j}); // a voter proposes it
  told.run(500 * ms);
  BOOST_TEST(find_job(told.b.core->current(), 4) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_decided_view_counts_only_from_peers_that_may_know_it) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  view next = a.core->current();
  next.number += 1;
  next.members.pop_back();
  peer_id stranger = peer(9);
  give(a, peer_up{stranger, 1});
  give(a, received{stranger, decided{next}});
  BOOST_TEST(a.core->current().members.size() == 2u);
  view other = next;
  other.cluster = "another";
  view empty = next;
  empty.members.clear();
  for (const view& v : {other, empty}) {
    give(a, received{b.c.self.id.peer, decided{v}});
    BOOST_TEST(a.core->current().members.size() == 2u);
  }
  give(a, received{b.c.self.id.peer, decided{next}});
  BOOST_TEST(a.core->current().members.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_non_voting_peer_votes_only_while_it_is_alone) {
  a.c.self.voter = false;
  begin(a);
  job_entry j;
  j.id = 4;
  give(a, submit_job{j}); // so that b joins a, not a b
  BOOST_TEST(find_member(a.core->current(), a.c.self.id.peer)->voter);
  begin(b);
  link();
  run(1000 * ms);
  BOOST_TEST(together());
  BOOST_TEST(!find_member(b.core->current(), a.c.self.id.peer)->voter);
  BOOST_TEST(find_member(b.core->current(), b.c.self.id.peer)->voter);
}

BOOST_AUTO_TEST_CASE(arrival_is_reported_for_the_newest_assignment) {
  begin(a);
  job_entry j;
  j.id = 4;
  give(a, submit_job{j});
  auto arrived = [&] {
    return marked(*find_job(a.core->current(), 4), mark_kind::arrived, 0);
  };
  give(a, job_arrived{{4, 0}, 9});
  BOOST_TEST(arrived() == 9u);
  const epoch number = a.core->current().number;
  give(a, job_arrived{{4, 0}, 9}); // said again
  give(a, job_arrived{{4, 0}, 7}); // and of an older one
  BOOST_TEST(arrived() == 9u);
  BOOST_TEST(a.core->current().number == number);
  give(a, job_arrived{{4, 0}, 12});
  BOOST_TEST(arrived() == 12u);
}

/// As if every loss and every joiner had the job planned anew.
std::vector<assignment> plan_by_members(const view& v) {
  std::vector<assignment> out = plan_all<true>(v);
  for (assignment& a : out) {
    epoch& since = a.islands.at(0).since;
    since = v.members.size() == 1 ? v.number : 0;
    for (const member& m : v.members)
      since = std::max(since, m.id.incarnation);
  }
  return out;
}

BOOST_AUTO_TEST_CASE(the_end_of_a_job_is_proposed_for_one_assignment) {
  a.c.plan_jobs = b.c.plan_jobs = plan_by_members;
  begin(a);
  begin(b);
  job_entry j;
  j.id = 4;
  give(a, submit_job{j});
  link();
  run(1000 * ms);
  BOOST_REQUIRE(together());
  auto since = [](const node& n) {
    return plan_by_members(n.core->current())[0].islands[0].since;
  };
  auto state = [](const node& n) {
    return find_job(n.core->current(), 4)->state;
  };
  const epoch before = since(a);
  // b is cut off, and has done the job; the others go on from an earlier step.
  linked = false;
  wire.clear();
  give(a, peer_down{b.c.self.id.peer});
  give(b, peer_down{a.c.self.id.peer});
  run(3000 * ms);
  BOOST_REQUIRE(since(a) != before);
  give(b, set_job_state{4, job_state::done, 9, before});
  link();
  run(5000 * ms);
  BOOST_REQUIRE(together());
  BOOST_TEST((state(a) == job_state::running));
  // Nor does it lie in wait for good.
  for (node* n : {&a, &b}) {
    give(*n, set_job_state{4, job_state::done, 9, before});
    run(1000 * ms);
    BOOST_TEST((state(a) == job_state::running));
  }
  give(b, set_job_state{4, job_state::done, 12, since(b)});
  run(1000 * ms);
  BOOST_TEST((state(a) == job_state::done));
  BOOST_TEST(find_job(a.core->current(), 4)->done_step == 12u);
}

/// Two islands, each with a place of its own number.
std::vector<assignment> plan_two_islands(const view& v) {
  std::vector<assignment> out;
  for (const job_entry& j : v.jobs) {
    assignment& a = out.emplace_back(assignment{j.id, {2, island_place{}}});
    for (island_place& at : a.islands)
      at.replicas.emplace_back();
    a.islands[0].since = 7;
    a.islands[1].since = 8;
  }
  return out;
}

BOOST_AUTO_TEST_CASE(a_job_is_done_when_all_its_islands_are) {
  a.c.plan_jobs = plan_two_islands;
  begin(a);
  job_entry j;
  j.id = 4;
  j.want_islands = 2;
  give(a, submit_job{j});
  const auto job = [&] { return *find_job(a.core->current(), 4); };
  give(a, set_job_state{4, job_state::done, 30, 7, {}, 0});
  run(100 * ms);
  BOOST_TEST((job().state == job_state::running));
  BOOST_TEST(marked(job(), mark_kind::done, 0) == 7u);
  // Of a former place, and of an island that does not exist.
  give(a, set_job_state{4, job_state::done, 20, 6, {}, 1});
  give(a, set_job_state{4, job_state::done, 20, 8, {}, 2});
  run(100 * ms);
  BOOST_TEST((job().state == job_state::running));
  give(a, set_job_state{4, job_state::done, 20, 8, {}, 1});
  run(100 * ms);
  BOOST_TEST((job().state == job_state::done));
  BOOST_TEST(job().done_step == 30u);
}

BOOST_AUTO_TEST_CASE(an_island_that_fails_or_is_drained_decides_the_jobs_end) {
  a.c.plan_jobs = plan_two_islands;
  begin(a);
  for (job_id id : {4, 5}) {
    job_entry j;
    j.id = id;
    j.want_islands = 2;
    give(a, submit_job{j});
    run(100 * ms);
  }
  const auto job = [&](job_id id) { return *find_job(a.core->current(), id); };
  give(a, set_job_state{4, job_state::failed, 3, 8, "no text", 1});
  BOOST_TEST((job(4).state == job_state::failed));
  BOOST_TEST(job(4).cause == "no text");
  give(a, set_job_state{5, job_state::done, 9, 7, {}, 0});
  give(a, set_job_state{5, job_state::cancelled, 5, 8, {}, 1});
  run(100 * ms);
  BOOST_TEST((job(5).state == job_state::cancelled));
  BOOST_TEST(job(5).done_step == 9u);
}

BOOST_AUTO_TEST_CASE(
  a_request_that_cannot_be_granted_is_refused_with_a_reason) {
  begin(a);
  job_entry j;
  j.id = 1;
  j.run_json.assign(run_json_bytes_max + 1, ' ');
  give(a, submit_job{j});
  give(a, set_job_state{77, job_state::cancelled, 0});
  for (job_id id = 1; id <= jobs_running_max + 1; ++id) {
    job_entry k;
    k.id = id;
    give(a, submit_job{k});
  }
  BOOST_TEST(a.count<rejected>() == 3u);
}

BOOST_AUTO_TEST_CASE(a_view_stays_small_enough_to_travel) {
  begin(a);
  std::size_t granted = 0;
  for (job_id id = 1; id <= jobs_running_max; ++id) {
    job_entry j;
    j.id = id;
    j.run_json.assign(run_json_bytes_max, ' ');
    give(a, submit_job{j});
    granted = a.core->current().jobs.size();
  }
  BOOST_TEST(granted
             == (view_bytes_max - view_bytes_spare)
                  / (run_json_bytes_max + 1024));
  BOOST_TEST(a.count<rejected>() == jobs_running_max - granted);
  BOOST_TEST(bytes_bound(a.core->current()) <= view_bytes_max);
}

BOOST_AUTO_TEST_SUITE_END()
