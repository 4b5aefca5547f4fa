// tests/sim/shoal/devices.hpp -- a device queue whose work takes simulated
// time, and memory that is counted.
//
// One piece at a time, in order, urgent ones first; a piece has its effect when
// its time is over. A pass is one piece, unless the owner says that urgent work
// comes between two of its segments. The owner determines the time of each piece
// and calls finish() then. A piece may hang: its end is held back, and the queue
// is busy meanwhile.
#pragma once

#include "kernels/backend.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory_resource>
#include <utility>

namespace shoal::sim {

class sim_queue final : public runtime::device_queue {
public:
  /// @param begin is called when a piece begins; finish() has to follow
  /// @param now the time
  sim_queue(kernels::backend& device, std::function<void()> begin,
            std::function<std::int64_t()> now)
    : device_(device), begin_(std::move(begin)), now_(std::move(now)) {}

  void
  submit_pass(segments run, std::function<void()> done, label what) override {
    if (closed_) {
      if (done)
        done();
      return;
    }
    auto place = pieces_.end();
    if (what.how == runtime::urgency::urgent)
      place = first_usual(pieces_.begin() + (begun() ? 1 : 0));
    pieces_.insert(place, {std::move(run), std::move(done), what});
    if (pieces_.size() == 1 && !running_)
      begin();
  }

  /// Asked after each segment of a usual pass that goes on: whether urgent work
  /// has come, for which it gives the device back (D-1, D-3).
  void interrupt_when(std::function<bool()> comes) {
    urgent_comes_ = std::move(comes);
  }

  piece_in_front front() const override {
    if (pieces_.empty() || hidden_)
      return {};
    return {since_, pieces_.front().what.job};
  }
  /// From now on front() does not show how long a piece takes.
  void hide() { hidden_ = true; }

  /// The process has died: no work has an effect any more. Its end is reported,
  /// so that actors that wait for it can end.
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
    bool more = false;
    do
      more = now.run && now.run(device_);
    while (more && !interrupted(now));
    if (more) {
      pieces_.insert(first_usual(pieces_.begin()), std::move(now));
      pieces_.push_front({{}, {}, {0, runtime::urgency::urgent}});
    } else if (now.done) {
      now.done();
    }
    running_ = false;
    if (!pieces_.empty())
      begin();
  }

  /// The current piece, or the next one, does not end before wake().
  void hang() { hangs_ = true; }
  /// A hang that has not begun is cancelled.
  void settle() { hangs_ = hangs_ && !pieces_.empty(); }
  /// @returns whether a piece should have ended by now: finish() has to follow
  bool wake() {
    hangs_ = false;
    return std::exchange(held_, false);
  }
  bool hangs() const noexcept { return held_; }
  /// Whether the end of a piece that is due waits for wake().
  bool hold() { return held_ = hangs_; }

  std::size_t waiting() const noexcept { return pieces_.size(); }

private:
  struct piece {
    segments run;
    std::function<void()> done;
    label what;
  };
  /// The first usual piece from there on.
  std::deque<piece>::iterator first_usual(std::deque<piece>::iterator from) {
    return std::find_if(from, pieces_.end(), [](const piece& p) {
      return p.what.how != runtime::urgency::urgent;
    });
  }
  bool interrupted(const piece& p) const {
    return p.what.how == runtime::urgency::usual && urgent_comes_
           && urgent_comes_();
  }
  /// Whether the first of pieces_ has begun.
  bool begun() const { return !pieces_.empty() && !running_; }
  void begin() {
    since_ = now_();
    begin_();
  }

  kernels::backend& device_;
  std::function<void()> begin_;
  std::function<std::int64_t()> now_;
  std::function<bool()> urgent_comes_;
  std::int64_t since_ = 0;
  bool hangs_ = false;
  bool held_ = false;
  bool hidden_ = false;
  std::deque<piece> pieces_;
  bool running_ = false;
  bool closed_ = false;
};

/// Memory of one process, counted.
class counted_memory final : public std::pmr::memory_resource {
public:
  std::size_t bytes() const noexcept { return bytes_; }

private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    bytes_ += bytes;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void
  do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
    bytes_ -= bytes;
    std::pmr::new_delete_resource()->deallocate(p, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
  std::size_t bytes_ = 0;
};

} // namespace shoal::sim
