// tests/runtime/core/planning/plan_test.cpp -- properties and quality of every
// plan.
#include "runtime/core/schedule/schedule.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

BOOST_AUTO_TEST_SUITE(planning)

using namespace shoal::core;

namespace {

void check_sound(const view& v, const island_place& a, const job_entry& job,
                 std::map<member_id, std::uint64_t>& used) {
  std::uint32_t next = 0;
  std::map<member_id, std::size_t> replica_of;
  for (std::size_t n = 0; n < a.replicas.size(); ++n) {
    const replica_place& r = a.replicas[n];
    BOOST_TEST(r.first_microbatch == next);
    BOOST_TEST(r.last_microbatch > r.first_microbatch);
    next = r.last_microbatch;
    std::uint32_t block = 0;
    for (auto& s : r.stages) {
      BOOST_TEST(s.first_block == block);
      BOOST_TEST((s.last_block > s.first_block || job.blocks == 0));
      block = s.last_block;
      const member* m = find_member(v, s.lead().peer);
      BOOST_REQUIRE(m);
      BOOST_TEST((m->id == s.lead()));
      BOOST_TEST(!m->witness);
      bool one_stays = std::ranges::any_of(v.members, [](const member& x) {
        return x.state == member_state::active && !x.witness
               && x.device.mflops > 0;
      });
      BOOST_TEST((m->state == member_state::active
                  || (!one_stays && m->state == member_state::leaving)));
      auto [at, fresh] = replica_of.try_emplace(s.lead(), n);
      // A member is in one replica, but where it stands in for a lost one.
      BOOST_TEST((fresh || at->second == n || !v.previous.empty()));
    }
    BOOST_TEST(block == job.blocks);
  }
  if (a.replicas.empty()) {
    BOOST_TEST(!a.why_waiting.empty());
    return;
  }
  BOOST_TEST(next == job.microbatches);
  for (auto& need : predict(v, a).members)
    BOOST_TEST((used[need.where] += need.bytes)
               <= find_member(v, need.where.peer)->device.memory_bytes);
  auto w = workers(a);
  for (auto& id : {a.data_source, a.evaluator, a.checkpointer, a.reporter})
    BOOST_TEST(w.contains(id));
  std::set<member_id> sealers(a.sealers.begin(), a.sealers.end());
  for (auto& id : w)
    BOOST_TEST(sealers.contains(id));
  for (auto& id : a.keepers)
    BOOST_TEST(sealers.contains(id));
  std::set<member_id> keepers(a.keepers.begin(), a.keepers.end());
  BOOST_TEST(keepers.size() == a.keepers.size());
  BOOST_TEST(keepers.size() >= std::min<std::size_t>(2, w.size()));
}

} // namespace

BOOST_AUTO_TEST_CASE(any_view_gets_a_sound_plan_and_always_the_same) {
  std::mt19937_64 rng(1);
  auto below = [&](std::uint64_t n) { return rng() % n; };
  int waits = 0, runs = 0;
  for (int round = 0; round < 400; ++round) {
    view v = make_view(1 + below(9), static_cast<std::uint32_t>(1 + below(12)),
                       static_cast<std::uint32_t>(1 + below(12)));
    for (member& m : v.members) {
      m.device.mflops = below(8) == 0 ? 0 : 20'000 + 10'000 * below(20);
      m.device.memory_bytes = 10'000'000 + below(200'000'000);
      m.witness = below(10) == 0;
      m.host = below(3) == 0 ? "h" + std::to_string(below(2)) : "";
      if (below(10) == 0)
        m.state = member_state::leaving;
    }
    if (below(2)) {
      v.jobs[0].want_replicas = static_cast<std::int32_t>(below(4)) - 1;
      v.jobs[0].want_stages = static_cast<std::int32_t>(below(5)) - 1;
    }
    if (below(3) == 0) {
      v.jobs.push_back(v.jobs[0]);
      v.jobs[1].id = 6;
    }
    for (int change = 0; change < 3; ++change) {
      plan p = make_plan(v);
      plan again = make_plan(v);
      BOOST_TEST((p.jobs == again.jobs));
      std::map<member_id, std::uint64_t> used;
      for (std::size_t i = 0; i < p.jobs.size(); ++i) {
        const island_place& a = p.jobs[i].islands.at(0);
        check_sound(v, a, v.jobs[i], used);
        ++(a.replicas.empty() ? waits : runs);
      }
      v = next_view(v);
      if (!v.members.empty() && below(2))
        v.members.erase(v.members.begin()
                        + static_cast<std::ptrdiff_t>(below(v.members.size())));
      else
        v.members.push_back(
          make_member(static_cast<std::uint8_t>(20 + change)));
    }
  }
  BOOST_TEST(waits > 20);
  BOOST_TEST(runs > 400);
}

