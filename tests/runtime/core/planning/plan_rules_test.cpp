// tests/runtime/core/planning/plan_rules_test.cpp -- unlike members and links, several
// jobs, cut pairs, and jobs that do not fit.
#include "tests/runtime/core/planning/plan_fixture.hpp"

#include <algorithm>
#include <functional>
#include <random>

BOOST_AUTO_TEST_SUITE(plan_rules)

using namespace shoal::core;

namespace {

job_entry second_job(const view& v, job_id id, epoch submitted) {
  job_entry j = v.jobs.front();
  j.id = id;
  j.changed = submitted;
  return j;
}

const island_place& of_job(const plan& p, job_id id) {
  return std::ranges::find(p.jobs, id, &assignment::job)->islands.at(0);
}

std::uint32_t blocks_on(const island_place& a, const member_id& id) {
  std::uint32_t n = 0;
  for (auto& r : a.replicas)
    for (auto& s : r.stages)
      n += s.lead() == id ? s.last_block - s.first_block : 0;
  return n;
}

void cut(view& v, std::size_t a, std::size_t b) {
  v.cuts.push_back({v.members[a].id, v.members[b].id});
  std::ranges::sort(v.cuts);
}

} // namespace

BOOST_AUTO_TEST_CASE(replicas_may_have_unlike_numbers_of_members) {
  view v = make_view(3);
  for (member& m : v.members)
    m.device.memory_bytes = 60'000'000;
  v.members[1].device.memory_bytes = 1'000'000'000; // holds all
  v.members[1].device.mflops = 200'000;
  island_place a = only(v);
  BOOST_REQUIRE(a.replicas.size() == 2u);
  BOOST_TEST(workers(a).size() == 3u);
  for (auto& r : a.replicas)
    BOOST_TEST(r.stages.size()
               == (r.stages[0].lead() == v.members[1].id ? 1u : 2u));
}

BOOST_AUTO_TEST_CASE(peers_of_one_host_share_its_cores) {
  view v = make_view(2);
  v.jobs[0].want_replicas = 2;
  const nanoseconds apart = predict(v, only(v)).step;
  for (member& m : v.members) {
    m.host = "h";
    m.device.threads = 2;
  }
  // Not known how many cores there are: each was measured with all of them.
  const nanoseconds shared = predict(v, only(v)).step;
  BOOST_TEST(shared > apart * 18 / 10);
  for (member& m : v.members)
    m.device.host_threads = 4; // enough for both
  BOOST_TEST(predict(v, only(v)).step < apart * 11 / 10);
  for (member& m : v.members)
    m.device.host_threads = 3; // 4 threads on 3 cores
  const nanoseconds crowded = predict(v, only(v)).step;
  BOOST_TEST(crowded > apart * 12 / 10);
  BOOST_TEST(crowded < apart * 14 / 10);
  for (member& m : v.members)
    m.device.kind = "cuda"; // a device each
  BOOST_TEST(predict(v, only(v)).step < apart * 11 / 10);
}

BOOST_AUTO_TEST_CASE(half_the_speed_gets_half_the_layers_on_one_host_too) {
  view v = make_view(3, 30, 16);
  v.jobs[0].head_flops = 0;
  v.jobs[0].want_replicas = 1;
  v.jobs[0].want_stages = 3;
  for (member& m : v.members) {
    m.host = "h";
    m.device.threads = 2;
    m.device.host_threads = 2;
  }
  v.members[1].device.mflops /= 2;
  island_place a = only(v);
  BOOST_TEST(blocks_on(a, v.members[0].id) == 12u);
  BOOST_TEST(blocks_on(a, v.members[1].id) == 6u);
  BOOST_TEST(blocks_on(a, v.members[2].id) == 12u);
}

