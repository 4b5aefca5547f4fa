// runtime/work/device_queue.cpp -- a thread that sleeps until there is work.
#include "runtime/work/device_queue.hpp"

#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/host/host_limits.hpp"
#include "runtime/work/cut_backend.hpp"

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

/// Nanoseconds for which more urgent work is expected after the last.
constexpr std::int64_t urgent_expected = 10'000'000'000;

class thread_device final : public device_queue,
                            private cut_backend::urgent_work {
public:
  /// `team` may be null; the backend uses it until it is destroyed.
  thread_device(std::unique_ptr<kernels::thread_team> team,
                std::unique_ptr<kernels::backend> backend, const char* name)
    : team_(std::move(team)), backend_(std::move(backend)),
      thread_([this] { serve(); }) {
    pthread_setname_np(thread_.native_handle(), name);
  }

  ~thread_device() override { close(); }

  void
  submit_pass(segments run, std::function<void()> done, label what) override {
    std::lock_guard lock(mutex_);
    if (closing_)
      return;
    SHOAL_ASSERT(usual_.size() + urgent_.size() < queue_max);
    const bool urgent = what.how == urgency::urgent;
    if (urgent) {
      urgent_waits_ = true;
      last_urgent_ = now();
    }
    if (!running_ && (urgent ? urgent_.empty() : !waiting()))
      front_ = {now(), what.job};
    (urgent ? urgent_ : usual_)
      .push_back({std::move(run), std::move(done), what});
    wake_.notify_one();
  }

  piece_in_front front() const override {
    std::lock_guard lock(mutex_);
    return front_;
  }

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
    segments run;
    std::function<void()> done;
    label what;
  };

  static std::int64_t now() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
  }

  bool waiting() const { return !urgent_.empty() || !usual_.empty(); }
  std::deque<piece>& first_class() {
    return urgent_.empty() ? usual_ : urgent_;
  }

  piece take_next() {
    std::deque<piece>& from = first_class();
    piece next = std::move(from.front());
    from.pop_front();
    urgent_waits_ = !urgent_.empty();
    running_ = true;
    return next;
  }

  bool comes() const noexcept override {
    return last_urgent_ != 0 && now() - last_urgent_ < urgent_expected;
  }

  /// In a call of usual work, on the device's thread.
  void run() override {
    if (!urgent_waits_)
      return;
    std::unique_lock lock(mutex_);
    const core::job_id interrupted = front_.job;
    while (!urgent_.empty()) {
      piece next = take_next();
      front_ = {now(), next.what.job};
      lock.unlock();
      while (next.run && next.run(*backend_)) {
      }
      if (next.done)
        next.done();
      next = {};
      lock.lock();
    }
    front_ = {now(), interrupted};
  }

  /// Whether a piece gives the device back between two segments (D-1).
  bool yields(const piece& now_running) const {
    if (now_running.what.how == urgency::urgent)
      return false;
    std::lock_guard lock(mutex_);
    return !urgent_.empty();
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return closing_ || waiting(); });
      if (!waiting())
        return;
      piece next = take_next();
      lock.unlock();
      kernels::backend& with =
        next.what.how == urgency::urgent ? *backend_ : cut_;
      bool more = next.run && next.run(with);
      while (more && !yields(next))
        more = next.run(with);
      if (!more) {
        if (next.done)
          next.done();
        next = {};
      }
      lock.lock();
      if (more)
        usual_.push_front(std::move(next)); // D-3
      running_ = false;
      front_ = waiting() ? piece_in_front{now(), first_class().front().what.job}
                         : piece_in_front{};
    }
  }

  std::unique_ptr<kernels::thread_team> team_;
  std::unique_ptr<kernels::backend> backend_;
  cut_backend cut_{*backend_, *this};
  std::atomic<bool> urgent_waits_ = false;
  std::atomic<std::int64_t> last_urgent_ = 0; ///< when it came; 0: never
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<piece> urgent_, usual_;
  bool closing_ = false;
  bool running_ = false;
  piece_in_front front_; ///< what runs, or is next
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
