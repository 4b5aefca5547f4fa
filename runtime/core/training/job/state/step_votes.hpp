// runtime/core/training/job/state/step_votes.hpp -- the votes of the step in
// progress, and of the steps beside it.
//
// A peer may be a step ahead of another: it votes for the next one as soon as it
// has all votes of this one. So votes of three steps are kept, and of any two
// while the step in progress is not known yet.
//
// Threads: none. Cost: a call takes the logarithm of the participants.
#pragma once

#include "runtime/core/training/job/state/duty.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace shoal::core {

class step_votes {
public:
  /// Another assignment is taken up.
  void halt() { votes_.clear(); }
  /// A step begins: drops the votes of steps before the one before it.
  void begin(std::uint64_t step);

  /// Our own vote.
  void put(const peer_id& self, const vote& v) { votes_[v.step][self] = v; }
  /// The vote of another participant; its first for a step counts.
  /// @param current the step in progress; 0: not known yet
  void take(const peer_id& from, const vote& v, std::uint64_t current);

  /// The votes for a step, by peer.
  [[nodiscard]] const std::map<peer_id, vote>& of(std::uint64_t step) const;
  /// Whether every participant has voted for the step.
  [[nodiscard]] bool complete(const duty& d, std::uint64_t step) const {
    return of(step).size() >= d.participants.size();
  }
  /// The peer's vote for a step; or null.
  [[nodiscard]] const vote* find(std::uint64_t step, const peer_id& peer) const;

private:
  std::map<std::uint64_t, std::map<peer_id, vote>> votes_;
};

} // namespace shoal::core
