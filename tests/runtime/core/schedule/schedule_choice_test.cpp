// tests/runtime/core/schedule/schedule_choice_test.cpp -- which schedule is
// chosen.
#include "runtime/core/job_entry.hpp"
#include "runtime/core/schedule/schedule_choice.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <numeric>
#include <random>

BOOST_AUTO_TEST_SUITE(schedule_choice_)

using namespace shoal::core;

namespace {

/// `peers` peers of `blocks` blocks; each keeps 1 byte of one for each
/// microbatch.
schedule_problem problem(std::uint32_t peers, std::uint32_t blocks,
                         std::uint32_t count, std::uint64_t memory) {
  schedule_problem p;
  p.microbatches = count;
  p.kept_bytes = 1;
  for (std::uint32_t i = 0; i < peers; ++i)
    p.parts.push_back({i, blocks, {1000, 1000, 1000, 5}, {}, memory});
  return p;
}

std::vector<std::uint64_t>
kept_bytes(const schedule_problem& p, const schedule_choice& c) {
  std::vector<std::uint64_t> bytes(p.parts.size(), 0); // by peer
  for (const scheduled_stage& s : c.stages)
    bytes[p.parts[s.part].peer] += p.kept_bytes * s.blocks * s.kept_max;
  return bytes;
}

} // namespace

BOOST_AUTO_TEST_CASE(memory_is_respected_and_used) {
  // One block and peer needs S - s bytes at least.
  for (std::uint32_t peers : {2, 3, 4})
    for (std::uint64_t memory = 0; memory < 40; ++memory) {
      const schedule_problem p = problem(peers, 1, 4 * peers, memory);
      const schedule_choice c = choose_schedule({p}).front();
      BOOST_TEST_CONTEXT("peers " << peers << " memory " << memory) {
        BOOST_TEST(c.stages.size() == peers);
        if (memory < peers) { // the layout has refused it before
          BOOST_TEST((c.kind == schedule_kind::one_f_one_b));
          continue;
        }
        // What the first stage keeps by 1F1B is enough for ZB-H1.
        BOOST_TEST((c.kind == schedule_kind::zero_bubble));
        for (std::uint64_t bytes : kept_bytes(p, c))
          BOOST_TEST(bytes <= memory);
      }
    }
}

BOOST_AUTO_TEST_CASE(more_memory_never_makes_a_step_longer) {
  for (std::uint32_t peers : {2, 4})
    for (std::uint32_t blocks : {1, 4}) {
      std::uint64_t before = ~std::uint64_t{0};
      for (std::uint64_t memory = peers * blocks; memory < 80 * blocks;
           memory += blocks) {
        const auto c =
          choose_schedule({problem(peers, blocks, 4 * peers, memory)});
        // A difference that is not worth a change may be this large.
        BOOST_TEST(c.front().step
                   <= before + before / 1000 * schedule_gain_permille);
        before = std::min(before, c.front().step);
      }
    }
}

