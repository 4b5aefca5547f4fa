// runtime/node/profile_keeper.hpp -- speed of this node, as observed during
// work.
//
// Feeds core::profile_watch: with the times of jobs' steps on the device,
// compared to those that the current plan expects, and with the speed of links
// to other members. Networks are named "host" (members of this machine) and
// otherwise by the fabric that links use; of several peers the median counts.
//
// Threads: any. Cost: the expected time is computed once for each view and job.
#pragma once

#include "runtime/core/measure/profile_watch.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/links/links.hpp"

#include <memory>
#include <mutex>

namespace shoal::runtime {

class profile_keeper {
public:
  profile_keeper(const core::peer_id& self,
                 const core::device_profile& measured_at_start);

  /// A step of the island kept the device busy for this time.
  void step(core::nanoseconds now, const std::shared_ptr<const core::view>& v,
            const std::shared_ptr<const core::plan>& p,
            const core::island_id& id, core::nanoseconds busy);

  /// A peer, and the fabric that its links use.
  struct used_link {
    core::peer_id peer{};
    std::string fabric;
  };
  /// The throughput of links, and whether a job trains at all. Called again and
  /// again.
  void links(core::nanoseconds now, const core::view& v,
             const std::vector<used_link>& used,
             const std::vector<link_hub::link_stat>& stats);

  void disk(std::uint64_t bytes, bool refused);

  std::optional<core::profile_watch::proposal> take(core::nanoseconds now);

private:
  struct expectation {
    std::shared_ptr<const core::view> view;
    core::nanoseconds busy = 0; ///< 0: none
    std::uint64_t mflops = 0;   ///< from which `busy` was computed
    core::epoch since = 0;      ///< of the island's place
  };

  const core::peer_id self_;
  std::mutex mutex_; ///< guards what follows
  core::profile_watch watch_;
  std::map<core::job_id, expectation> expected_; ///< of running jobs
};

} // namespace shoal::runtime
