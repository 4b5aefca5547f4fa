// runtime/work/serial.cpp -- the queue of events.
#include "runtime/work/serial.hpp"

#include <memory>
#include <utility>

namespace shoal::runtime {

void serial::post(event e) {
  std::unique_lock lock(mutex_);
  events_.push_back(std::move(e));
  if (!running_)
    drain(lock);
}

void serial::run(event e) {
  std::unique_lock lock(mutex_);
  if (running_ && runner_ == std::this_thread::get_id()) {
    events_.push_back(std::move(e));
    return;
  }
  auto done = std::make_shared<bool>(false);
  events_.push_back([this, done, e = std::move(e)] {
    e();
    std::lock_guard again(mutex_);
    *done = true;
    ran_.notify_all();
  });
  if (!running_)
    drain(lock);
  ran_.wait(lock, [&] { return *done; });
}

void serial::drain(std::unique_lock<std::mutex>& lock) {
  running_ = true;
  runner_ = std::this_thread::get_id();
  while (!events_.empty()) {
    event e = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    e();
    e = nullptr; // release what it held before locking again
    lock.lock();
  }
  running_ = false;
  runner_ = {};
}

} // namespace shoal::runtime
