// runtime/work/serial.hpp -- events one at a time, without a thread of their own.
//
// Whoever posts an event while none runs, runs it, and those that others post
// meanwhile; the others go on at once. So state that only events touch needs
// no lock, and no lock is held while an event calls out.
//
// Threads:   any; post() may be called from an event.
// Ownership: the caller keeps the serial alive during post() and run().
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace shoal::runtime {

class serial {
public:
  using event = std::function<void()>;

  void post(event e);

  /// As post(), and waits until the event has run; from an event: does not.
  void run(event e);

private:
  void drain(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable ran_;
  std::deque<event> events_;
  bool running_ = false;
  std::thread::id runner_;
};

} // namespace shoal::runtime
