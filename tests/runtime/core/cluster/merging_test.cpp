// tests/runtime/core/cluster/merging_test.cpp -- two shoals that meet: which goes on,
// and what becomes of their jobs.
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_merging {

using namespace shoal::tests;

} // namespace cluster_merging

BOOST_FIXTURE_TEST_SUITE(cluster_merging, cluster_merging::pair_of_nodes)

BOOST_AUTO_TEST_CASE(the_shoal_with_a_running_job_goes_on) {
  for (node* busy : {&a, &b}) {
    pair_of_nodes w;
    node& n = busy == &a ? w.a : w.b;
    w.begin(w.a);
    w.begin(w.b);
    job_entry j;
    j.id = 9;
    w.give(n, submit_job{j});
    shoal_id kept = n.core->current().shoal;
    w.link();
    w.run(300 * ms);
    BOOST_TEST(w.together());
    BOOST_TEST((w.a.core->current().shoal == kept));
    BOOST_TEST(find_job(w.b.core->current(), 9) != nullptr);
  }
}

BOOST_AUTO_TEST_CASE(two_shoals_with_jobs_stay_apart_and_say_so_once) {
  begin(a);
  begin(b);
  for (node* n : {&a, &b}) {
    job_entry j;
    j.id = n->c.seed;
    give(*n, submit_job{j});
  }
  link();
  run(5000 * ms);
  BOOST_TEST(a.core->current().members.size() == 1u);
  BOOST_TEST(b.core->current().members.size() == 1u);
  BOOST_TEST(a.count<cluster::log>() == 1u);
}

// Their models can still be fetched; but not of one that was taken off a list.
BOOST_AUTO_TEST_CASE(jobs_that_have_ended_are_listed_after_two_shoals_join) {
  begin(a);
  begin(b);
  for (node* n : {&a, &b})
    for (const job_id id : {n->c.seed, n->c.seed + 10}) {
      job_entry j;
      j.id = id;
      give(*n, submit_job{j});
      give(*n, set_job_state{id, job_state::done, 30 + id});
      if (id >= 10)
        give(*n, remove_job{id});
      run(10 * ms);
    }
  link();
  run(3000 * ms);
  BOOST_TEST(together());
  for (const node* n : {&a, &b})
    for (const job_id id : {a.c.seed, b.c.seed}) {
      const job_entry* j = find_job(n->core->current(), id);
      BOOST_REQUIRE(j != nullptr);
      BOOST_TEST((j->state == job_state::done));
      BOOST_TEST(j->done_step == 30 + id);
      BOOST_TEST(find_job(n->core->current(), id + 10) == nullptr);
    }
}

// The shoal that has taken it off the list may be the one that dissolves.
BOOST_AUTO_TEST_CASE(a_job_taken_off_a_list_is_off_it_after_two_shoals_join) {
  for (const bool first : {true, false}) {
    pair_of_nodes w;
    w.begin(w.a);
    w.begin(w.b);
    for (node* n : {&w.a, &w.b}) {
      job_entry j;
      j.id = 5;
      w.give(*n, submit_job{j});
      w.give(*n, set_job_state{5, job_state::done, 30});
      w.run(10 * ms);
    }
    w.give(first ? w.a : w.b, remove_job{5});
    w.link();
    w.run(3000 * ms);
    BOOST_TEST(w.together());
    for (const node* n : {&w.a, &w.b})
      BOOST_TEST(find_job(n->core->current(), 5) == nullptr);
  }
}

// A peer is not admitted, and founds a shoal between the two. What its shoal has
// given up is not taken off a list thereby.
BOOST_AUTO_TEST_CASE(ended_jobs_outlast_a_shoal_that_is_founded_on_the_way) {
  begin(a);
  begin(b);
  for (node* n : {&a, &b})
    for (const job_id id : {job_id{5}, job_id{6}, 10 + n->c.seed}) {
      job_entry j;
      j.id = id;
      give(*n, submit_job{j});
      give(*n, set_job_state{id, job_state::done, 30});
      run(10 * ms);
    }
  link();
  while (a.count<dissolved>() + b.count<dissolved>() == 0)
    run(ms);
  node& guest = a.count<dissolved>() > 0 ? a : b;
  node& host = &guest == &a ? b : a;
  BOOST_TEST_REQUIRE(guest.core->current().jobs.empty());
  linked = false;
  wire.clear();
  give(a, peer_down{b.c.self.id.peer});
  give(b, peer_down{a.c.self.id.peer});
  run(5000 * ms);
  BOOST_TEST((guest.core->phase() == phase::member));
  BOOST_TEST((guest.core->current().shoal != host.core->current().shoal));
  BOOST_TEST(guest.core->current().jobs.size() == 3u);
  give(host, remove_job{6});
  link();
  run(5000 * ms);
  BOOST_TEST(together());
  for (const job_id id : {job_id{5}, 10 + a.c.seed, 10 + b.c.seed})
    BOOST_TEST(find_job(a.core->current(), id) != nullptr, "job " << id);
  BOOST_TEST(find_job(a.core->current(), 6) == nullptr);
}

