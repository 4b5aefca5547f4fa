// tests/sim/cluster_sim.hpp -- whole shoals of cluster cores, by seed.
//
// Runs up to nine membership cores on one event queue with simulated time, a
// network that loses, delays, reorders, cuts and half-opens connections, and
// disks that keep exactly what was stored before a crash, and that, in every
// other run, take up to 2 s for it and fail; processes crash between any two
// actions, pause, lose their disks, leave and come back. Jobs are submitted,
// ended and removed meanwhile. Everything is drawn from the seed, so a run is repeated by
// its seed alone. In every fifth run somebody lies: peers are told numbers at the
// end of their range, and who was revoked tells those who dial it that they were.
// In another fifth members are expelled for holding up jobs. In every sixth,
// peers that wait for a quorum are told to go on by force.
//
// Checked at every decided view: it succeeds the newest view of its shoal by
// votes of a quorum of that view (C-1), loses no running job, except to the shoal
// that was made in its place by force, and lists none again that any shoal has
// removed or forgotten (unless by force); at every
// peer: numbers only grow (C-2), and a lie ends nobody; who was expelled for a
// job's sake comes back no sooner than its pause says. Checked at the end: within 10 s after the
// faults stop all running peers share one view that holds exactly them,
// except where the quorum itself is gone or two shoals both run jobs.
#pragma once

#include "runtime/core/cluster/membership.hpp"

#include <cstdint>
#include <string>

namespace shoal::sim {

using core::nanoseconds;

inline constexpr nanoseconds second = 1'000'000'000;
inline constexpr nanoseconds millisecond = 1'000'000;

/// Bugs of a shell that the checks must find; and lies that a core believes,
/// since nothing but their size tells them from the truth.
enum class mutant : std::uint8_t {
  nothing = 0,
  votes_not_stored = 1,       ///< vote records never reach the disk
  stores_too_late = 2,        ///< records reach the disk after the sends
  restarts_without_votes = 3, ///< votes are kept, but not read again
  lies_with_near_numbers = 4, ///< of views that nobody has decided
  ends_at_one_word = 5,       ///< of an address that calls it revoked
};

struct cluster_options {
  std::uint64_t seed = 1;
  int peers = 0;      ///< 0: 1 to 9, from the seed
  bool calm = false;  ///< no faults: only birth
  bool print = false; ///< every event, to stdout
  mutant bug = mutant::nothing;
};

struct cluster_result {
  std::string failure; ///< empty: all checks held
  std::uint64_t trace = 0;
  nanoseconds settled_after = 0; ///< since the faults stopped, or the last
                                 ///< peer was ready
  std::uint64_t events = 0;
  std::uint64_t views = 0;
  std::uint64_t crashes = 0;
  std::uint64_t merges = 0;
  std::uint64_t jobs = 0;
  std::uint64_t removals = 0;  ///< asked for
  bool apart_by_key = false;   ///< two shoals cannot meet any more
  std::size_t revocations = 0; ///< asked for
  bool quorum_gone = false;
  std::uint64_t forces = 0; ///< shoals made by force
};

cluster_result run_cluster(const cluster_options& options);

} // namespace shoal::sim
