// tests/sim/shoal/shoal_sim.hpp -- whole shoals at work, by seed.
//
// Three to eight nodes in one thread: the product's membership core, its
// supervisor, job, stage, reducer, data source, evaluator and checkpointer, its
// links, stores, exchange of blobs and codec. Around them time, network, disks
// and devices are simulated, and all faults are drawn from the seed: processes
// are killed between any two events and return with their disks, or stop and
// wake up late; connections break, links are cut in one or both directions,
// disks fill up and lie, devices and transfers hang. In every eighth run a disk
// or device hangs for good while data are fetched or state is restored; in
// another eighth views and votes take up to 2 s to be stored, and storing may
// fail. In every sixteenth urgent work interrupts passes on the devices. A tiny
// model trains meanwhile with real arithmetic; in every fourth run
// the loss of some steps is not a number. There may be several jobs, and several
// islands in each.
//
// Checked, always: history.hpp (one history of committed steps, equal state at
// equal versions, each sample once, no effect of old sub-plans),
// tests/sim/checker.hpp (one chain of views), links.hpp (each transfer ends
// once with the bytes that were sent), limits of queues. At the end: the run
// has finished within finish_time of simulated time after the last fault, its
// losses are those of one undisturbed peer, and nothing of it is left.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <string>

namespace shoal::sim {

using core::nanoseconds;

inline constexpr nanoseconds millisecond = 1'000'000;
inline constexpr nanoseconds second = 1000 * millisecond;

/// Time for a run to end after the last fault.
inline constexpr nanoseconds finish_time = 60 * second;
/// Additional time if something hangs while state or data are moved: the budget
/// there, and a second view if the peer is expelled before it ends.
inline constexpr nanoseconds hang_time = 60 * second;

inline constexpr int nodes_max = 8;
inline constexpr int jobs_at_once_max = 4;
inline constexpr int islands_at_once_max = 4;

/// Bugs that are made here, around the product, and that the checks must find.
enum class mutant : std::uint8_t {
  nothing,
  epoch_unchecked,    ///< messages of old sub-plans are accepted for the new
                      ///< one
  answers_dropped,    ///< repeated requests are not answered
  cursor_off_by_one,  ///< the data source is a step ahead after a resume
  rollback_forgotten, ///< a restored unit keeps the state that it had
  vote_counted_twice, ///< sometimes a vote also counts for another peer
  stale_part_summed,  ///< sometimes a gradient of the former step is sent
  moments_not_moved,  ///< a unit arrives without the optimizer's moments
  votes_not_stored,   ///< for views, over a restart
  cancel_forgotten,   ///< transfers of an old sub-plan stay posted
  applied_twice,      ///< at a step that is rolled forward to
  checksum_ignored,   ///< a flipped bit in a blob goes unnoticed
  former_views_shown, ///< to actors of a restarted process
  loss_unsaid,        ///< steps are lost without a report
  optimizer_restarts, ///< its count of steps, at a resume
  tags_without_plan,  ///< tensors of old sub-plans are accepted for the new one
  followers_do_not_apply, ///< the gradients of followed units
  disks_unwatched,        ///< the duration of their pieces is not seen
  // Of jobs with several islands:
  numbers_not_changed,  ///< of a place that has changed
  all_islands_changed,  ///< the numbers of all places, when one changes
  ends_with_one_island, ///< the whole job
  marks_of_another,     ///< what an island asks for is noted for the next one
  samples_shared,       ///< all islands use those of the first one
  all_islands_canceled, ///< transfers, when one island halts
  // Of jobs that a user ends:
  end_not_obeyed, ///< by peers whose view says that the job is to end
};
inline constexpr int mutant_count = 25;
const char* name_of(mutant bug);

struct shoal_options {
  std::uint64_t seed = 1;
  int peers = 0;       ///< 0: 3 to 8, from the seed
  int jobs = 1;        ///< submitted one after the other
  int islands = 1;     ///< of each job
  bool cancel = false; ///< a user ends the jobs while they run
  bool calm = false;   ///< no faults
  bool print = false;  ///< prints events to stdout
  mutant bug = mutant::nothing;
};

struct shoal_result {
  std::string failure; ///< empty: all checks held
  std::uint64_t trace = 0;
  /// The same without the bits of losses and state, which the mathematical
  /// functions of another machine may round in another way.
  std::uint64_t order = 0;
  nanoseconds simulated = 0;
  nanoseconds ended_after = 0; ///< since the last fault
  std::uint64_t events = 0;
  std::uint64_t views = 0;
  std::uint64_t steps = 0; ///< committed, including those lost again
  std::uint64_t kills = 0;
  bool stuck = false;       ///< the job's shoal has lost its quorum for good
  std::uint64_t losses = 0; ///< number of times that committed steps were lost
  std::size_t buffer_bytes_most = 0; ///< of one process, at any time
  std::size_t transfers_most = 0;    ///< the same
};

shoal_result run_shoal(const shoal_options& options);

} // namespace shoal::sim
