// tests/sim/checker.hpp -- invariants of all decided views.
#pragma once

#include "runtime/core/cluster/events.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace shoal::sim {

/// Observes every vote as it is cast and every view as it is first used.
class checker {
public:
  void saw_vote(const core::peer_id& by, const core::cluster::vote_record& v);
  void saw_view(const core::peer_id& by, const core::view& v);
  /// Some peer lists the job as running. Another may know that it has ended.
  void acknowledged(core::job_id job) {
    if (!ended_.contains(job))
      jobs_.insert(job);
  }
  void ended(core::job_id job) {
    ended_.insert(job);
    jobs_.erase(job);
  }

  /// Empty while all invariants hold; else the first violation.
  const std::string& failure() const { return failure_; }
  void fail(std::string what);

  /// The newest decided view of a shoal.
  const core::view* tip(const core::shoal_id& shoal) const;
  const std::set<core::job_id>& jobs() const { return jobs_; }
  std::uint64_t views() const { return views_; }
  std::uint64_t merges() const { return merges_; }
  std::uint64_t scalings() const { return scalings_; }

private:
  void check_successor(const core::peer_id& by, const core::view& tip,
                       const core::view& v);
  void check_scaling(const std::string& where, const core::view& tip,
                     const core::view& v);
  void check_admission(const std::string& where, const core::view& tip,
                       const core::view& v);

  struct ballot_votes {
    core::view value;
    std::vector<core::peer_id> by;
  };
  using base = std::pair<core::shoal_id, core::epoch>;
  std::map<base, std::map<core::cluster::ballot, ballot_votes>> votes_;
  std::map<core::shoal_id, std::map<core::epoch, core::view>> chains_;
  std::set<core::job_id> jobs_;
  std::set<core::job_id> ended_;
  std::set<core::job_id> gone_; ///< removed from some shoal's list
  std::string failure_;
  std::uint64_t views_ = 0;
  std::uint64_t merges_ = 0;
  std::uint64_t scalings_ = 0;
};

} // namespace shoal::sim
