// runtime/node/state/node_life.hpp -- from a node's start to its end.
//
//   starting --started()--> running --leave()--> leaving
//      |                       |                    |
//      |                       +--left(), fail(), stop(), the deadline
//   abandon()                  v
//      +-------------> the parts end --> stopped
//
// Two threads wait from the start, so that the end needs no new one: the reaper
// ends the parts, and the watchdog acts if that hangs. The watchdog also looks
// at the signs of life of the parts, and ends the node if one of them does not
// run: the parts cannot do that for each other, because one of them may hold a
// lock for which the others wait. It waits for no lock but the one of this
// class, under which nothing is called.
//
// L-1: end_parts() is called once. L-2: stopped() is called once, after it, and
// only of a node that had started.
//
// Threads: any; the handler is called on the reaper's thread, but for
//          abandon(), which calls end_parts() on its caller's, and silent()
//          and hangs(), which the watchdog calls. No lock is held meanwhile.
#pragma once

#include "runtime/work/life_sign.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace shoal::runtime {

/// The node whose life it is.
class life_handler {
public:
  virtual ~life_handler() = default;
  /// The node has left, and its parts are there. @returns whether one of them is
  /// needed for a little longer: asked again and again, until the deadline to
  /// leave. Must not wait.
  virtual bool is_needed() { return false; }
  /// Ends the parts and waits until they have ended.
  virtual void end_parts() = 0;
  /// The node has ended.
  virtual void stopped(const std::string& why) = 0;
  /// A part gives no sign of life: the node ends. Must not wait for any part.
  virtual void silent(const std::string& part) = 0;
  /// The node has not ended in time, and will not. Must not wait for any part.
  virtual void hangs() = 0;
};

class node_life {
public:
  struct config {
    /// Time from the start of the end to its last line: after that a part that
    /// hangs cannot be trusted with data.
    std::chrono::milliseconds shutdown_max{15000};
    /// Time from hang() or silent() on: enough to write the flight record.
    std::chrono::milliseconds hung_shutdown_max{3000};
    /// How often a node that has left asks whether it is still needed.
    std::chrono::milliseconds needed_every{50};
    /// How often the watchdog looks at the signs of life.
    std::chrono::milliseconds look_every{1000};
    /// A part that has given no sign in this number of looks will not run
    /// again. A minute in all: the supervisor, which knows better what hangs,
    /// notices a job's actor sooner.
    int silent_looks_max = 60;
  };

  /// @param node outlives it
  explicit node_life(life_handler& node) : node_life(node, config()) {}
  node_life(life_handler& node, config c);
  ~node_life(); ///< As stop(), unless abandon() was called.

  /// All parts exist: from now on the reaper may end them.
  void started();
  /// The node could not start: ends the parts that exist.
  void abandon();

  /// @returns whether this is the first call; a later one may shorten the
  /// deadline.
  bool leave(std::chrono::milliseconds deadline);
  /// No job needs this node. @returns whether it is leaving and did not know
  /// that.
  bool release();
  /// The node is outside of the shoal; `clean`: the others know.
  void left(bool clean);
  /// The node cannot go on.
  void fail(const std::string& why);
  /// The node leaves since something is wrong with it: it ends as failed. Does
  /// not begin to leave by itself.
  void must_leave();
  /// Work hangs and will not end in order: fail() is to follow, but the process
  /// ends soon even if it does not.
  void hang();
  /// From now on the node ends if the result is not given as a sign at least
  /// every silent_looks_max looks. `part`: what a line calls it.
  std::shared_ptr<life_sign> expect_sign(std::string part);
  /// Ends the node as if it had been killed, and waits for its end.
  void stop();

  /// @returns whether the node has stopped within `timeout`.
  bool wait_stopped(std::chrono::milliseconds timeout);
  bool failed() const;
  bool ending() const;

private:
  using clock = std::chrono::steady_clock;
  void reap();
  void wait_while_needed(std::unique_lock<std::mutex>& lock);
  void watch();
  void end_parts();

  life_handler& node_;
  config config_;
  mutable std::mutex mutex_; ///< guards what follows
  std::condition_variable changed_;
  bool started_ = false;
  bool leaving_ = false;
  bool released_ = false;
  bool ending_ = false;  ///< the reaper has to act
  bool at_once_ = false; ///< even if it is needed
  bool failed_ = false;
  bool must_leave_ = false;
  bool stopped_ = false;
  std::string why_;
  std::optional<clock::time_point> deadline_; ///< of leaving
  std::optional<clock::time_point> shutdown_at_;
  std::optional<clock::time_point> hung_at_;
  life_signs signs_;
  bool down_ = false; ///< the parts have ended
  std::thread reaper_;
  std::thread watchdog_;
};

} // namespace shoal::runtime
