// runtime/core/cluster/credible.hpp -- numbers that no honest peer can say.
//
// A peer numbers a new view from the highest number that it has seen. So a
// single message with a number at the end of the range would leave no higher
// number: no view could follow, and stored records could not be read again. The
// codec knows the range (epoch_max); only a core knows how far a number is from
// its own.
//
// Threads: pure functions. Cost: linear in the size of the message.
#pragma once

#include "runtime/core/cluster/messages.hpp"

namespace shoal::core::cluster {

/// What an honest peer sends is ahead of us by less than this, both in numbers
/// of views and in rounds. Each decision raises the number by one, whatever it
/// skips: a peer that joins or merges continues from the highest number of both
/// sides. So a shoal's number is at most the count of all decisions ever made
/// among the peers that it has met. A decision takes two round trips and two
/// disk writes, at least 10 ms: 2^32 decisions without a pause take 16 months;
/// at one a minute they take 8,000 years. So a peer that comes late, with
/// number 1, believes every real shoal. And a liar needs 2^30 messages, each
/// decided and stored, to bring us to the end of the range.
inline constexpr std::uint64_t lead_max = std::uint64_t{1} << 32;

/// The highest number to believe when ours is `own`. It leaves room below the
/// end of the range, since some numbers grow without a decision (a new shoal, a
/// ballot).
constexpr std::uint64_t believed_max(std::uint64_t own) {
  return own < epoch_max - 2 * lead_max ? own + lead_max : epoch_max - lead_max;
}

/// Whether every epoch in `m` is believable when our view has number `own`.
bool credible(const message& m, epoch own);

/// Whether `next` can be the successor of `base`, whichever peer sends it.
bool can_follow(const view& base, const view& next);

} // namespace shoal::core::cluster
