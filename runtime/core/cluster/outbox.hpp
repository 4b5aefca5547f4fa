// runtime/core/cluster/outbox.hpp -- what a peer may send while it writes.
//
// Stands between the core and its shell. A write to disk takes time, seconds on
// a bad day, and a peer that does not answer heartbeats meanwhile is taken for
// dead. So records are written one after another, and the core goes on
// meanwhile. Messages that could reveal an unwritten record wait: votes, views,
// keys. Others pass: heartbeats (with the number of the stored view), opinions
// about other members, timers, dials. To the core, a held message looks like
// one that the network delays.
//
// A newer record of the same kind replaces one that still waits, since it says
// more; so a disk that is slower than the votes is never more than a few
// records behind. A failed write is repeated, and until it succeeds nothing
// that depends on it is sent: the peer withholds its votes and stays a member.
//
// Invariants
// O-1: an action after a record is carried out only when that record, or one
//      that says more, is stored; actions keep their order.
// O-2: a vote never reaches the disk before the view that it succeeds, nor
//      while the disk has another view with a vote that it would overwrite.
#pragma once

#include "runtime/core/cluster/events.hpp"

#include <deque>
#include <optional>

namespace shoal::core::cluster {

/// The most messages that wait for a disk; further ones are lost, as in a
/// network. Most contain a view, usually a few KB.
inline constexpr std::size_t held_sends_max = 512;

class outbox {
public:
  using write = std::variant<record, erase_history>;

  /// @param stored the records that the core was started with
  explicit outbox(const history& stored);

  /// Takes the core's next action; appends the actions to carry out now.
  void take(action a, actions& out);

  /// The next record to write; none while a write is in progress.
  std::optional<write> next();

  /// Reports how the write from next() ended. If it failed, next() returns the
  /// same record, or one that replaced it; the shell pauses before it.
  void written(bool stored, actions& out);

  bool holds() const { return !writes_.empty(); }

private:
  struct entry {
    write what;
    std::uint64_t first = 0; ///< number of the oldest record that this one
                             ///< replaces
  };
  struct held {
    std::uint64_t after = 0; ///< number of the newest record before it
    action what;
  };

  void add(write w);
  bool replaced(const write& w);
  void overtake(const view_record& v, std::uint64_t& first);
  bool passes(const action& a, actions& out) const;
  void hold(action a);
  void release(actions& out);

  std::deque<entry> writes_; ///< in order
  bool busy_ = false;        ///< the first is being written
  std::deque<held> held_;
  std::size_t held_sends_ = 0;
  std::uint64_t last_ = 0; ///< number of the newest record
  bool has_view_ = false;
  shoal_id shoal_{}; ///< of the stored view
  epoch number_ = 0;
};

} // namespace shoal::core::cluster
