// tests/sim/cluster_sim.hpp -- whole shoals of cluster cores, by seed.
//
// Runs up to nine membership cores on one event queue with simulated time, a
// network that loses, delays, reorders, cuts and half-opens connections, and
// disks that keep exactly what was stored before a crash. In every other run
// disks take up to 2 s to store a record, and fail. Processes crash between any
// two actions, pause, lose their disks, leave and return. Jobs are submitted,
// ended and removed meanwhile. Everything is drawn from the seed, so a run is
// repeated by its seed alone. In every fifth run a peer lies: others get
// numbers at the end of their range, and revoked peers tell those who dial them
// that they were revoked. In another fifth members are expelled for stalling
// jobs. In every sixth, peers that wait for a quorum are told to go on by
// force.
//
// Checked at every decided view: it succeeds the newest view of its shoal by
// votes of a quorum of that view (C-1); it loses no running job, except to the
// shoal that was made by force in its place; and it does not run a job again
// that any shoal has removed or forgotten (except by force). At every peer:
// numbers only grow (C-2), and a lie ends no process; a peer that was expelled
// for stalling returns no sooner than its pause allows. Checked at the end:
// within 10 s after the faults stop all running peers share one view that holds
// exactly them, except if the quorum itself is gone or two shoals both run
// jobs.
#pragma once

#include "runtime/core/cluster/membership.hpp"

#include <cstdint>
#include <string>

namespace shoal::sim {

using core::nanoseconds;

inline constexpr nanoseconds second = 1'000'000'000;
inline constexpr nanoseconds millisecond = 1'000'000;

/// Bugs of a shell that the checks must find; and lies that a core believes,
/// since only their size distinguishes them from the truth.
enum class mutant : std::uint8_t {
  nothing = 0,
  votes_not_stored = 1,       ///< vote records never reach the disk
  stores_too_late = 2,        ///< records reach the disk after the sends
  restarts_without_votes = 3, ///< votes are kept, but not read again
  lies_with_near_numbers = 4, ///< of views that were not decided
  ends_at_one_word = 5,       ///< of an address that calls it revoked
};

struct cluster_options {
  std::uint64_t seed = 1;
  int peers = 0;      ///< 0: 1 to 9, from the seed
  bool calm = false;  ///< no faults: only the birth of the shoal
  bool print = false; ///< prints every event to stdout
  mutant bug = mutant::nothing;
  /// Some jobs serve models, and peers propose other numbers of their pipelines.
  bool scales = false;
};

struct cluster_result {
  std::string failure; ///< empty: all checks held
  std::uint64_t trace = 0;
  nanoseconds settled_after = 0; ///< since the faults stopped, or the last peer
                                 ///< was ready
  std::uint64_t events = 0;
  std::uint64_t views = 0;
  std::uint64_t crashes = 0;
  std::uint64_t merges = 0;
  std::uint64_t jobs = 0;
  std::uint64_t removals = 0;  ///< requested
  std::uint64_t scalings = 0;  ///< agreed
  bool apart_by_key = false;   ///< two shoals can no longer meet
  std::size_t revocations = 0; ///< requested
  bool quorum_gone = false;
  std::uint64_t forces = 0; ///< shoals made by force
};

cluster_result run_cluster(const cluster_options& options);

} // namespace shoal::sim
