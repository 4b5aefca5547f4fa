// runtime/node/state/node_life.cpp -- the reaper and its watchdog.
#include "runtime/node/state/node_life.hpp"

#include <utility>

namespace shoal::runtime {

node_life::node_life(life_handler& node, config c) : node_(node), config_(c) {
  reaper_ = std::thread([this] { reap(); });
  watchdog_ = std::thread([this] { watch(); });
}

node_life::~node_life() {
  if (reaper_.joinable()) {
    stop();
    reaper_.join();
    watchdog_.join();
  }
}

void node_life::started() {
  {
    std::lock_guard lock(mutex_);
    started_ = true;
  }
  changed_.notify_all();
}

void node_life::abandon() {
  end_parts();
  reaper_.join();
  watchdog_.join();
}

bool node_life::leave(std::chrono::milliseconds deadline) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    const clock::time_point end = clock::now() + deadline;
    if (!deadline_ || end < *deadline_)
      deadline_ = end;
    first = !std::exchange(leaving_, true);
  }
  changed_.notify_all();
  return first;
}

bool node_life::release() {
  std::lock_guard lock(mutex_);
  return leaving_ && !std::exchange(released_, true);
}

void node_life::left(bool clean) {
  {
    std::lock_guard lock(mutex_);
    ending_ = true; // even if work is unfinished: no other peer can agree to it
                    // here
    why_ = clean ? "left" : "left without the others' knowledge";
  }
  changed_.notify_all();
}

void node_life::fail(const std::string& why) {
  {
    std::lock_guard lock(mutex_);
    ending_ = at_once_ = true;
    failed_ = true;
    why_ = why;
  }
  changed_.notify_all();
}

void node_life::must_leave() {
  std::lock_guard lock(mutex_);
  must_leave_ = true;
}

void node_life::hang() {
  {
    std::lock_guard lock(mutex_);
    if (!hung_at_)
      hung_at_ = clock::now();
  }
  changed_.notify_all();
}

std::shared_ptr<life_sign> node_life::expect_sign(std::string part) {
  std::lock_guard lock(mutex_);
  return signs_.add(std::move(part));
}

void node_life::stop() {
  std::unique_lock lock(mutex_);
  ending_ = at_once_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return stopped_; });
}

bool node_life::wait_stopped(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return stopped_; });
}

bool node_life::failed() const {
  std::lock_guard lock(mutex_);
  return failed_ || must_leave_;
}

bool node_life::ending() const {
  std::lock_guard lock(mutex_);
  return ending_;
}

/// Waits for the end and carries it out; for a node that could not start
/// abandon() does that.
void node_life::reap() {
  std::string why;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return started_ || shutdown_at_; });
    if (!started_)
      return;
    while (!ending_) {
      if (!deadline_)
        changed_.wait(lock);
      else if (changed_.wait_until(lock, *deadline_) == std::cv_status::timeout
               && clock::now() >= *deadline_) {
        ending_ = true;
        why_ = "the deadline to leave is over";
      }
    }
    wait_while_needed(lock);
    // fail() has reported why the node fails: not reported twice.
    why = why_.empty() || failed_ ? "stopped" : why_;
  }
  end_parts();
  node_.stopped(why);
  std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

/// Before the parts end: afterwards none of them can be asked.
void node_life::wait_while_needed(std::unique_lock<std::mutex>& lock) {
  while (!at_once_ && deadline_ && clock::now() < *deadline_) {
    lock.unlock();
    const bool needed = node_.is_needed();
    lock.lock();
    if (!needed)
      return;
    changed_.wait_for(lock, config_.needed_every);
  }
}

void node_life::end_parts() {
  {
    std::lock_guard lock(mutex_);
    shutdown_at_ = clock::now();
    changed_.notify_all();
  }
  node_.end_parts();
  std::lock_guard lock(mutex_);
  down_ = true;
  changed_.notify_all();
}

void node_life::watch() {
  std::unique_lock lock(mutex_);
  const auto ends = [this] { return hung_at_ || shutdown_at_; };
  while (!changed_.wait_for(lock, config_.look_every, ends)) {
    const auto part = signs_.look(config_.silent_looks_max);
    if (!part)
      continue;
    hung_at_ = clock::now();
    ending_ = at_once_ = true;
    failed_ = true;
    changed_.notify_all();
    lock.unlock();
    node_.silent(*part);
    lock.lock();
  }
  const clock::time_point end = hung_at_ ? *hung_at_ + config_.hung_shutdown_max
                                         : *shutdown_at_ + config_.shutdown_max;
  if (changed_.wait_until(lock, end, [this] { return down_; }))
    return;
  lock.unlock();
  node_.hangs();
}

} // namespace shoal::runtime
