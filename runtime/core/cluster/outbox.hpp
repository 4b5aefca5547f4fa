// runtime/core/cluster/outbox.hpp -- what a peer may say while it writes.
//
// Stands between the core and its shell, since a write to disk takes its time,
// seconds on a bad day, and who does not answer heartbeats meanwhile is taken
// for dead. So records are written one after another beside the core, and what
// could tell of them waits: votes, views, keys. What tells of none passes:
// heartbeats (with the number of the view that is stored), opinions on others,
// timers, dials. To the core a held message is one that the network delays.
//
// A record that waits is overtaken by a newer one of its kind, which says more;
// so a disk that is slower than the votes is never more than a few behind. A
// write that failed is done again, and until then nothing is told that depends
// on it: the peer withholds its votes, and stays a member.
//
// Invariants
// O-1: what came after a record is carried out after that, or one that says
//      more, is stored; in order.
// O-2: a vote never reaches the disk before the view that it succeeds, nor
//      while another view is there whose vote it would overwrite.
#pragma once

#include "runtime/core/cluster/events.hpp"

#include <deque>
#include <optional>

namespace shoal::core::cluster {

/// Messages that wait for a disk; those over it are lost, as in a network. Most
/// hold a view, which is mostly some KB.
inline constexpr std::size_t held_sends_max = 512;

class outbox {
public:
  using write = std::variant<record, erase_history>;

  /// @param stored what the core was started with
  explicit outbox(const history& stored);

  /// Takes the core's next action; appends what is to be carried out now.
  void take(action a, actions& out);

  /// What is to be written now; none while something is being written.
  std::optional<write> next();

  /// How the write that next() gave has ended. If it has failed, it, or what
  /// has overtaken it, is next again: after a pause, which is the shell's.
  void written(bool stored, actions& out);

  bool holds() const { return !writes_.empty(); }

private:
  struct entry {
    write what;
    std::uint64_t first = 0; ///< number of the oldest record that it stands for
  };
  struct held {
    std::uint64_t after = 0; ///< the newest record before it
    action what;
  };

  void add(write w);
  bool replaced(const write& w);
  void overtake(const view_record& v, entry& by);
  bool passes(const action& a, actions& out) const;
  void hold(action a);
  void release(actions& out);

  std::deque<entry> writes_; ///< in their order
  bool busy_ = false;        ///< the first is being written
  std::deque<held> held_;
  std::size_t held_sends_ = 0;
  std::uint64_t last_ = 0; ///< number of the newest record
  bool has_view_ = false;
  shoal_id shoal_{}; ///< of the stored view
  epoch number_ = 0;
};

} // namespace shoal::core::cluster
