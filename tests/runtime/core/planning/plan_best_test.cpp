// tests/runtime/core/planning/plan_best_test.cpp -- layouts against exhaustive
// search.
//
// Method: on small random shoals, every grouping of members into replicas,
// every order, block split and share is scored by the planner's own cost
// model; the layout found must be within 5 % of the least.
#include "runtime/core/planning/layout/layout.hpp"
#include "runtime/core/view.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

BOOST_AUTO_TEST_SUITE(best_plans)

using namespace shoal::core;

namespace {

/// Scores all layouts of a problem.
class exhaustive {
public:
  explicit exhaustive(const layout_problem& p) : p_(p), model_(p) {}

  /// The best score of layouts whose replicas have this number of stages; 0:
  /// any number. cost_never: none fits.
  layout_score best(std::size_t stages = 0) {
    stages_ = stages;
    group(0);
    return best_;
  }

private:
  using replica = cost_model::replica;

  void group(std::uint32_t i) {
    if (i == p_.members.size()) {
      const bool wanted = std::ranges::all_of(all_, [&](const replica& r) {
        return stages_ == 0 || r.stages.size() == stages_;
      });
      if (!all_.empty() && all_.size() <= p_.job.microbatches && wanted)
        split(0, 0, 0);
      return;
    }
    group(i + 1); // left out
    for (std::size_t r = 0; r < all_.size(); ++r)
      for (std::size_t s = 0; s <= all_[r].stages.size(); ++s) {
        auto& stages = all_[r].stages;
        stages.insert(stages.begin() + std::ptrdiff_t(s), {i, 0, 0});
        group(i + 1);
        all_[r].stages.erase(all_[r].stages.begin() + std::ptrdiff_t(s));
      }
    all_.push_back({{{i, 0, 0}}, 0});
    group(i + 1);
    all_.pop_back();
  }

  void split(std::size_t r, std::size_t s, std::uint32_t next) {
    if (r == all_.size())
      return share(0, p_.job.microbatches);
    auto& stages = all_[r].stages;
    const auto after = std::uint32_t(stages.size() - s - 1);
    for (std::uint32_t last = after == 0 ? p_.job.blocks : next + 1;
         last + after <= p_.job.blocks; ++last) {
      all_[r].stages[s].first = next;
      all_[r].stages[s].last = last;
      if (after == 0)
        split(r + 1, 0, 0);
      else
        split(r, s + 1, last);
    }
  }

  void share(std::size_t r, std::uint32_t left) {
    if (r == all_.size()) {
      if (left > 0)
        return;
      const auto e = model_.evaluate(all_);
      if (model_.fits(e))
        best_ = std::min(best_, model_.charge(e.step, all_));
      return;
    }
    for (std::uint32_t m = 1; m <= left; ++m) {
      all_[r].microbatches = m;
      share(r + 1, left - m);
    }
  }

  const layout_problem& p_;
  cost_model model_;
  std::vector<replica> all_;
  std::size_t stages_ = 0;
  layout_score best_;
};

struct small_case {
  std::vector<member> members;
  job_entry job;
  island_place previous;
  bool has_previous = false;

