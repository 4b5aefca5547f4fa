// tests/sim/job/job_sim.hpp -- one job on up to eight peers, by seed.
//
// A central oracle makes the views (the real planner makes the plans) and tells
// each peer after a separate delay. The state of a unit is a hash that every
// applied step mixes with its gradients. Peers crash, return and join at any
// moment, also while others seal and fetch; messages between two peers keep
// their order; in some seeds messages are lost too, as on a link that is down.
//
// Checked: committed steps form one chain, and only lost_state may cut it; no
// committed step is lost that the sealers could still reach; equal versions
// have equal hashes everywhere; each peer reports a step once and in order;
// when the faults stop, the job ends and leaves nothing behind.
//
// In a quarter of the seeds state is corrupted at one holder: the difference
// must be noticed with the next digests, and repaired.
//
// Disks refuse parts of checkpoints, and a checkpoint may be damaged in all
// stores. Any peers may die together; all return with their disks. No more
// steps are run again than an interval has, or than the newest checkpoint lacks
// of which a sealer has heard.
//
// In half of the seeds state is so large that units arrive while steps run:
// copies sometimes take long, and sources give up sending.
#pragma once

#include <cstdint>
#include <string>

namespace shoal::sim {

struct job_sim_result {
  bool ok = false;
  std::string error; ///< the first broken check
  /// A hash of the whole run: events, losses, norms, state.
  std::uint64_t trace = 0;
  std::uint64_t steps = 0;
  std::uint64_t views = 0;
  std::uint64_t crashes = 0;
  std::uint64_t bad = 0;       ///< steps that were not finite
  std::uint64_t diverged = 0;  ///< too many of them in a row ended the job
  std::uint64_t losses = 0;    ///< of committed steps, all with good reason
  std::uint64_t reverts = 0;   ///< of units to copies
  std::uint64_t forwards = 0;  ///< steps rolled forward from seals
  std::uint64_t arrivals = 0;  ///< units that came while steps ran
  std::uint64_t arrived = 0;   ///< views that record the arrival of all units
  std::uint64_t overtaken = 0; ///< units that had to start over
  std::uint64_t given_up = 0;  ///< checkpoints, by some peer
  std::uint64_t awaited = 0;   ///< checkpoints that were waited for
  std::uint64_t shared = 0;    ///< times that a store got some parts of one
  std::uint64_t rots = 0;      ///< corrupted states
  std::uint64_t noticed = 0;   ///< sub-plans that began anew for that reason
  std::uint64_t mended = 0;    ///< corrupted units that were replaced
};

/// Bugs of a shell that the checks must find.
enum class job_mutant : std::uint8_t {
  nothing,
  backlog_not_applied, ///< gradients that arrived before the copy of their unit
  copy_too_late,       ///< made when it is sent, not at the boundary
  state_not_hashed,    ///< digests are always equal
  share_passes_for_all, ///< a store with some parts of a checkpoint has it whole
};

/// Runs one seed; with `trace`, prints the events to stderr.
[[nodiscard]] job_sim_result run_job_sim(std::uint64_t seed, bool trace,
                                         job_mutant bug = job_mutant::nothing);

} // namespace shoal::sim
