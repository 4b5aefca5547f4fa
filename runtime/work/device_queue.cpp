// runtime/work/device_queue.cpp -- a thread that sleeps until there is work.
#include "runtime/work/device_queue.hpp"

#include "kernels/backend.hpp"
#include "kernels/thread_team.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/host/host_limits.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace shoal::runtime {

namespace {

class thread_device final : public device_queue {
public:
  /// `team` may be null; the backend uses it until it is destroyed.
  thread_device(std::unique_ptr<kernels::thread_team> team,
                std::unique_ptr<kernels::backend> backend, const char* name)
    : team_(std::move(team)), backend_(std::move(backend)),
      thread_([this] { serve(); }) {
    pthread_setname_np(thread_.native_handle(), name);
  }

  ~thread_device() override { close(); }

  void submit(work run, std::function<void()> done) override {
    std::lock_guard lock(mutex_);
    if (closing_)
      return;
    SHOAL_ASSERT(queue_.size() < queue_max);
    if (queue_.empty() && !running_)
      busy_since_ = now();
    queue_.push_back({std::move(run), std::move(done)});
    wake_.notify_one();
  }

  std::int64_t busy_since() const override { return busy_since_; }

  void close() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
      wake_.notify_one();
    }
    std::lock_guard one(close_mutex_);
    SHOAL_ASSERT(std::this_thread::get_id() != thread_.get_id());
    if (thread_.joinable())
      thread_.join();
  }

private:
  struct piece {
    work run;
    std::function<void()> done;
  };

  static std::int64_t now() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty())
        return;
      piece next = std::move(queue_.front());
      queue_.pop_front();
      running_ = true;
      lock.unlock();
      if (next.run)
        next.run(*backend_);
      if (next.done)
        next.done();
      next = {};
      lock.lock();
      running_ = false;
      busy_since_ = queue_.empty() ? 0 : now();
    }
  }

  std::unique_ptr<kernels::thread_team> team_;
  std::unique_ptr<kernels::backend> backend_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<piece> queue_;
  bool closing_ = false;
  bool running_ = false;
  std::atomic<std::int64_t> busy_since_{0};
  std::mutex close_mutex_;
  std::thread thread_; // last: it uses all of the above
};

} // namespace

std::unique_ptr<device_queue> make_cpu_device(int threads, const char* name) {
  const unsigned wanted = threads > 0
                            ? static_cast<unsigned>(threads)
                            : unsigned(usable_threads(read_host_limits()));
  auto team = std::make_unique<kernels::thread_team>(
    std::clamp(wanted, 1u, kernels::thread_team::threads_max));
  auto backend = kernels::make_cpu_backend(*team);
  return std::make_unique<thread_device>(std::move(team), std::move(backend),
                                         name);
}

std::unique_ptr<device_queue> make_io_device(const char* name) {
  return std::make_unique<thread_device>(
    nullptr, kernels::make_reference_backend(), name);
}

} // namespace shoal::runtime