BOOST_AUTO_TEST_CASE(with_memory_the_bubble_is_a_third_of_1f1b) {
  for (std::uint32_t peers : {2, 3, 4, 8})
    for (std::uint32_t blocks : {1, 4}) {
      schedule_problem p = problem(peers, blocks, 4 * peers, 10'000);
      const schedule_choice c = choose_schedule({p}).front();
      BOOST_TEST((c.kind == schedule_kind::zero_bubble));
      const auto full = try_schedule(p, schedule_kind::zero_bubble, 1);
      BOOST_REQUIRE(full);
      // A schedule that keeps less may be slower by this.
      BOOST_TEST(c.step * (1000 - schedule_gain_permille) <= full->step * 1000);
      const std::uint64_t work = 3000 * std::uint64_t{blocks} * p.microbatches;
      p.kind = schedule_kind::one_f_one_b;
      for (pipeline_part& part : p.parts) // the backward pass in one piece
        part.block = {1000, 2000, 0, 5};
      const schedule_choice published = choose_schedule({p}).front();
      BOOST_TEST((published.kind == schedule_kind::one_f_one_b));
      BOOST_TEST(3 * (full->step - work) <= published.step - work);
    }
}

BOOST_AUTO_TEST_CASE(the_jobs_wishes_are_met_where_possible) {
  schedule_problem p = problem(3, 4, 12, 10'000);
  for (auto kind : {schedule_kind::one_f_one_b, schedule_kind::interleaved,
                    schedule_kind::zero_bubble}) {
    p.kind = kind;
    BOOST_TEST((choose_schedule({p}).front().kind == kind));
  }
  p.virtual_degree = 4;
  const schedule_choice c = choose_schedule({p}).front();
  BOOST_TEST(c.virtual_degree == 4u);
  BOOST_TEST(c.stages.size() == 12u);
  p.virtual_degree = 5; // a peer has only 4 blocks
  const schedule_choice d = choose_schedule({p}).front();
  BOOST_TEST((d.kind == schedule_kind::one_f_one_b));
  BOOST_TEST(d.stages.size() == 3u);
}

BOOST_AUTO_TEST_CASE(one_peer_has_nothing_to_schedule) {
  for (std::int32_t degree : {-1, 2}) {
    schedule_problem p = problem(1, 4, 6, 10'000);
    p.virtual_degree = degree;
    const schedule_choice c = choose_schedule({p}).front();
    BOOST_TEST((c.kind == schedule_kind::one_f_one_b));
    BOOST_TEST(c.stages.size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(stages_that_share_a_peer_stay_as_placed) {
  schedule_problem p = problem(4, 2, 8, 10'000);
  p.parts[1].peer = 0;
  p.parts[2].peer = p.parts[3].peer = 1;
  const schedule_choice c = choose_schedule({p}).front();
  BOOST_TEST(c.stages.size() == 4u);
  BOOST_TEST(c.virtual_degree == 1u);
}

BOOST_AUTO_TEST_CASE(nothing_slower_than_1f1b_is_ever_chosen) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 rng(seed);
    auto below = [&](unsigned n) { return std::uint32_t(rng() % n); };
    schedule_problem p;
    p.microbatches = 1 + below(20);
    p.kept_bytes = 1 + below(3);
    const std::uint32_t peers = 1 + below(5);
    for (std::uint32_t i = 0; i < peers; ++i)
      p.parts.push_back(
        {i,
         1 + below(6),
         {1 + below(900), 1 + below(900), below(900), below(300)},
         {},
         below(3) ? 100'000 : 20 + below(200)});
    p.parts.back().extra = {below(900), below(900), below(900), 0};
    const schedule_choice c = choose_schedule({p}).front();
    BOOST_TEST_CONTEXT("seed " << seed) {
      // The blocks are all there, the runs of a peer as even as can be.
      for (std::uint32_t i = 0; i < peers; ++i) {
        std::uint32_t sum = 0, most = 0, least = ~0u;
        for (const scheduled_stage& s : c.stages)
          if (s.part == i) {
            sum += s.blocks;
            most = std::max(most, s.blocks);
            least = std::min(least, s.blocks);
          }
        BOOST_TEST(sum == p.parts[i].blocks);
        BOOST_TEST(most - least <= 1u);
      }
      const auto plain = try_schedule(p, schedule_kind::one_f_one_b, 1);
      if (!plain)
        continue;
      BOOST_TEST(c.step <= plain->step);
      const auto bytes = kept_bytes(p, c);
      for (std::uint32_t i = 0; i < peers; ++i)
        BOOST_TEST(bytes[i] <= p.parts[i].memory);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_step_cut_short_is_estimated_well) {
  for (schedule_kind kind :
       {schedule_kind::one_f_one_b, schedule_kind::zero_bubble})
    for (std::uint32_t peers : {2, 4, 7}) {
      pipeline p;
      p.kind = kind;
      p.peers = peers;
      p.last = 400;
      std::vector<stage_time> times;
      for (std::uint32_t s = 0; s < peers; ++s) {
        p.peer_of.push_back(s);
        times.push_back({1000 + 20 * s, 1100, 900, 10});
      }
      complete(p);
      const auto full = double(simulate(p, times).span);
      BOOST_TEST(std::abs(double(estimate_step(p, times)) / full - 1) < 0.01);
    }
}

BOOST_AUTO_TEST_CASE(an_assignment_gets_its_schedule) {
  island_place a;
  job_entry job;
  job.blocks = 8;
  job.microbatches = 16;
  job.block_flops = 3'000'000'000;
  job.activation_bytes = 10;
  std::map<peer_id, std::uint64_t> mflops, memory;
  a.replicas.resize(2);
  for (std::uint32_t r = 0; r < 2; ++r) {
    a.replicas[r].first_microbatch = 8 * r;
    a.replicas[r].last_microbatch = 8 * r + 8;
    for (std::uint32_t s = 0; s < 2; ++s) {
      member_id m;
      m.peer[0] = std::uint8_t(1 + 2 * r + s);
      mflops[m.peer] = 10'000;
      memory[m.peer] = 1'000'000;
      a.replicas[r].stages.push_back(stage_on(m, 4 * s, 4 * s + 4));
    }
  }
  set_schedule(a, job, mflops, memory, 1000);
  BOOST_TEST((a.schedule == schedule_kind::zero_bubble));
  for (const replica_place& r : a.replicas) {
    std::uint32_t block = 0;
    for (const stage_place& s : r.stages) {
      BOOST_TEST(s.first_block == block);
      BOOST_TEST(s.kept_max > 0u);
      block = s.last_block;
    }
    BOOST_TEST(block == 8u);
    BOOST_TEST(r.stages.size() % 2 == 0u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
