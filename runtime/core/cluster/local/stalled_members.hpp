// runtime/core/cluster/local/stalled_members.hpp -- when a member that held up
// a job may come back.
//
// Jobs find a member that answers but does no work
// (core/training/stall_watch.hpp), and a view expels it. It connects at once
// and asks to be admitted. Nothing distinguishes a peer that was slow once from
// one that always hangs and would hold the job up again and again. So the view
// counts these expulsions. Each member that could admit the peer waits,
// starting with that view, for a time that grows with the count. While a job
// waits for members, every peer is admitted.
#pragma once

#include "runtime/core/random.hpp"
#include "runtime/core/view.hpp"

#include <map>
#include <vector>

namespace shoal::core::cluster {

/// The first pause, doubled each time up to the longest; a peer that has been
/// back for `memory` begins with the first one again.
struct stall_pauses {
  nanoseconds first = 0;
  nanoseconds longest = 0;
  nanoseconds memory = 0;
};

class stalled_members {
public:
  /// @param plan_jobs the assignments that a view leads to; null: not known
  stalled_members(stall_pauses pauses,
                  std::vector<assignment> (*plan_jobs)(const view& v))
    : pauses_(pauses), plan_jobs_(plan_jobs) {}

  /// Drops all counts: the views of another shoal have numbers of their own.
  void forget() { stalled_.clear(); }

  /// Reads a new view. A member that has just joined or come back assumes that
  /// the peers in its list were expelled just now.
  /// @returns the peers whose pause begins
  std::vector<peer_id> follow(const view& v, nanoseconds now);

  bool stays_out(const peer_id& peer, nanoseconds now) const;
  /// Whether the peer has been back for `memory`, as far as we know.
  bool was_well(const peer_id& peer, nanoseconds now) const;
  /// How long view `v` keeps this peer out after an expulsion.
  nanoseconds pause_of(const view& v, const peer_id& peer) const;

private:
  struct stall {
    epoch since = 0; ///< the number of the view that expelled it
    nanoseconds until = 0;
    nanoseconds back_since = time_max; ///< time_max: it is out
  };

  stall_pauses pauses_;
  std::vector<assignment> (*plan_jobs_)(const view& v);
  std::map<peer_id, stall> stalled_; ///< peers with a count in the view
  bool jobs_wait_ = false; ///< a job waits for members; known while a counted
                           ///< peer is out
};

/// Whether `planned` has a job that waits for members.
bool jobs_wait(const std::vector<assignment>& planned);

} // namespace shoal::core::cluster
