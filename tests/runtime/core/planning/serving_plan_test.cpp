// tests/runtime/core/planning/serving_plan_test.cpp -- served models in plans.
#include "runtime/core/planning/layout/pass_times.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"

namespace shoal::core {
BOOST_AUTO_TEST_SUITE(serving_plans)

namespace {

/// The job of the fixture as a served model: passes without state.
view served(std::size_t members, std::uint32_t pipelines = 1) {
  view v = make_view(members, 8, 4);
  job_entry& j = v.jobs[0];
  j.kind = job_kind::serve;
  j.want_replicas = 1;
  j.want_islands = pipelines;
  return v;
}

assignment pipelines_of(const view& v) {
  return make_plan(v).jobs.at(0);
}

view wanting_stages(std::int32_t stages, std::size_t members) {
  view v = served(members);
  v.jobs[0].want_stages = stages;
  return v;
}

/// Why the wishes of its job are not held.
std::string unheld_text(const view& v) {
  std::string out;
  for (const unheld_wish& w : unheld_wishes(v, only(v)))
    out += (out.empty() ? "" : "; ") + to_text(w);
  return out;
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_pass_takes_what_it_costs) {
  view v = served(1);
  v.members[0].device.stream_mbps = 1000; // a byte each nanosecond
  const island_place at = only(v);
  pass_costs arithmetic;
  arithmetic.block_flops = 100'000'000; // 1 ms at 100 GFLOP/s
  arithmetic.head_flops = 200'000'000;
  pass_times t = times_of_pass(v, v.jobs[0], at, arithmetic);
  BOOST_TEST(t.through == 10'000'000);
  BOOST_TEST(t.apart == 10'000'000);
  pass_costs memory;
  memory.block_traffic_bytes = 1'000'000;
  memory.head_traffic_bytes = 500'000;
  t = times_of_pass(v, v.jobs[0], at, memory);
  BOOST_TEST(t.through == 8'500'000);
}

BOOST_AUTO_TEST_CASE(passes_follow_each_other_on_stages) {
  view v = served(2);
  v.jobs[0].want_stages = 2;
  const island_place at = only(v);
  BOOST_TEST_REQUIRE(at.replicas.at(0).stages.size() == 2u);
  pass_costs costs;
  costs.block_flops = 100'000'000;
  const pass_times t = times_of_pass(v, v.jobs[0], at, costs);
  BOOST_TEST(t.through >= 8'000'000);
  BOOST_TEST(t.apart < t.through);
  BOOST_TEST(t.apart >= 4'000'000);
  BOOST_TEST(times_of_pass(v, v.jobs[0], {}, costs).through == 0);
}

BOOST_AUTO_TEST_CASE(a_pipeline_without_room_says_what_each_member_has) {
  view v = served(5);
  for (std::size_t i = 0; i < 5; ++i) {
    v.members[i].name = std::string("n") + char('0' + i);
    v.members[i].device.memory_bytes = (i < 2 ? 4u : 3u) << 20;
  }
  const std::string why = only(v).why_waiting;
  BOOST_TEST(has(why, "has 17.0 MiB on 5 members (4.0 MiB: n0, n1; 3.0 MiB: "
                      "n2, n3, n4)"),
             why);
  for (std::size_t i = 0; i < 5; ++i)
    v.members[i].device.memory_bytes = (i + 1) << 20;
  BOOST_TEST(has(only(v).why_waiting, "2.0 MiB: n1; less: 1 more"),
             only(v).why_waiting);
}

BOOST_AUTO_TEST_CASE(the_text_of_long_names_stays_within_its_limit) {
  view v = served(40);
  for (std::size_t i = 0; i < v.members.size(); ++i) {
    v.members[i].name = std::string(limits::name_bytes_max, 'x');
    v.members[i].device.memory_bytes = (1 + i % 8) * 1000;
  }
  const std::string why = only(v).why_waiting;
  BOOST_TEST(has(why, "and 1 more"), why);
  BOOST_TEST(why.size() < limits::text_bytes_max, why);
}

BOOST_AUTO_TEST_CASE(wishes_of_a_served_model_have_their_own_names) {
  view v = served(3, 2); // the second pipeline has only one member
  v.jobs[0].want_stages = 2;
  for (std::size_t i = 0; i < 3; ++i)
    v.members[i].device.memory_bytes = 60'000'000;
  const assignment a = pipelines_of(v);
  BOOST_TEST_REQUIRE(!waits(a));
  const auto unheld = unheld_wishes(v, a);
  BOOST_TEST_REQUIRE(unheld.size() == 1u);
  BOOST_TEST(unheld[0].key == "serve.replicas");
  BOOST_TEST(unheld[0].wanted == "2");
  BOOST_TEST(unheld[0].got == "1 pipeline");
  BOOST_TEST(has(unheld[0].why, "pipeline 2 of 2: not enough memory"),
             unheld[0].why);
}

BOOST_AUTO_TEST_CASE(a_served_model_reserves_a_share_and_is_no_whole_job) {
  using enum job_kind;
  const auto part = [](job_kind kind, other_work others) {
    const speed_share s = share_of(kind, others);
    return double(s.percent) / double(s.among);
  };
  BOOST_TEST(part(train, {}) == 100);
  BOOST_TEST(part(train, {2, 0}) * 3 == 100);
  BOOST_TEST(part(train, {0, 1}) == 75);
  BOOST_TEST(part(train, {1, 1}) == 37.5);
  BOOST_TEST(part(train, {0, 9}) == 25); // always some is left
  BOOST_TEST(part(serve, {}) == 100);
  BOOST_TEST(part(serve, {0, 3}) == 25);
  BOOST_TEST(part(serve, {1, 0}) == 25); // what it has reserved
  BOOST_TEST(part(serve, {5, 0}) == 25);
  BOOST_TEST(part(serve, {1, 4}) == 15);
}

// All members were called witnesses, or without a measured speed.
BOOST_AUTO_TEST_CASE(the_first_pipeline_may_have_no_peer_left) {
  view v = served(2, 2);
  const assignment both = pipelines_of(v);
  v.previous = {both};
  const peer_id lost = both.islands[0].replicas.at(0).stages.at(0).lead().peer;
  std::erase_if(v.members, [&](const member& m) { return m.id.peer == lost; });
  ++v.number;
  const assignment one = pipelines_of(v);
  BOOST_TEST(has(one.islands[0].why_waiting, "no peer is left"),
             one.islands[0].why_waiting);
  v.members[0].witness = true;
  BOOST_TEST(has(pipelines_of(v).islands[0].why_waiting, "no member can work"));
}

BOOST_AUTO_TEST_CASE(a_pipeline_has_as_few_stages_as_fit) {
  view v = served(4);
  BOOST_TEST(only(v).replicas.at(0).stages.size() == 1u);
  for (member& m : v.members)
    m.device.memory_bytes = 60'000'000; // of 90 and passes
  BOOST_TEST(only(v).replicas.at(0).stages.size() == 2u);
  v.jobs[0].want_stages = 3;
  BOOST_TEST(only(v).replicas.at(0).stages.size() == 3u);
}

/// A pipeline of 3 stages on 3 members, one of which dies and comes back.
BOOST_AUTO_TEST_CASE(stages_are_spread_again_when_a_peer_is_back) {
  const view v = wanting_stages(3, 3);
  BOOST_TEST(workers(only(v)).size() == 3u);
  view without = next_view(v);
  without.members.erase(without.members.begin() + 1);
  const island_place two = only(without);
  BOOST_TEST(two.replicas.at(0).stages.size() == 3u);
  BOOST_TEST(workers(two).size() == 2u);
  BOOST_TEST(unheld_text(without)
             == "stages = 3: all stages of a pipeline on 2 peers, as only 2 "
                "peers compute");
  view back = next_view(without);
  back.members.insert(back.members.begin() + 1, make_member(2));
  back.members[1].id.incarnation = back.number;
  BOOST_TEST(workers(only(back)).size() == 3u);
  BOOST_TEST(unheld_text(back) == "");
  view later = next_view(back); // and there they stay
  later.members.push_back(make_member(9));
  BOOST_TEST((only(later).replicas == only(back).replicas));
  BOOST_TEST(only(later).since == back.number);
  BOOST_TEST(idle_members(later, only(later)).at(0).why
             == "the model is to have 3 stages");
}

BOOST_AUTO_TEST_CASE(stages_are_spread_from_one_peer_to_all_that_come) {
  view v = wanting_stages(3, 1);
  BOOST_TEST(
    unheld_text(v)
    == "stages = 3: all stages of a pipeline on 1 peer, as only 1 peer "
       "computes");
  for (std::uint8_t n = 2; n <= 6; ++n) {
    v = next_view(v);
    v.members.push_back(make_member(n, 10'000)); // no gain in time
    BOOST_TEST(workers(only(v)).size() == std::min<std::size_t>(n, 3));
  }
}

/// Two pipelines of 3 stages; the one that loses a peer has the fastest.
BOOST_AUTO_TEST_CASE(a_peer_goes_where_stages_lack_one) {
  view v = served(6, 2);
  v.jobs[0].want_stages = 3;
  v.members[0].device.mflops = 1'000'000;
  const auto widths = [](const view& of) {
    std::vector<std::size_t> out;
    for (const island_place& at : pipelines_of(of).islands)
      out.push_back(workers(at).size());
    return out;
  };
  BOOST_TEST(widths(v) == (std::vector<std::size_t>{3, 3}));
  std::set<member_id> fast = workers(pipelines_of(v).islands.at(0));
  BOOST_TEST_REQUIRE(fast.erase(v.members[0].id) == 1u);
  view without = next_view(v);
  std::erase_if(without.members,
                [&](const member& m) { return m.id == *fast.begin(); });
  BOOST_TEST(widths(without) == (std::vector<std::size_t>{2, 3}));
  view back = next_view(without);
  back.members.push_back(make_member(9));
  BOOST_TEST(widths(back) == (std::vector<std::size_t>{3, 3}));
}

BOOST_AUTO_TEST_CASE(a_peer_without_room_for_a_stage_is_told_so) {
  for (const std::size_t members : {2u, 3u, 7u}) {
    view v = wanting_stages(3, members);
    for (std::size_t i = 1; i < members; ++i)
      v.members[i].device.memory_bytes = 1'000'000;
    BOOST_TEST(unheld_text(v)
               == "stages = 3: all stages of a pipeline on 1 peer, as no other "
                  "peers have the memory for a stage");
    for (const idle_member& m : idle_members(v, only(v)))
      BOOST_TEST(m.why == "has too little memory left for a stage");
    v = next_view(v);
    BOOST_TEST(only(v).since == v.number - 1); // nothing better is to be had
    v.members[1].device.memory_bytes = 1'000'000'000;
    BOOST_TEST(workers(only(v)).size() == 2u);
  }
}

BOOST_AUTO_TEST_CASE(no_stages_are_spread_over_peers_that_leave) {
  view v = next_view(wanting_stages(3, 1));
  v.members.push_back(make_member(2));
  for (member& m : v.members)
    m.state = member_state::leaving;
  BOOST_TEST(workers(only(v)).size() == 1u);
}

BOOST_AUTO_TEST_CASE(pipelines_come_and_go_and_the_others_stay) {
  view v = served(3);
  std::vector<island_place> before = pipelines_of(v).islands;
  for (const std::uint32_t pipelines : {2u, 3u, 2u, 1u}) {
    BOOST_TEST(has_room_for_more(v, make_plan(v), v.jobs[0])
               == (islands_of(v.jobs[0]) < 3));
    v = next_view(v);
    set_mark(v.jobs[0], {mark_kind::scaled, 0, v.number, pipelines});
    const std::vector<island_place> after = pipelines_of(v).islands;
    BOOST_TEST_REQUIRE(after.size() == pipelines);
    std::set<member_id> used;
    for (const island_place& at : after) {
      BOOST_TEST_REQUIRE(!at.replicas.empty(), at.why_waiting);
      for (const member_id& id : workers(at))
        BOOST_TEST(used.insert(id).second);
    }
    for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      BOOST_TEST((after[i].replicas == before[i].replicas));
      BOOST_TEST(after[i].since == before[i].since);
    }
    before = after;
  }
}

BOOST_AUTO_TEST_CASE(no_pipeline_is_added_at_the_cost_of_another_job) {
  view v = served(2);
  job_entry training = make_view(2).jobs[0];
  training.id = 6;
  training.changed = 7; // the younger one: it would give way
  training.block_state_bytes = 110'000'000; // most of both members
  v.jobs.push_back(training);
  const plan p = make_plan(v);
  BOOST_TEST_REQUIRE(!p.jobs.at(1).islands.at(0).replicas.empty());
  BOOST_TEST(!has_room_for_more(v, p, v.jobs[0]));
  v.jobs.pop_back();
  BOOST_TEST(has_room_for_more(v, make_plan(v), v.jobs[0]));
}

/// A training job on four members, and a model that is served on one of them.
BOOST_AUTO_TEST_CASE(an_idle_served_model_does_not_halve_a_training_job) {
  view v = served(4);
  v.jobs[0].want_stages = 1;
  job_entry training = make_view(4, 40).jobs[0];
  training.id = 6;
  training.changed = 7; // the younger one: it is planned beside the model
  training.want_replicas = 1;
  training.want_stages = 4;
  v.jobs.push_back(training);
  const plan p = make_plan(v);
  const member_id where =
    p.jobs.at(0).islands.at(0).replicas.at(0).stages.at(0).lead();
  BOOST_TEST_REQUIRE(p.jobs[0].islands[0].replicas[0].stages.size() == 1u);
  std::uint32_t beside = 0, alone = 0;
  for (const stage_place& s : p.jobs.at(1).islands.at(0).replicas.at(0).stages)
    (s.lead() == where ? beside : alone) += s.last_block - s.first_block;
  // 40 blocks over speeds of 3/4 and 1, 1, 1: 7 or 8; halved, it were 6 at most.
  BOOST_TEST(beside >= 7u);
  BOOST_TEST(alone == 40 - beside);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
