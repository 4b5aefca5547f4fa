// runtime/core/cluster/credible.hpp -- numbers that no honest peer can say.
//
// Peers count on from the highest number that they have seen, so that one
// message with a number at the end of the range would leave them none: no view
// could follow, and what they store could not be read again. The codec knows
// the range (epoch_max); only a core knows how far it is from its own.
//
// Threads: pure functions. Cost: O(what the message holds).
#pragma once

#include "runtime/core/cluster/messages.hpp"

namespace shoal::core::cluster {

/// What an honest peer says is ahead of us by less than this, of views and of
/// rounds. A number grows by one with every decision, whatever is skipped: who
/// joins or merges counts on from the highest number of both sides, so no shoal
/// is further than the decisions that were ever made among all peers it has
/// met. One takes two round trips and two disks, 10 ms at least: 2^32 of them
/// without a pause are 16 months, at one a minute 8,000 years. So a peer that
/// comes late, with number 1, believes every real shoal. And who lies needs
/// 2^30 messages, each decided and stored, to bring us to the end.
inline constexpr std::uint64_t lead_max = std::uint64_t{1} << 32;

/// The highest number that may be believed where ours is `own`. Leaves a lead
/// below the end, since some count on by themselves (a new shoal, a ballot).
constexpr std::uint64_t believed_max(std::uint64_t own) {
  return own < epoch_max - 2 * lead_max ? own + lead_max : epoch_max - lead_max;
}

/// Whether all epochs that `m` names may be, where our view has number `own`.
bool credible(const message& m, epoch own);

/// Whether `next` can be the successor of `base`, whoever says so.
bool can_follow(const view& base, const view& next);

} // namespace shoal::core::cluster
