// tests/runtime/core/schedule_test.cpp -- order and memory of 1F1B.
#include "runtime/core/training/schedule.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <set>

using namespace shoal::core;

namespace {

/// Runs all stages against each other; returns the ticks it takes, or 0 if
/// they wait for each other for ever.
std::uint64_t
play(std::uint32_t stages, std::uint32_t first, std::uint32_t last) {
  std::vector<std::vector<work_item>> todo;
  for (std::uint32_t s = 0; s < stages; ++s)
    todo.push_back(make_schedule(s, stages, first, last));
  std::vector<std::size_t> at(stages, 0);
  std::set<std::pair<std::uint32_t, std::uint32_t>> forward, backward;
  for (std::uint64_t ticks = 1;; ++ticks) {
    auto forward_before = forward;
    auto backward_before = backward;
    bool moved = false;
    bool done = true;
    for (std::uint32_t s = 0; s < stages; ++s) {
      if (at[s] == todo[s].size())
        continue;
      done = false;
      work_item w = todo[s][at[s]];
      bool ready = true;
      if (w.kind == work_kind::forward)
        ready = s == 0 || forward_before.contains({s - 1, w.microbatch});
      if (w.kind == work_kind::input_gradient)
        ready =
          s + 1 == stages || backward_before.contains({s + 1, w.microbatch});
      if (!ready)
        continue;
      moved = true;
      ++at[s];
      if (w.kind == work_kind::forward)
        forward.insert({s, w.microbatch});
      if (w.kind == work_kind::input_gradient)
        backward.insert({s, w.microbatch});
    }
    if (done)
      return ticks - 1;
    if (!moved)
      return 0;
  }
}

} // namespace

BOOST_AUTO_TEST_SUITE(schedule)

BOOST_AUTO_TEST_CASE(every_kind_runs_once_per_microbatch_in_ascending_order) {
  for (std::uint32_t stages = 1; stages <= 6; ++stages)
    for (std::uint32_t s = 0; s < stages; ++s)
      for (std::uint32_t count = 0; count <= 9; ++count) {
        std::map<work_kind, std::vector<std::uint32_t>> seen;
        for (const work_item& w : make_schedule(s, stages, 3, 3 + count)) {
          seen[w.kind].push_back(w.microbatch);
          if (w.kind != work_kind::forward) // S-2
            BOOST_TEST(seen[work_kind::forward].size() >= seen[w.kind].size());
          BOOST_TEST(seen[work_kind::input_gradient].size()
                     >= seen[work_kind::weight_gradient].size());
        }
        for (auto& [kind, order] : seen) {
          BOOST_TEST(order.size() == count);
          for (std::uint32_t i = 0; i < order.size(); ++i)
            BOOST_TEST(order[i] == 3 + i); // S-1
        }
      }
}

BOOST_AUTO_TEST_CASE(no_more_microbatches_live_than_stated) {
  for (std::uint32_t stages = 1; stages <= 6; ++stages)
    for (std::uint32_t s = 0; s < stages; ++s)
      for (std::uint32_t count = 1; count <= 9; ++count) {
        std::uint32_t live = 0, most = 0;
        for (const work_item& w : make_schedule(s, stages, 0, count)) {
          live += w.kind == work_kind::forward;
          live -= w.kind == work_kind::weight_gradient;
          most = std::max(most, live);
        }
        BOOST_TEST(most == live_microbatches_max(s, stages, count));
      }
}

BOOST_AUTO_TEST_CASE(stages_never_wait_for_each_other_for_ever) {
  for (std::uint32_t stages = 1; stages <= 8; ++stages)
    for (std::uint32_t count = 1; count <= 12; ++count) {
      std::uint64_t ticks = play(stages, 0, count);
      BOOST_TEST(ticks > 0u);
      // Fill, drain, and three items for each microbatch.
      BOOST_TEST(ticks <= 3 * (count + 2 * stages));
    }
}

BOOST_AUTO_TEST_CASE(evaluation_runs_forward_only) {
  auto items = make_forward_schedule(2, 5);
  BOOST_REQUIRE(items.size() == 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    BOOST_TEST((items[i].kind == work_kind::forward));
    BOOST_TEST(items[i].microbatch == 2 + i);
  }
}

BOOST_AUTO_TEST_SUITE_END()