  layout_problem problem() const {
    layout_problem p{job, {}, {}, has_previous ? &previous : nullptr, {}};
    for (const member& m : members) {
      p.members.push_back(&m);
      p.memory[m.id.peer] = m.device.memory_bytes;
    }
    return p;
  }
};

small_case random_case(std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  auto below = [&](std::uint64_t n) { return rng() % n; };
  small_case c;
  const std::size_t n = 2 + below(5); // beyond try_all_members_max, too
  const std::uint64_t most = n < 5 ? 6 : n < 6 ? 4 : 3;
  c.job.blocks = std::uint32_t(1 + below(most));
  c.job.microbatches = std::uint32_t(1 + below(most));
  c.job.block_flops = 20'000'000'000;
  c.job.head_flops = 5'000'000'000 * below(5);
  c.job.block_state_bytes = 10'000'000 << below(6);
  c.job.embed_state_bytes = 5'000'000 * below(5);
  c.job.head_state_bytes = 5'000'000 * below(5);
  c.job.activation_bytes = 1'000'000 * below(10);
  c.job.boundary_bytes = 1'000'000 * below(50);
  const bool tight = below(2) == 0;
  for (std::size_t i = 0; i < n; ++i) {
    member& m = c.members.emplace_back();
    m.id.peer[0] = std::uint8_t(i + 1);
    m.id.incarnation = 1;
    m.device.mflops = 20'000 + 10'000 * below(20);
    m.device.memory_bytes =
      (tight ? 1 : 10) * c.job.block_state_bytes * (1 + below(6)) + 20'000'000;
    if (below(2) == 0) {
      m.host = "h" + std::to_string(below(2));
      m.device.threads = 2;
      m.device.host_threads = below(2) ? 4 : 0;
    }
    m.device.stream_mbps = below(2) ? 10'000 : 0;
    for (const char* name : {"a", "b"})
      if (below(2) == 0)
        m.networks.push_back({name, nanoseconds(1000 * below(300)),
                              100'000'000 * (1 + below(30))});
  }
  if (below(3) == 0) { // from a shoal in which one had another speed
    small_case before = c;
    before.members[0].device.mflops /= 4;
    c.previous.replicas = find_layout(before.problem()).replicas;
    c.has_previous = true;
  }
  return c;
}

} // namespace

BOOST_AUTO_TEST_CASE(layouts_are_within_five_per_cent_of_the_best) {
  int none = 0, exact = 0, several = 0, deep = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const small_case c = random_case(seed);
      const layout_problem p = c.problem();
      const layout found = find_layout(p);
      const layout_score best = exhaustive(p).best();
      if (best.cost == cost_never) {
        BOOST_TEST(found.replicas.empty());
        ++none;
        continue;
      }
      BOOST_REQUIRE(!found.replicas.empty());
      const auto really = score(p, found.replicas);
      BOOST_REQUIRE(really.has_value());
      BOOST_TEST(really->cost == found.score.cost);
      BOOST_TEST(found.score.cost <= best.cost + best.cost / 20,
                 found.score.cost << " against " << best.cost);
      exact += found.score.cost == best.cost;
      several += found.replicas.size() > 1;
      deep += found.replicas[0].stages.size() > 1;
    }
  }
  BOOST_TEST_MESSAGE(exact << " exact, " << none << " do not fit, " << several
                           << " with replicas, " << deep << " with stages");
  // The cases are no trivial ones.
  BOOST_TEST(none < 50);
  BOOST_TEST(several > 40);
  BOOST_TEST(deep > 40);
}

BOOST_AUTO_TEST_CASE(wanted_stages_are_apart_wherever_they_fit) {
  int none = 0, apart = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      small_case c = random_case(seed);
      c.job.want_stages = std::int32_t(2 + seed % 3);
      if (c.job.blocks < std::uint32_t(c.job.want_stages))
        continue;
      const layout_problem p = c.problem();
      const layout found = find_layout(p);
      const layout_score best =
        exhaustive(p).best(std::size_t(c.job.want_stages));
      if (best.cost == cost_never) {
        ++none;
        continue;
      }
      BOOST_REQUIRE(!found.replicas.empty());
      for (const replica_place& r : found.replicas) {
        std::set<member_id> distinct;
        for (const stage_place& s : r.stages)
          distinct.insert(s.lead());
        BOOST_TEST(distinct.size() == std::size_t(c.job.want_stages));
      }
      // Blocks are split by the pipeline's time alone. Where all members must
      // take some, what the optimizer takes and what moves can matter more.
      BOOST_TEST(found.score.cost <= best.cost + best.cost / 6,
                 found.score.cost << " against " << best.cost);
      ++apart;
    }
  }
  BOOST_TEST(apart > 80);
  BOOST_TEST(none > 20);
}

BOOST_AUTO_TEST_SUITE_END()