BOOST_AUTO_TEST_CASE(a_fast_link_carries_what_is_sent_most) {
  // Two hosts of two: by far more to reduce than to pass on, so replicas are
  // across hosts where a stage's holders share one, and the other way round.
  view v = make_view(4);
  for (std::size_t i = 0; i < 4; ++i) {
    member& m = v.members[i];
    m.host = i % 2 ? "x" : "y"; // not in the order of ids
    m.device.kind = "cuda";
    m.networks = {{"host", 5'000, 20'000'000'000},
                  {"lan", 50'000, 200'000'000}};
  }
  v.jobs[0].want_replicas = v.jobs[0].want_stages = 2;
  v.jobs[0].block_state_bytes = 100'000'000;
  v.jobs[0].boundary_bytes = 1'000;
  auto host = [&](const member_id& id) {
    return find_member(v, id.peer)->host;
  };
  island_place a = only(v);
  BOOST_REQUIRE(a.replicas.size() == 2u);
  for (std::size_t s = 0; s < 2; ++s)
    BOOST_TEST(host(a.replicas[0].stages[s].lead())
               == host(a.replicas[1].stages[s].lead()));
  v.jobs[0].block_state_bytes = 1'000'000;
  v.jobs[0].boundary_bytes = 50'000'000;
  a = only(v);
  BOOST_REQUIRE(a.replicas.size() == 2u);
  for (auto& r : a.replicas)
    BOOST_TEST(host(r.stages[0].lead()) == host(r.stages[1].lead()));
}

BOOST_AUTO_TEST_CASE(a_slow_link_is_worse_than_an_idle_member) {
  view v = make_view(2);
  v.jobs[0].want_replicas = -1;
  v.jobs[0].boundary_bytes = 1'000'000;
  for (member& m : v.members)
    m.networks = {{"lan", 50'000, 1'000'000'000}};
  BOOST_TEST(workers(only(v)).size() == 2u);
  for (member& m : v.members)
    m.networks = {{"modem", 300'000'000, 7'000}};
  BOOST_TEST(workers(only(v)).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_join_that_gains_little_moves_nothing) {
  std::mt19937_64 rng(4);
  for (int round = 0; round < 20; ++round) {
    view v = make_view(6 + rng() % 6, 12, 24);
    for (member& m : v.members)
      m.device.mflops = 50'000 + rng() % 10 * 10'000;
    island_place before = only(v);
    view w = next_view(v);
    w.members.push_back(make_member(99, 5'000)); // a slow one
    BOOST_TEST((only(w) == before));
  }
}

BOOST_AUTO_TEST_CASE(older_jobs_come_first_and_newer_take_the_rest) {
  view v = make_view(4);
  v.jobs[0].changed = 3;
  for (member& m : v.members)
    m.device.memory_bytes = 110'000'000; // of one replica and a little more
  const island_place alone = only(v);
  view w = next_view(v);
  w.jobs.insert(w.jobs.begin(), second_job(w, 1, 11)); // lower id, but newer
  plan p = make_plan(w);
  BOOST_TEST(digest(of_job(p, 5)) == digest(alone)); // not affected
  const island_place& b = of_job(p, 1);
  if (b.replicas.empty())
    BOOST_TEST(b.why_waiting.find("taken by other jobs") != std::string::npos);
  std::map<member_id, std::uint64_t> used;
  for (const assignment& a : p.jobs)
    for (auto& need : predict(w, a.job, a.islands[0]).members)
      BOOST_TEST((used[need.where] += need.bytes) <= 110'000'000u);
}

BOOST_AUTO_TEST_CASE(a_second_job_goes_where_nobody_works) {
  view v = make_view(4);
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 1;
  v.jobs.push_back(second_job(v, 6, 5));
  plan p = make_plan(v);
  for (const member_id& id : workers(p.jobs[0].islands[0]))
    BOOST_TEST(!workers(p.jobs[1].islands[0]).contains(id));
}

BOOST_AUTO_TEST_CASE(a_job_that_ends_leaves_the_other_where_it_is) {
  view v = make_view(4);
  v.jobs.push_back(second_job(v, 6, 5));
  view w = next_view(v);
  const std::uint64_t before = digest(of_job(make_plan(w), 5));
  w.jobs[1].state = job_state::done;
  BOOST_TEST(digest(only(w)) == before);
}

BOOST_AUTO_TEST_CASE(microbatches_kept_by_a_schedule_count_as_memory) {
  view v = make_view(2);
  job_entry& job = v.jobs[0];
  job.want_replicas = 1;
  job.want_stages = 2;
  job.activation_bytes = 1'000'000;
  island_place a = only(v);
  BOOST_REQUIRE(a.replicas.size() == 1u && a.replicas[0].stages.size() == 2u);
  stage_place& last = a.replicas[0].stages[1];
  auto bytes = [&] {
    for (auto& [id, n, busy] : predict(v, a).members)
      if (id == last.lead())
        return n;
    return std::uint64_t{0};
  };
  last.kept_max = 1;
  const std::uint64_t one = bytes();
  last.kept_max = 3;
  BOOST_TEST(
    bytes()
    == one + 2 * job.activation_bytes * (last.last_block - last.first_block));
}

BOOST_AUTO_TEST_CASE(members_that_are_cut_are_in_no_job_together) {
  view v = make_view(4);
  v.members[1].device.mflops = 90'000;
  cut(v, 1, 3);
  island_place a = only(v);
  BOOST_TEST(!workers(a).contains(v.members[1].id)); // costs least
  BOOST_TEST(workers(a).contains(v.members[3].id));
  for (const auto& ids : {a.sealers, a.keepers})
    BOOST_TEST((std::ranges::find(ids, v.members[1].id) == ids.end()));
}

BOOST_AUTO_TEST_CASE(the_reporter_can_be_reached_by_the_submitter) {
  for (std::size_t submitter = 0; submitter < 4; ++submitter)
    for (std::size_t other = 0; other < 4; ++other) {
      if (other == submitter)
        continue;
      view before = make_view(4);
      before.jobs[0].submitter = before.members[submitter].id.peer;
      before.jobs[0].want_replicas = 2;
      before.jobs[0].want_stages = 1;
      before.jobs[0].block_state_bytes = 1'000'000; // what moves is no matter
      view v = next_view(before);
      cut(v, std::min(submitter, other), std::max(submitter, other));
      const island_place a = only(v);
      for (const member_id& id : {a.reporter, a.checkpointer, a.evaluator})
        BOOST_TEST(!is_cut(v, id.peer, v.jobs[0].submitter),
                   submitter << " cut from " << other);
    }
}

BOOST_AUTO_TEST_CASE(members_share_the_parts_of_checkpoints_if_asked_to) {
  view v = make_view(6);
  v.jobs[0].want_replicas = 1;
  v.jobs[0].want_stages = 2;
  const island_place before = only(v);
  BOOST_TEST(before.part_keepers.empty());
  v.jobs[0].want_part_keepers = std::uint32_t(before.keepers.size());
  BOOST_TEST(only(v).part_keepers.empty()); // each would have all
  v.jobs[0].want_part_keepers = 5;
  const island_place a = only(v);
  BOOST_TEST((a.keepers == before.keepers));
  BOOST_TEST(a.part_keepers.size() == 5u);
  BOOST_TEST(std::ranges::is_sorted(a.part_keepers));
  BOOST_TEST(std::ranges::includes(a.part_keepers, a.keepers));
  BOOST_TEST(std::ranges::includes(a.sealers, a.part_keepers));
  // Those that are left stay when one has died.
  view after = next_view(v);
  const member_id dead = a.part_keepers[1];
  std::erase_if(after.members, [&](const member& m) { return m.id == dead; });
  const island_place b = only(after);
  BOOST_TEST(b.part_keepers.size() == 5u);
  for (const member_id& id : a.part_keepers)
    BOOST_TEST((id == dead || std::ranges::binary_search(b.part_keepers, id)));
  // Too few: all that there are, and the plan says so.
  v.jobs[0].want_part_keepers = 9;
  const plan p = make_plan(v);
  BOOST_TEST(p.jobs[0].islands[0].part_keepers.size() == 6u);
  const auto unheld = unheld_wishes(v, p.jobs[0]);
  BOOST_REQUIRE(unheld.size() == 1u);
  BOOST_TEST(unheld[0].key == "checkpoint.keepers");
}

// Another would have to fetch the data first, and the run to wait for that.
BOOST_AUTO_TEST_CASE(after_a_death_the_data_source_is_a_keeper) {
  for (std::size_t members = 3; members <= 6; ++members)
    for (std::uint32_t replicas = 1; replicas <= 2; ++replicas)
      for (std::size_t dead = 0; dead < members; ++dead) {
        view before = make_view(members);
        before.jobs[0].want_stages = 2;
        before.jobs[0].want_replicas = replicas;
        const island_place was = only(before);
        view v = next_view(before);
        v.members.erase(v.members.begin() + long(dead));
        const island_place a = only(v);
        const auto at_work = workers(a);
        auto had = [&](const member_id& id) {
          return std::ranges::find(was.keepers, id) != was.keepers.end();
        };
        BOOST_TEST((had(a.data_source) || std::ranges::none_of(at_work, had)),
                   members << " members, " << replicas << " replicas, without "
                           << dead);
      }
}

BOOST_AUTO_TEST_CASE(a_member_cut_from_many_goes_before_many) {
  view v = make_view(5);
  v.members[2].device.mflops = 150'000;
  cut(v, 0, 2);
  cut(v, 2, 3);
  cut(v, 2, 4);
  BOOST_TEST(workers(only(v)).size() == 4u);
  BOOST_TEST(!workers(only(v)).contains(v.members[2].id));
}

BOOST_AUTO_TEST_CASE(of_equals_that_are_cut_the_one_at_work_stays) {
  view v = make_view(3);
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 1;
  const island_place a = only(v);
  view w = next_view(v);
  std::size_t idle = 0;
  while (workers(a).contains(w.members[idle].id))
    ++idle;
  for (std::size_t i = 0; i < 3; ++i)
    if (i != idle)
      cut(w, std::min(i, idle), std::max(i, idle));
  BOOST_TEST((only(w).replicas == a.replicas));
}

BOOST_AUTO_TEST_CASE(a_lost_changed_or_cut_member_disturbs_an_assignment) {
  view v = make_view(4);
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 1;
  const island_place a = only(v);
  auto at_work = [&](bool does) {
    return std::size_t(std::ranges::find_if(v.members,
                                            [&](const member& m) {
                                              return workers(a).contains(m.id)
                                                     == does;
                                            })
                       - v.members.begin());
  };
  const std::size_t one = at_work(true), idle = at_work(false);
  BOOST_TEST(undisturbed(v, a));
  view w = v;
  cut(w, std::min(one, idle), std::max(one, idle));
  BOOST_TEST(undisturbed(w, a));
  w.members.erase(w.members.begin() + std::ptrdiff_t(idle));
  BOOST_TEST(undisturbed(w, a));
  w = v;
  w.members.erase(w.members.begin() + std::ptrdiff_t(one));
  BOOST_TEST(!undisturbed(w, a));
  w = v;
  ++w.members[one].id.incarnation;
  BOOST_TEST(!undisturbed(w, a));
  std::vector<std::size_t> both;
  for (std::size_t i = 0; i < 4; ++i)
    if (workers(a).contains(v.members[i].id))
      both.push_back(i);
  cut(v, both.at(0), both.at(1));
  BOOST_TEST(!undisturbed(v, a));
}

BOOST_AUTO_TEST_CASE(a_job_that_never_fits_is_told_in_numbers) {
  view v = make_view(2);
  job_entry j = v.jobs[0];
  v.jobs.clear();
  BOOST_TEST(never_fits(v, j).empty());
  j.block_state_bytes = std::uint64_t{5} << 30;
  j.embed_state_bytes = std::uint64_t{1} << 30;
  j.head_state_bytes = std::uint64_t{200} << 20;
  for (member& m : v.members)
    m.device.memory_bytes = std::uint64_t{16} << 30;
  const std::string why = never_fits(v, j);
  BOOST_TEST(why.find("needs at least 41.2 GiB") != std::string::npos, why);
  BOOST_TEST(why.find("has 32.0 GiB") != std::string::npos, why);
  v.members.clear();
  BOOST_TEST(never_fits(v, j).empty()); // members may come
}

BOOST_AUTO_TEST_CASE(other_jobs_do_not_make_a_job_impossible) {
  view v = make_view(1);
  v.members[0].device.memory_bytes = 100'000'000;
  job_entry j = second_job(v, 6, 5);
  BOOST_TEST(never_fits(v, j).empty());
  v.jobs.push_back(j);
  const island_place waits = of_job(make_plan(v), 6);
  BOOST_TEST(waits.replicas.empty());
  BOOST_TEST(waits.why_waiting.find("taken by other jobs")
             != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
