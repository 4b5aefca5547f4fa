// runtime/core/planning/arrivals.hpp -- state that moves while a job goes on.
//
// A layout may need state on members that have none of it, or a new follower.
// If it were taken at once, all members would wait for the transfer. Where that
// would take longer than a moment (worth_arriving), the assignment keeps what
// can run now: the former replicas and followers, with detours (detours.hpp)
// where members are gone. It lists in `arriving` which units have to come to
// which member. Members that only receive are no participants: no other member
// waits for them.
//
// The units come a few at a time (job_core.hpp): a copy of the state at one
// step, and the reduced gradients of all later steps, which the receiver
// applies like a follower. Units that are in too few places come first, and as
// fast as the link allows: until they are there, a death costs steps. The
// others are paced. A source sends them in pieces and rests after each, so that
// sending takes arrival_permille_max of its time. It rests less if the copy
// would otherwise take more steps than half of arrival_backlog_max, so that the
// copy always gets there. The replicas share the sending. Gradients are not
// paced: every holder of a unit needs them at every step.
//
// When all of it is there and in step, the view marks that for the epoch of the
// place (mark_kind::arrived), and the planner takes the better layout,
// which then finds its state in place. The planner also takes that layout if
// something could not be brought while the run went on: the rest is then moved
// while all members wait.
//
// If members join or leave meanwhile, there is another plan. What has arrived
// by then is listed in the seals, and need not come again. Changed speeds make
// no other plan: each change halts all members, units that are half transferred
// start over, and step times say little about a device while state is being
// moved.
//
// Units: bytes, nanoseconds. Cost: members x units.
#pragma once

#include "runtime/core/planning/layout/cost.hpp"

namespace shoal::core {

/// A move that is predicted to take less is made at once, while all members
/// wait: beginning an arrival changes the view too, and that pause is of this
/// order. The duration of a step does not matter: the state of a fifth peer
/// made all others wait 1.8 s, three steps, where the move was predicted to
/// take half a step.
inline constexpr nanoseconds arrive_after_min = 250'000'000;

/// State is assumed to move no faster than this, whatever the link's bandwidth:
/// it is copied out and in, and TLS takes its time. Between two nodes of one
/// host of two cores that was also busy otherwise, all waited 2 to 3 s for 0.36
/// GB, and with half a core for each node 1.6 s for 0.2 GB (22 November 2026).
inline constexpr std::uint64_t move_bytes_per_s_max = 150'000'000;

/// Limit of the reduced gradients of one unit that the receiver keeps until its
/// copy is there, and of those that wait at the sender. A unit that is further
/// behind starts over. Higher: also works on slower links, at the cost of a
/// quarter of a unit's state for each.
inline constexpr std::size_t arrival_backlog_max = 8;

/// Number of units that are on their way to a receiver at the same time: while
/// the copy of one waits for a step boundary, the link carries another. Higher:
/// sooner complete, at the cost of memory, as above, for each.
inline constexpr std::size_t arrivals_at_once = 2;

/// Share of a source's time, in thousandths, that copies of units take which
/// are in enough places. Higher: sooner complete, at the cost of steps that
/// take longer by up to the same share where link and processors are busy.
inline constexpr std::uint64_t arrival_permille_max = 50;

/// Size of the pieces in which a copy is sent; a large copy is sent in
/// arrival_pieces_max pieces instead. Smaller: more even load. For the size
/// below which the fixed cost of a transfer counts see link_estimator.hpp.
inline constexpr std::uint64_t arrival_piece_bytes = 1 << 20;
inline constexpr std::uint64_t arrival_pieces_max = 1000;

/// Pieces of a copy of `bytes`: all of one size except the last.
struct arrival_pieces {
  std::uint64_t bytes = 0; ///< of one piece
  std::uint32_t count = 0;
};
[[nodiscard]] arrival_pieces pieces_of(std::uint64_t bytes);

/// Time for which a source rests after a piece that took `took` to send, one of
/// `count` pieces, while a step takes `step` (0: not known).
[[nodiscard]] nanoseconds
rest_after_piece(nanoseconds took, nanoseconds step, std::uint32_t count);

/// Whether a move that takes `move` should be made while the job goes on.
[[nodiscard]] constexpr bool worth_arriving(nanoseconds move) {
  return move > arrive_after_min;
}

/// Whether the arrivals under p.previous go on and all else stays as it is:
/// they are not complete, no member joined or left, and they fit.
[[nodiscard]] bool keeps_arriving(const layout_problem& p);

/// Holds back the parts of the chosen assignment `a` that need long moves: sets
/// a.arriving, and sets replicas, schedule, followers and copy_every to what
/// runs meanwhile.
/// @returns whether something was held back
bool let_arrive(island_place& a, const layout_problem& p);

/// Adds the memory that arrivals take at both ends while in transit, besides
/// the units themselves.
void add_arrival_bytes(const job_entry& job, const island_place& a,
                       std::map<member_id, std::uint64_t>& to);

} // namespace shoal::core
