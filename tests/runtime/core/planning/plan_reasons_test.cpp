// tests/runtime/core/planning/plan_reasons_test.cpp -- unmet wishes of a plan,
// and idle members, are reported with their causes.
#include "runtime/core/planning/host_memory.hpp"
#include "runtime/core/planning/plan_reasons.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"

#include <algorithm>

namespace shoal::core {
BOOST_AUTO_TEST_SUITE(plan_reasons)

namespace {

/// All unheld wishes, one on a line.
std::string unheld(const view& v) {
  std::string out;
  for (const unheld_wish& w : unheld_wishes(v, only(v)))
    out += to_text(w) + "\n";
  return out;
}

std::string why_idle(const view& v, std::size_t member) {
  for (const idle_member& m : idle_members(v, only(v)))
    if (m.who == v.members[member].id)
      return m.why;
  return {};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_wish_that_is_met_is_not_mentioned) {
  view v = make_view(4);
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 2;
  v.jobs[0].want_copies = 1;
  BOOST_TEST(unheld(v).empty(), unheld(v));
  v.jobs[0].want_copies = 3; // memory for it there is
  BOOST_TEST(unheld(v).empty(), unheld(v));
}

BOOST_AUTO_TEST_CASE(more_replicas_than_peers) {
  view v = make_view(3, 8, 64);
  v.jobs[0].want_replicas = 50;
  BOOST_TEST(unheld(v)
             == "data_parallel_replicate_degree = 50: 3 replicas, as only 3 "
                "peers compute\n");
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 2;
  const std::string text = unheld(v);
  BOOST_TEST(text.find("as 2 replicas of 2 stages would need 4 peers, and only "
                       "3 peers compute")
               != std::string::npos,
             text);
}

BOOST_AUTO_TEST_CASE(more_replicas_than_microbatches) {
  view v = make_view(3, 8, 2);
  v.jobs[0].want_replicas = 3;
  BOOST_TEST(unheld(v)
             == "data_parallel_replicate_degree = 3: 2 replicas, as a step has "
                "2 microbatches\n");
}

BOOST_AUTO_TEST_CASE(more_stages_than_layers) {
  view v = make_view(3, 2);
  v.jobs[0].want_stages = 3;
  BOOST_TEST(unheld(v).starts_with("pipeline_parallel_degree = 3: 2 stages, as "
                                   "the model has 2 layers\n"),
             unheld(v));
}

BOOST_AUTO_TEST_CASE(stages_that_share_a_peer) {
  view v = make_view(1);
  v.jobs[0].want_stages = 3;
  BOOST_TEST(unheld(v)
             == "pipeline_parallel_degree = 3: all stages of a replica on 1 "
                "peer, as only 1 peer computes\n");
}

BOOST_AUTO_TEST_CASE(replicas_that_do_not_fit) {
  view v = make_view(2);
  v.jobs[0].want_replicas = 2;
  for (member& m : v.members)
    m.device.memory_bytes = 60'000'000; // 90 MB are needed
  const std::string text = unheld(v);
  BOOST_TEST(text.find("1 replica, as more do not fit") != std::string::npos,
             text);
}

BOOST_AUTO_TEST_CASE(a_network_that_steps_wait_for_is_named) {
  view v = make_view(3);
  v.jobs[0].want_replicas = 2;
  v.jobs[0].boundary_bytes = 1'000'000;
  const auto slow = [&] { return slow_network_of(v, 5, only(v)); };
  BOOST_TEST(!slow()); // nothing is measured
  for (member& m : v.members) {
    m.name = std::string(1, char('a' + m.id.peer[0] - 1));
    m.host = m.name;
    m.networks = {{"host", 30'000, 1'000'000}, {"tls", 100'000, 900'000'000}};
  }
  BOOST_TEST(!slow()); // all are fast; "host" leads nowhere
  v.members[1].networks[1].bytes_per_s = 1'000'000;
  v.members[0].networks[1].bytes_per_s = 2'000'000;
  v.members[2].networks[1].bytes_per_s = 2'000'000;
  v.jobs[0].want_stages = 1;
  v.jobs[0].want_replicas = 3;
  BOOST_TEST_REQUIRE(slow().has_value());
  BOOST_TEST(to_text(v, *slow())
             == "steps mostly wait for the network of b, which carries 1 MB/s "
                "(tls, as measured there; see `shoal status --links`)");
  // Within a machine it has no name that a user knows.
  BOOST_TEST(
    to_text(v, {v.members[0].id, {"host", 30'000, 1'000'000}})
    == "steps mostly wait for data between processes on the machine of a, "
       "which carries 1 MB/s (as measured there; see `shoal status --links`)");
}

BOOST_AUTO_TEST_CASE(copies_that_cannot_be) {
  view v = make_view(1);
  v.jobs[0].want_copies = 1;
  BOOST_TEST(unheld(v)
             == "copies = 1: no copy in memory, as there is no other peer\n");
  v = make_view(3);
  v.jobs[0].want_copies = 3;
  BOOST_TEST(unheld(v).find("copies = 3: 2 copies in memory, as only 3 peers "
                            "compute\n")
               != std::string::npos,
             unheld(v));
  v = make_view(2);
  v.jobs[0].want_copies = 1;
  v.jobs[0].want_replicas = 1;
  v.members[1].device.memory_bytes = 1'000'000;
  BOOST_TEST(unheld(v)
             == "copies = 1: no copy in memory, as no other peer has the "
                "memory for it\n");
}

BOOST_AUTO_TEST_CASE(copies_that_are_rare_cost_steps) {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  view v = make_view(2);
  island_place a = only(v);
  a.followers = {{v.members[1].id, 0, 1}};
  a.copy_every = 1;
  BOOST_TEST(rare_copies_text(v.jobs[0], a, 50).empty());
  a.copy_every = 1000;
  const std::string text = rare_copies_text(v.jobs[0], a, 50);
  BOOST_TEST(has(text, "every 1000 steps"), text);
  BOOST_TEST(has(text, "up to 50 steps (checkpoint.interval)"), text);
  for (const std::uint64_t interval : {0, 5000})
    BOOST_TEST(
      has(rare_copies_text(v.jobs[0], a, interval), "up to 1000 steps"));
  v.jobs[0].want_copy_every = 1000; // as asked
  BOOST_TEST(rare_copies_text(v.jobs[0], a, 50).empty());
  v.jobs[0].want_copy_every = 0;
  a.followers.clear();
  BOOST_TEST(rare_copies_text(v.jobs[0], a, 50).empty());
}

BOOST_AUTO_TEST_CASE(a_schedule_without_stages) {
  view v = make_view(1);
  v.jobs[0].want_schedule = schedule_kind::zero_bubble;
  BOOST_TEST(unheld(v)
             == "pipeline_parallel_schedule = zero_bubble: no pipeline, as a "
                "replica has all layers on one peer\n");
}

BOOST_AUTO_TEST_CASE(idle_peers_have_a_reason) {
  view v = make_view(4);
  v.jobs[0].want_replicas = 1;
  v.jobs[0].want_stages = 1;
  v.members[1].witness = true;
  v.members[2].state = member_state::leaving;
  v.members[3].device.mflops = 0;
  BOOST_TEST(idle_members(v, only(v)).size() == 3u);
  BOOST_TEST(why_idle(v, 1) == "only votes (--witness)");
  BOOST_TEST(why_idle(v, 2) == "is leaving");
  BOOST_TEST(why_idle(v, 3) == "has no measured speed");
  v = make_view(2);
  v.jobs[0].want_replicas = 1;
  v.jobs[0].want_stages = 1;
  const std::size_t idle =
    only(v).replicas[0].stages[0].lead() == v.members[0].id;
  BOOST_TEST(why_idle(v, idle) == "the run asks for 1 replica of 1 stage");
  BOOST_TEST(why_idle(v, 1 - idle).empty());
}

BOOST_AUTO_TEST_CASE(peers_that_share_cores_idle_for_that) {
  view v = make_view(3, 8, 64);
  for (member& m : v.members) {
    m.name = std::string(1, char('a' + m.id.peer[0] - 1));
    m.host = "h";
    m.device.threads = 2;
    m.device.host_threads = 2;
  }
  const island_place a = only(v);
  const auto idle = idle_members(v, a);
  BOOST_REQUIRE(!idle.empty());
  for (const idle_member& m : idle)
    BOOST_TEST(m.why.starts_with("shares its host's cores with "), m.why);
  const std::string text = to_text(v, a);
  BOOST_TEST(text.find("idle: ") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(layers_are_shown_with_both_ends) {
  view v = make_view(1);
  v.members[0].name = "a";
  BOOST_TEST(to_text(v, only(v)) == "replica 0: a layers 0-7");
  v = make_view(1, 1);
  v.members[0].name = "a";
  BOOST_TEST(to_text(v, only(v)) == "replica 0: a layer 0");
}

BOOST_AUTO_TEST_CASE(a_line_for_many_peers_is_short) {
  view v = make_view(40, 40, 64);
  v.jobs[0].want_replicas = 10;
  v.jobs[0].want_stages = 4;
  const std::string text = to_text(v, only(v));
  BOOST_TEST(text.find("10 replicas of 4 stages on 40 peers")
               != std::string::npos,
             text);
  BOOST_TEST(text.size() < 200u, text);
}

// The kinds add up to what the planner counts against memory.
BOOST_AUTO_TEST_CASE(memory_by_kind_is_all_memory) {
  for (std::size_t members : {1, 2, 5}) {
    view v = make_view(members);
    v.jobs[0].want_copies = 1;
    const island_place a = only(v);
    const auto kinds = memory_of(v.jobs[0], a);
    for (const auto& need : predict(v, a).members) {
      BOOST_REQUIRE(kinds.contains(need.where));
      BOOST_TEST(kinds.at(need.where).sum() == need.bytes);
    }
  }
}

BOOST_AUTO_TEST_CASE(peers_of_one_host_have_its_cores_once) {
  view v = make_view(2, 8, 64);
  v.jobs[0].want_replicas = 2;
  const island_place a = only(v);
  BOOST_TEST(mflops_of(v, a) == 200'000u);
  for (member& m : v.members) {
    m.host = "h";
    m.device.threads = 2;
    m.device.host_threads = 2;
  }
  BOOST_TEST(mflops_of(v, a) == 100'000u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
