// runtime/core/cluster/local/stalled_members.hpp -- when a member that held up
// a job may come back.
//
// A member that answers but does no work is found by the jobs
// (core/training/stall_watch.hpp) and expelled by a view. It connects at once
// and asks to be admitted, since nothing tells a peer that was slow for once
// from one that always hangs; the latter would hold the job up again and again.
// So the view counts how often that has happened, and each member of the shoal
// that would admit the peer waits, from the view on, as long as the count says.
// Where a job waits for members nobody is kept out.
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

  /// For the views of another shoal, which have numbers of their own.
  void forget() { stalled_.clear(); }

  /// Reads a new view. A member that has just come, or come back, takes the
  /// peers that it finds out for just expelled.
  /// @returns the peers whose pause begins
  std::vector<peer_id> follow(const view& v, nanoseconds now);

  bool stays_out(const peer_id& peer, nanoseconds now) const;
  /// Whether it has been back for `memory`, as far as we know.
  bool was_well(const peer_id& peer, nanoseconds now) const;
  /// How long the view `v` keeps this peer out after an expulsion.
  nanoseconds pause_of(const view& v, const peer_id& peer) const;

private:
  struct stall {
    epoch since = 0; ///< the view that has expelled it
    nanoseconds until = 0;
    nanoseconds back_since = time_max; ///< time_max: it is out
  };

  stall_pauses pauses_;
  std::vector<assignment> (*plan_jobs_)(const view& v);
  std::map<peer_id, stall> stalled_; ///< those that the view counts
  bool jobs_wait_ = false; ///< for members; known while somebody is out so
};

/// Whether `planned` has a job that waits for members.
bool jobs_wait(const std::vector<assignment>& planned);

} // namespace shoal::core::cluster
