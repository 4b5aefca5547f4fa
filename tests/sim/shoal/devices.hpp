// tests/sim/shoal/devices.hpp -- a device queue whose work takes simulated time.
//
// One piece at a time, in order; a piece has its effect when its time is over.
// Whoever owns it says how long that is and calls finish() then.
#pragma once

#include "kernels/backend.hpp"
#include "runtime/device_queue.hpp"

#include <deque>
#include <functional>
#include <utility>

namespace shoal::sim {

class sim_queue final : public runtime::device_queue {
public:
  /// @param begin is told when a piece begins; finish() is to follow
  sim_queue(kernels::backend& device, std::function<void()> begin)
    : device_(device), begin_(std::move(begin)) {}

  void submit(work run, std::function<void()> done) override {
    if (closed_) {
      if (done)
        done();
      return;
    }
    pieces_.push_back({std::move(run), std::move(done)});
    if (pieces_.size() == 1 && !running_)
      begin_();
  }

  /// The process has died: no work has effect any more. Its end is told, so
  /// that actors which wait for it can end.
  void close() override {
    closed_ = true;
    for (const piece& p : std::exchange(pieces_, {}))
      if (p.done)
        p.done();
  }

  void finish() {
    if (pieces_.empty())
      return;
    piece now = std::move(pieces_.front());
    pieces_.pop_front();
    running_ = true;
    if (now.run)
      now.run(device_);
    if (now.done)
      now.done();
    running_ = false;
    if (!pieces_.empty())
      begin_();
  }

  std::size_t waiting() const noexcept { return pieces_.size(); }

private:
  struct piece {
    work run;
    std::function<void()> done;
  };
  kernels::backend& device_;
  std::function<void()> begin_;
  std::deque<piece> pieces_;
  bool running_ = false;
  bool closed_ = false;
};

} // namespace shoal::sim