BOOST_AUTO_TEST_CASE(wanted_replicas_and_stages_are_placed_on_as_many_members) {
  view v = make_view(4);
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 2;
  island_place a = only(v);
  BOOST_REQUIRE(a.replicas.size() == 2u);
  BOOST_TEST(a.replicas[0].stages.size() == 2u);
  BOOST_TEST(a.replicas[1].stages.size() == 2u);
  BOOST_TEST(workers(a).size() == 4u);
  BOOST_TEST(a.replicas[0].last_microbatch == 4u); // equal speeds
}

BOOST_AUTO_TEST_CASE(one_member_runs_all_wanted_stages_in_one_process) {
  view v = make_view(1);
  v.jobs[0].want_replicas = 2; // does not fit: one replica
  v.jobs[0].want_stages = 3;
  island_place a = only(v);
  BOOST_REQUIRE(a.replicas.size() == 1u);
  BOOST_TEST(a.replicas[0].stages.size() == 3u);
}

BOOST_AUTO_TEST_CASE(wanted_blocks_are_taken_as_they_are) {
  view v = make_view(2);
  v.jobs[0].want_replicas = 1;
  v.jobs[0].want_blocks = {1, 7};
  island_place a = only(v);
  BOOST_REQUIRE(a.replicas.size() == 1u);
  BOOST_REQUIRE(a.replicas[0].stages.size() == 2u);
  BOOST_TEST(a.replicas[0].stages[0].last_block == 1u);
}

BOOST_AUTO_TEST_CASE(work_is_split_in_proportion_to_measured_speed) {
  view v = make_view(2, 9, 9);
  v.members[0].device.mflops = 200'000;
  v.jobs[0].head_flops = 0;
  v.jobs[0].want_replicas = 1;
  v.jobs[0].want_stages = 2;
  island_place a = only(v);
  for (auto& s : a.replicas[0].stages)
    BOOST_TEST(s.last_block - s.first_block
               == (s.lead() == v.members[0].id ? 6u : 3u));
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 1;
  a = only(v);
  for (auto& r : a.replicas)
    BOOST_TEST(r.last_microbatch - r.first_microbatch
               == (r.stages[0].lead() == v.members[0].id ? 6u : 3u));
}

BOOST_AUTO_TEST_CASE(a_view_that_changes_nothing_keeps_the_assignment) {
  view v = make_view(4);
  island_place a = only(v);
  BOOST_TEST(a.since == 10u);
  view w = next_view(v);
  BOOST_TEST((only(w) == a)); // since included
  BOOST_TEST(digest(only(w)) == digest(a));
  w.members[2].device.mflops += 5'000; // 5 %: not worth a change
  BOOST_TEST((only(w) == a));
}

BOOST_AUTO_TEST_CASE(an_idle_member_that_joins_or_dies_changes_nothing) {
  view v = make_view(4);
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 2;
  island_place a = only(v);
  view w = next_view(v);
  w.members.push_back(make_member(9));
  BOOST_TEST((only(w) == a));
  view x = next_view(w);
  x.members.pop_back();
  BOOST_TEST((only(x) == a));
}

BOOST_AUTO_TEST_CASE(a_death_is_healed_and_a_newcomer_takes_the_empty_place) {
  view v = make_view(4);
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 2;
  view w = next_view(v);
  member dead = w.members[1];
  w.members.erase(w.members.begin() + 1);
  island_place b = only(w);
  BOOST_TEST(b.since == 11u);
  BOOST_TEST(b.replicas.size() == 2u); // one member runs two stages
  BOOST_TEST(workers(b).size() == 3u);
  view x = next_view(w);
  dead.id.incarnation = 12;
  x.members.insert(x.members.begin() + 1, dead);
  island_place c = only(x);
  BOOST_TEST(workers(c).size() == 4u);
  BOOST_TEST(workers(c).contains(dead.id));
}

BOOST_AUTO_TEST_CASE(survivors_keep_the_blocks_they_hold) {
  view v = make_view(4);
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 2;
  island_place a = only(v);
  view w = next_view(v);
  member fresh = make_member(9);
  w.members[1] = fresh;
  std::ranges::sort(w.members, {}, &member::id);
  island_place b = only(w);
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t s = 0; s < 2; ++s) {
      member_id was = a.replicas[r].stages[s].lead();
      if (was == v.members[1].id)
        continue;
      bool kept = false;
      for (auto& q : b.replicas)
        kept = kept || (q.stages[s].lead() == was);
      BOOST_TEST(kept);
    }
}

