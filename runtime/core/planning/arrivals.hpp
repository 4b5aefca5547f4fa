// runtime/core/planning/arrivals.hpp -- state that moves while a job goes on.
//
// A layout that needs state on members that have none of it, or a new follower,
// would make all wait for the transfer. Where that would take longer than a
// moment (worth_arriving), the assignment keeps what can run now (the replicas
// and followers before, with detours.hpp where members are gone) and lists as
// `arriving` what must come where. Those who only receive are no participants:
// nobody waits for them.
//
// Their units come a few at a time (job_core.hpp): a copy as of a step, and
// the reduced gradients of all later steps, which they apply like followers.
// Those that are in too few places come first, and as fast as the link can:
// until they are there, a death costs steps. The others are paced: a source
// sends them in pieces, and rests after each so long that sending takes
// arrival_permille_max of its time; less long where the copy would take more
// steps than half of arrival_backlog_max, so that it always gets there. The
// replicas share the sending. Gradients are not paced: whoever holds a unit
// needs them at every step.
//
// When all of it is there and in step, the view says so of the assignment's
// epoch (job_entry::arrived), and the planner takes the better layout, which
// then finds its state in place. It does so too where something could not be
// brought while the run went on: the rest is then moved as everybody waits.
//
// Members that come or go meanwhile make another plan; what has arrived until
// then is in the seals, and need not come again. Other speeds do not: with each
// change all halt, units that are half there start over, and steps say little
// of a device while state is on its way.
//
// Units: bytes, nanoseconds. Cost: members x units.
#pragma once

#include "runtime/core/planning/cost.hpp"

namespace shoal::core {

/// A move is made at once, while all wait, if it is predicted to take less: to
/// begin an arrival is a change of the view too, whose pause is of this order.
/// How long a step takes does not matter: a fifth peer's state made all others
/// wait 1.8 s, three steps, where the move was predicted to take half a step.
inline constexpr nanoseconds arrive_after_min = 250'000'000;

/// State moves no faster, whatever the link is said to do: it is copied out and
/// in, and TLS takes its time. Between two nodes of one host of two cores, busy
/// with other things, all waited 2 to 3 s for 0.36 GB, and with half a core for
/// each node 1.6 s for 0.2 GB (22 November 2026).
inline constexpr std::uint64_t move_bytes_per_s_max = 150'000'000;

/// Reduced gradients of one unit that are kept at the receiver until its copy
/// is there, and as many that wait at the sender. Further behind, the unit
/// starts over. Higher means slower links can do it, at the cost of a quarter
/// of a unit's state for each.
inline constexpr std::size_t arrival_backlog_max = 8;

/// So many units are on their way to a receiver at once: while one's copy is
/// awaited for a step boundary, the link has another. Higher means sooner
/// there, at the cost of memory, as above, for each.
inline constexpr std::size_t arrivals_at_once = 2;

/// Copies of units that are in enough places take so much of a source's time,
/// in thousandths. Higher means sooner there, at the cost of steps that take
/// longer by up to as much, where link and processors are busy.
inline constexpr std::uint64_t arrival_permille_max = 50;

/// A copy is sent in pieces of so many bytes, or, if it is so large, in
/// arrival_pieces_max. Smaller means more even; link_meter.hpp says from where
/// on the fixed cost of a transfer counts.
inline constexpr std::uint64_t arrival_piece_bytes = 1 << 20;
inline constexpr std::uint64_t arrival_pieces_max = 1000;

/// Pieces of a copy of `bytes`, all of one size but for the last.
struct arrival_pieces {
  std::uint64_t bytes = 0; ///< of one
  std::uint32_t count = 0;
};
[[nodiscard]] arrival_pieces pieces_of(std::uint64_t bytes);

/// How long a source rests after a piece that took `took` to send, of `count`
/// pieces, while a step takes `step` (0: not known).
[[nodiscard]] nanoseconds
rest_after_piece(nanoseconds took, nanoseconds step, std::uint32_t count);

/// Whether a move that takes `move` should be made while the job goes on.
[[nodiscard]] constexpr bool worth_arriving(nanoseconds move) {
  return move > arrive_after_min;
}

/// Whether what arrives under p.previous should go on arriving, and all else
/// stay as it is: it is not there yet, nobody came or went, and it fits.
[[nodiscard]] bool keeps_arriving(const layout_problem& p);

/// Of `a` as chosen, keeps back what needs long moves: sets a.arriving, and
/// replicas, schedule, followers and copy_every to what runs meanwhile.
/// @returns whether it did
bool let_arrive(assignment& a, const layout_problem& p);

/// The units that arrive at `peer` under `place`, ascending.
[[nodiscard]] std::vector<std::uint32_t>
arriving_units(const assignment& place, const peer_id& peer);

/// Members at which something arrives, ascending.
[[nodiscard]] std::vector<peer_id> receivers(const assignment& place);

/// Who sends `unit` to those at which it arrives: who computes it in one of
/// the replicas, which take turns by unit. @pre place has replicas
[[nodiscard]] const peer_id&
arrival_source(const assignment& place, std::uint32_t unit);

/// Peers that hold `unit` at every step under `place`.
[[nodiscard]] std::uint32_t
places_of(const assignment& place, std::uint32_t unit);

/// Whether what arrives under `previous` counts as held by then.
[[nodiscard]] inline bool
has_arrived(const job_entry& job, const assignment& previous) {
  return !previous.arriving.empty() && job.arrived == previous.since;
}

/// Memory that arrivals take on their way, at both ends, beside the units.
void add_arrival_bytes(const job_entry& job, const assignment& a,
                       std::map<member_id, std::uint64_t>& to);

} // namespace shoal::core