// The peer of a shoal that has dissolved starts again before it is admitted; it
// may have to found another one first.
BOOST_AUTO_TEST_CASE(lists_of_jobs_outlast_a_restart_between_two_shoals) {
  for (const bool first : {true, false})
    for (const bool founds : {true, false}) {
      pair_of_nodes w;
      w.begin(w.a);
      w.begin(w.b);
      for (node* n : {&w.a, &w.b})
        for (const job_id id : {job_id{5}, job_id{6}, 10 + n->c.seed}) {
          job_entry j;
          j.id = id;
          w.give(*n, submit_job{j});
          w.give(*n, set_job_state{id, job_state::done, 30});
          w.run(10 * ms);
        }
      w.give(first ? w.a : w.b, remove_job{6});
      w.link();
      while (w.a.count<dissolved>() + w.b.count<dissolved>() == 0)
        w.run(ms);
      node& guest = w.a.count<dissolved>() > 0 ? w.a : w.b;
      node& host = &guest == &w.a ? w.b : w.a;
      w.linked = false;
      w.wire.clear();
      w.give(host, peer_down{guest.c.self.id.peer});
      guest.c.seed += 10; // another name, if it founds a shoal
      w.begin(guest);
      w.run(founds ? 5000 * ms : ms);
      BOOST_TEST((guest.core->phase() == phase::member) == founds);
      w.link();
      w.run(5000 * ms);
      BOOST_TEST(w.together());
      for (const job_id id : {5, 11, 12})
        BOOST_TEST(find_job(host.core->current(), id) != nullptr, "job " << id);
      BOOST_TEST(find_job(host.core->current(), 6) == nullptr);
      // What it has brought is not brought again.
      w.give(host, remove_job{5});
      w.run(100 * ms);
      w.begin(guest);
      w.give(host, peer_down{guest.c.self.id.peer});
      w.link();
      w.run(5000 * ms);
      BOOST_TEST(w.together());
      BOOST_TEST(find_job(host.core->current(), 5) == nullptr);
    }
}

// Whichever of them is the first to start again.
BOOST_AUTO_TEST_CASE(ended_jobs_are_known_after_all_have_left) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  for (const job_id id : {5, 6}) {
    job_entry j;
    j.id = id;
    give(a, submit_job{j});
    run(300 * ms);
  }
  give(a, set_job_state{5, job_state::done, 30});
  run(300 * ms);
  for (node* n : {&b, &a}) {
    give(*n, leave{});
    give(*n, leave_now{});
    run(1000 * ms);
    BOOST_TEST_REQUIRE(n->count<left>() == 1u);
    n->core.reset();
  }
  linked = false;
  wire.clear();
  begin(b);
  run(300 * ms);
  BOOST_TEST((b.core->phase() == phase::member));
  BOOST_REQUIRE(find_job(b.core->current(), 5) != nullptr);
  BOOST_TEST(find_job(b.core->current(), 5)->done_step == 30u);
  BOOST_TEST(find_job(b.core->current(), 6) == nullptr); // the other runs it
  begin(a);
  link();
  run(3000 * ms);
  BOOST_TEST(together());
  BOOST_TEST(find_job(b.core->current(), 5) != nullptr);
  BOOST_TEST(find_job(b.core->current(), 6) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_shoal_does_not_dissolve_into_one_without_room_for_it) {
  begin(a);
  hello full;
  full.cluster = a.c.cluster;
  full.shoal[0] = 0; // the lower id, and more members
  full.number = 9;
  full.joinable = true;
  full.key = digest(a.c.key);
  give(a, peer_up{peer(9), 1});
  for (std::uint32_t members : {std::uint32_t(members_max), 5u}) {
    full.members = members;
    for (int i = 0; i < 20; ++i) {
      give(a, received{peer(9), full});
      run(100 * ms);
    }
    BOOST_TEST((a.core->phase() == phase::member) == (members == members_max));
  }
}

BOOST_AUTO_TEST_SUITE_END()
