// tests/kernels/thread_team_test.cpp -- the fork-join pool.
#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

namespace shoal::tests {

BOOST_AUTO_TEST_SUITE(team)

using kernels::thread_team;

BOOST_AUTO_TEST_CASE(every_task_runs_once) {
  for (unsigned threads : {1u, 2u, 5u}) {
    thread_team team{threads};
    BOOST_TEST(team.size() == threads);
    for (std::size_t count : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> runs(count);
      team.run(count, [&](std::size_t task, unsigned worker) {
        if (worker < threads)
          ++runs[task];
      });
      for (auto& run : runs)
        BOOST_TEST(run == 1);
    }
  }
}

// A worker that comes late to a run must not touch the next one's memory.
BOOST_AUTO_TEST_CASE(many_short_runs_lose_no_task) {
  thread_team team{4};
  std::size_t total = 0;
  for (std::size_t i = 0; i != 5000; ++i) {
    std::size_t results[3] = {};
    team.run(3, [&](std::size_t task, unsigned) { results[task] = i + task; });
    total += results[0] + results[1] + results[2] - 3 * i - 3;
  }
  BOOST_TEST(total == 0u);
}

BOOST_AUTO_TEST_CASE(a_run_inside_a_task_runs_there) {
  thread_team team{3};
  std::atomic<int> runs = 0;
  std::atomic<int> strangers = 0;
  team.run(5, [&](std::size_t, unsigned outer) {
    auto here = std::this_thread::get_id();
    team.run(4, [&](std::size_t, unsigned inner) {
      ++runs;
      if (std::this_thread::get_id() != here || inner != outer)
        ++strangers;
    });
  });
  BOOST_TEST(runs == 20);
  BOOST_TEST(strangers == 0);
}

BOOST_AUTO_TEST_CASE(two_callers_take_turns) {
  thread_team team{2};
  std::atomic<int> runs = 0;
  auto call = [&] {
    for (int i = 0; i != 500; ++i)
      team.run(4, [&](std::size_t, unsigned) { ++runs; });
  };
  std::thread other{call};
  call();
  other.join();
  BOOST_TEST(runs == 4000);
}

BOOST_AUTO_TEST_CASE(a_team_can_be_resized) {
  thread_team team{1};
  for (unsigned threads : {4u, 1u, 2u}) {
    team.resize(threads);
    std::atomic<int> runs = 0;
    team.run(9, [&](std::size_t, unsigned) { ++runs; });
    BOOST_TEST(runs == 9);
    BOOST_TEST(team.size() == threads);
  }
}

// The product is large enough that oneDNN would start threads if it might.
BOOST_AUTO_TEST_CASE(onednn_starts_no_threads_of_its_own) {
  auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         std::filesystem::directory_iterator());
  };
  auto before = threads();
  thread_team team{2};
  auto cpu = kernels::make_cpu_backend(team);
  const std::vector<float> x(512 * 512), w(512 * 512);
  std::vector<float> y(512 * 512);
  cpu->matmul({y.data(), 512, 512}, {x.data(), 512, 512}, {w.data(), 512, 512});
  BOOST_TEST(threads() == before + 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::tests
