// runtime/work/serial.hpp -- events one at a time, without a thread of their
// own.
//
// A caller that posts an event while none runs, runs it, and also those that
// others post meanwhile; the others continue at once. So state that only events
// use needs no lock, and no lock is held while an event calls out.
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

  /// Like post(), but waits until the event has run; from an event it does not
  /// wait.
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
