// tests/runtime/core/planning/serving_plan_test.cpp -- served models in plans.
#include "runtime/core/planning/layout/pass_times.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"

namespace shoal::core {
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

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_SUITE(serving_plans)

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

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
