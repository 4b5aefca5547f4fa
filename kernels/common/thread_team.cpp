// kernels/common/thread_team.cpp -- a fork-join pool with a short spin.
//
// A run has a generation number. The caller publishes the run, raises
// `generation` and wakes the workers; all take task numbers from one counter.
// A worker joins a run by raising `inside`, and only while `open` says that
// the run has not ended, so a late worker never sees memory of a past run.
#include "kernels/common/thread_team.hpp"

#include "kernels/common/check.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace shoal::kernels {

namespace {

/// A round of spinning is some 40-140 cycles (pause), so a thread spins for
/// 20-50 us: longer than the gap between two operations of a block, shorter
/// by far than a scheduler's time slice. Higher means faster joins at the cost
/// of cycles that other processes on the machine could use.
constexpr int spin_rounds = 1000;

/// The team whose task this thread is running, and this thread's worker number.
thread_local const void* team_now = nullptr;
thread_local unsigned worker_now = 0;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Waits until `value` is no longer `old`.
void wait_changed(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int i = 0; i != spin_rounds; ++i) {
    if (value.load(std::memory_order_acquire) != old)
      return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

} // namespace

struct thread_team::state {
  std::mutex one_caller;
  std::vector<std::thread> workers;

  // The run in progress; written by the caller while no worker is inside.
  task_function run = nullptr;
  void* context = nullptr;
  std::size_t count = 0;

  alignas(64) std::atomic<std::size_t> next{0};
  alignas(64) std::atomic<std::uint32_t> generation{0};
  alignas(64) std::atomic<std::uint32_t> inside{0}; // open_bit + workers
  std::atomic<bool> ending{false};

  /// Set in `inside` while a run may be joined.
  static constexpr std::uint32_t open_bit = 1u << 31;

  void take_tasks(unsigned worker) {
    auto* team_before = std::exchange(team_now, this);
    auto worker_before = std::exchange(worker_now, worker);
    for (;;) {
      auto task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= count)
        break;
      run(context, task, worker);
    }
    team_now = team_before;
    worker_now = worker_before;
  }

  bool join() {
    auto seen = inside.load(std::memory_order_acquire);
    while (seen & open_bit)
      if (inside.compare_exchange_weak(seen, seen + 1,
                                       std::memory_order_acq_rel))
        return true;
    return false;
  }

  void leave() {
    // The last one out of a closed run wakes the caller.
    if (inside.fetch_sub(1, std::memory_order_acq_rel) == 1)
      inside.notify_one();
  }

  void work(unsigned worker) {
    std::uint32_t seen = 0;
    while (!ending.load(std::memory_order_acquire)) {
      wait_changed(generation, seen);
      seen = generation.load(std::memory_order_acquire);
      if (join()) {
        take_tasks(worker);
        leave();
      }
    }
  }

  void start(unsigned threads) {
    generation.store(0, std::memory_order_relaxed);
    ending.store(false, std::memory_order_relaxed);
    workers.reserve(threads - 1);
    try {
      for (unsigned i = 1; i != threads; ++i)
        workers.emplace_back([this, i] { work(i); });
    } catch (...) {
      stop();
      throw;
    }
  }

  void stop() {
    ending.store(true, std::memory_order_release);
    generation.fetch_add(1, std::memory_order_acq_rel);
    generation.notify_all();
    for (auto& worker : workers)
      worker.join();
    workers.clear();
  }
};

thread_team::thread_team(unsigned threads) : state_(std::make_unique<state>()) {
  SHOAL_KERNEL_ASSERT(threads >= 1 && threads <= threads_max);
  state_->start(threads);
}

thread_team::~thread_team() {
  state_->stop();
}

unsigned thread_team::size() const noexcept {
  return static_cast<unsigned>(state_->workers.size()) + 1;
}

void thread_team::resize(unsigned threads) {
  SHOAL_KERNEL_ASSERT(threads >= 1 && threads <= threads_max);
  std::lock_guard guard{state_->one_caller};
  state_->stop();
  state_->start(threads);
}

void thread_team::run_erased(std::size_t count, task_function run,
                             void* context) {
  if (team_now == state_.get()) {
    for (std::size_t task = 0; task != count; ++task)
      run(context, task, worker_now);
    return;
  }
  auto& s = *state_;
  std::lock_guard guard{s.one_caller};
  s.run = run;
  s.context = context;
  s.count = count;
  s.next.store(0, std::memory_order_relaxed);
  if (count < 2 || s.workers.empty()) {
    s.take_tasks(0);
    return;
  }
  s.inside.store(state::open_bit, std::memory_order_release);
  s.generation.fetch_add(1, std::memory_order_acq_rel);
  s.generation.notify_all();
  s.take_tasks(0);
  auto left = s.inside.fetch_and(~state::open_bit, std::memory_order_acq_rel)
              & ~state::open_bit;
  while (left != 0) {
    wait_changed(s.inside, left);
    left = s.inside.load(std::memory_order_acquire);
  }
}

} // namespace shoal::kernels