BOOST_AUTO_TEST_CASE(former_holders_stay_sealers_until_they_die) {
  view v = make_view(3);
  v.jobs[0].want_replicas = 1;
  v.jobs[0].want_stages = 2;
  island_place a = only(v);
  view w = next_view(v);
  for (member& m : w.members)
    if (m.id == a.replicas[0].stages[0].lead())
      m.state = member_state::leaving;
  island_place b = only(w);
  BOOST_TEST(!workers(b).contains(a.replicas[0].stages[0].lead()));
  BOOST_TEST(std::ranges::count(b.sealers, a.replicas[0].stages[0].lead())
             == 1);
}

BOOST_AUTO_TEST_CASE(a_job_that_does_not_fit_waits_and_says_how_much_it_needs) {
  view v = make_view(2);
  for (member& m : v.members)
    m.device.memory_bytes = 20'000'000;
  island_place a = only(v);
  BOOST_TEST(a.replicas.empty());
  BOOST_TEST(a.why_waiting.find("86.6 MiB") != std::string::npos);
  BOOST_TEST(a.why_waiting.find("38.2 MiB") != std::string::npos);
  view w = next_view(v);
  BOOST_TEST((only(w) == a));
  w.members.clear();
  BOOST_TEST(only(w).why_waiting.find("no member") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_job_of_higher_priority_takes_memory_from_one_that_runs) {
  view v = make_view(2);
  for (member& m : v.members)
    m.device.memory_bytes = 60'000'000; // both for one job
  v.jobs[0].changed = 9;
  BOOST_REQUIRE(!only(v).replicas.empty());
  const auto alone = only(v).replicas;
  // With the same priority the older job stays, whatever the ids are.
  v = next_view(v);
  job_entry other = v.jobs[0];
  other.id = 3;
  other.changed = 11;
  v.jobs.insert(v.jobs.begin(), other);
  plan p = make_plan(v);
  BOOST_REQUIRE(p.jobs.size() == 2u);
  BOOST_TEST(p.jobs[0].job == 3u); // by id, as ever
  BOOST_TEST(p.jobs[0].islands[0].replicas.empty());
  BOOST_TEST(p.jobs[0].islands[0].why_waiting.find("memory")
             != std::string::npos);
  BOOST_TEST((p.jobs[1].islands[0].replicas == alone));
  // Of a higher one: it takes them, and the other waits and says so.
  v = next_view(v);
  v.jobs[0].priority = 1;
  p = make_plan(v);
  BOOST_TEST(!p.jobs[0].islands[0].replicas.empty());
  BOOST_TEST(p.jobs[1].islands[0].replicas.empty());
  BOOST_TEST(!p.jobs[1].islands[0].why_waiting.empty());
  // It ends: the other gets its peers back.
  v = next_view(v);
  v.jobs[0].state = job_state::done;
  p = make_plan(v);
  BOOST_REQUIRE(p.jobs.size() == 1u);
  BOOST_TEST(p.jobs[0].job == 5u);
  BOOST_TEST(!p.jobs[0].islands[0].replicas.empty());
}

BOOST_AUTO_TEST_CASE(unrelated_changes_leave_a_jobs_digest_unchanged) {
  view v = next_view(make_view(2));
  const auto before = digest(only(v));
  for (std::uint8_t round = 0; round < 50; ++round) {
    v = next_view(v);
    if (round % 2 == 0) { // a witness comes, and a job without room
      member m = make_member(std::uint8_t(100 + round));
      m.witness = true;
      v.members.push_back(m);
      job_entry j = v.jobs[0];
      j.id = 1000 + round;
      j.changed = v.number;
      j.block_state_bytes = 10'000'000'000;
      v.jobs.push_back(j);
    } else { // both go
      v.members.pop_back();
      v.jobs.pop_back();
    }
    for (const assignment& a : make_plan(v).jobs)
      if (a.job == v.jobs[0].id)
        BOOST_TEST(digest(a.islands.at(0)) == before);
  }
}

BOOST_AUTO_TEST_CASE(memory_makes_stages_where_one_member_is_too_small) {
  view v = make_view(4);
  for (member& m : v.members)
    m.device.memory_bytes = 60'000'000;
  island_place a = only(v);
  BOOST_REQUIRE(a.replicas.size() == 2u);
  BOOST_TEST(a.replicas[0].stages.size() == 2u);
}

BOOST_AUTO_TEST_CASE(any_change_of_an_assignment_changes_its_digest) {
  island_place a = only(make_view(4));
  std::set<std::uint64_t> digests{digest(a)};
  auto differs = [&](std::function<void(island_place&)> change) {
    island_place b = a;
    change(b);
    BOOST_TEST(digests.insert(digest(b)).second);
  };
  BOOST_TEST(digests.insert(digest({6, 0}, a)).second);
  BOOST_TEST(digests.insert(digest({5, 1}, a)).second);
  differs([](island_place& b) { ++b.since; });
  differs([](island_place& b) { b.replicas.pop_back(); });
  differs([](island_place& b) { ++b.replicas[0].last_microbatch; });
  differs([](island_place& b) { ++b.replicas[0].stages[0].last_block; });
  differs([](island_place& b) {
    ++b.replicas[0].stages[0].shards[0].where.member.incarnation;
  });
  differs([](island_place& b) { b.keepers.pop_back(); });
  differs([](island_place& b) { b.sealers.pop_back(); });
  differs([](island_place& b) { ++b.data_source.incarnation; });
  differs([](island_place& b) { ++b.evaluator.incarnation; });
  differs([](island_place& b) { ++b.checkpointer.incarnation; });
  differs([](island_place& b) { ++b.reporter.incarnation; });
  differs([](island_place& b) { b.why_waiting = "x"; });
}

namespace {

/// The least predicted time of any layout with R replicas of P stages on
/// members of their own, over all orders, block splits and shares.
nanoseconds
exhaustive(const view& v, std::uint32_t replicas, std::uint32_t stages) {
  const job_entry& job = v.jobs[0];
  std::vector<std::size_t> order(v.members.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  nanoseconds best = -1;
  std::function<void(island_place&, std::uint32_t, std::uint32_t,
                     std::uint32_t)>
    blocks;
  auto shares = [&](island_place& a) {
    std::function<void(std::uint32_t, std::uint32_t)> give =
      [&](std::uint32_t r, std::uint32_t next) {
        std::uint32_t after = replicas - r - 1;
        for (std::uint32_t last = after == 0 ? job.microbatches : next + 1;
             last + after <= job.microbatches; ++last) {
          a.replicas[r].first_microbatch = next;
          a.replicas[r].last_microbatch = last;
          if (after > 0) {
            give(r + 1, last);
            continue;
          }
          nanoseconds t = predict(v, a).step;
          if (best < 0 || t < best)
            best = t;
        }
      };
    give(0, 0);
  };
  blocks = [&](island_place& a, std::uint32_t r, std::uint32_t s,
               std::uint32_t next) {
    if (r == replicas)
      return shares(a);
    std::uint32_t after = stages - s - 1;
    for (std::uint32_t last = after == 0 ? job.blocks : next + 1;
         last + after <= job.blocks; ++last) {
      a.replicas[r].stages[s] =
        stage_on(v.members[order[r * stages + s]].id, next, last);
      if (after == 0)
        blocks(a, r + 1, 0, 0);
      else
        blocks(a, r, s + 1, last);
    }
  };
  do {
    island_place a;
    a.replicas.resize(replicas);
    for (auto& r : a.replicas)
      r.stages.resize(stages);
    blocks(a, 0, 0, 0);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

} // namespace

BOOST_AUTO_TEST_CASE(small_plans_are_within_five_per_cent_of_the_best) {
  std::mt19937_64 rng(2);
  auto below = [&](std::uint64_t n) { return rng() % n; };
  for (int round = 0; round < 30; ++round) {
    std::size_t n = 2 + below(2);
    view v = make_view(n, static_cast<std::uint32_t>(3 + below(3)),
                       static_cast<std::uint32_t>(3 + below(4)));
    for (member& m : v.members)
      m.device.mflops = 20'000 + 10'000 * below(15);
    for (std::uint32_t r = 1; r <= n; ++r)
      for (std::uint32_t p = 1; r * p <= n && p <= 3; ++p) {
        v.jobs[0].want_replicas = static_cast<std::int32_t>(r);
        v.jobs[0].want_stages = static_cast<std::int32_t>(p);
        nanoseconds got = predict(v, only(v)).step;
        nanoseconds best = exhaustive(v, r, p);
        BOOST_TEST(got <= best + best / 20,
                   r << " x " << p << ": " << got << " against " << best);
      }
    // Free to choose: no worse than the best shape, except for redundancy.
    v.jobs[0].want_replicas = v.jobs[0].want_stages = -1;
    nanoseconds best = -1;
    for (std::uint32_t r = 1; r <= n; ++r)
      for (std::uint32_t p = 1; r * p <= n; ++p) {
        nanoseconds t = exhaustive(v, r, p);
        best = best < 0 || t < best ? t : best;
      }
    BOOST_TEST(predict(v, only(v)).step <= best + best * 30 / 100);
  }
}

BOOST_AUTO_TEST_CASE(when_all_leave_the_jobs_stay_where_they_are) {
  view v = make_view(4);
  const island_place before = only(v);
  view next = next_view(v);
  for (member& m : next.members)
    m.state = member_state::leaving;
  BOOST_TEST((only(next).replicas == before.replicas));
}

BOOST_AUTO_TEST_SUITE_END()
