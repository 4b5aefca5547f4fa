// runtime/core/state/holdings.hpp -- who holds which parts of an island's state.
//
// The only code that works out, from the stages, followers and arrivals of an
// island, which member has which part.
//
// A member holds a part in one of three ways. It computes it, in one replica or,
// on a detour, in several; it follows it: keeps its state besides those that
// compute it (island_place::copy_every); or the part arrives, brought while the
// island goes on.
//
// Threads: immutable; const is safe. Cost: made in time linear in the stages,
// followers and arrivals, times the logarithm of the members; a question about
// a member takes that logarithm, one about a part is linear in the members or
// in the stages of a replica.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/state/parts.hpp"

#include <cstdint>
#include <vector>

namespace shoal::core {

/// What one member has of an island's state.
struct member_parts {
  member_id where;
  part_set computes;
  part_set follows;
  part_set arrives;
  part_set held; ///< at every step: computed, or followed by gradients
  bool takes_part = false; ///< runs a stage or follows one
};

class holdings {
public:
  /// Nobody holds anything.
  holdings() = default;
  explicit holdings(const island_place& place);
  /// Of stages alone, as planned.
  explicit holdings(const std::vector<replica_place>& replicas);

  // By member.
  /// All that hold anything or take part, ascending.
  [[nodiscard]] const std::vector<member_parts>& members() const noexcept {
    return members_;
  }
  /// Nothing, for one that is not among them.
  [[nodiscard]] const member_parts& of(const peer_id& peer) const;
  [[nodiscard]] const member_parts& of(const member_id& who) const;
  /// All peers that run a stage or follow one, ascending.
  [[nodiscard]] std::vector<peer_id> participants() const;
  /// All at which parts arrive, ascending.
  [[nodiscard]] std::vector<peer_id> receivers() const;

  // By part.
  /// The stage of a replica that computes it. @pre there is one
  [[nodiscard]] std::uint32_t
  stage(std::uint32_t replica, part_index part) const;
  /// The member that computes it in a replica. @pre there is one
  [[nodiscard]] const member_id&
  computer(std::uint32_t replica, part_index part) const;
  /// All peers that compute it, by the first of their replicas.
  [[nodiscard]] std::vector<peer_id> computers(part_index part) const;
  /// The first replica in which `peer` computes it. @pre there is one
  [[nodiscard]] std::uint32_t
  first_replica(const peer_id& peer, part_index part) const;
  /// All that follow it, in the order of the place.
  [[nodiscard]] std::vector<member_id> followers(part_index part) const;
  /// The member that sends it to those at which it arrives: the replicas take
  /// turns by part. @pre there is a replica
  [[nodiscard]] const member_id& source(part_index part) const;
  /// Number of members that hold it at every step.
  [[nodiscard]] std::uint32_t holders(part_index part) const;

  // Over all parts.
  /// The smallest number of members that compute or follow a part: one more than
  /// the number of losses that the state survives.
  [[nodiscard]] std::uint32_t least_copies(const part_table& parts) const;
  /// The largest number of members that compute a part.
  [[nodiscard]] std::uint32_t most_computers() const;
  /// Whether a member computes some part in two replicas, or twice in one.
  [[nodiscard]] bool computes_twice() const noexcept { return twice_; }

private:
  struct run {           ///< of a stage
    part_index last = 0; ///< the first part behind it
    member_id who;
  };
  struct follower {
    part_range parts;
    member_id who;
  };

  void add_stages(const std::vector<replica_place>& replicas);
  member_parts& at(const member_id& who);
  void finish(bool by_gradients);

  std::vector<member_parts> members_;
  std::vector<std::vector<run>> replicas_;
  std::vector<follower> followers_;
  bool twice_ = false;
};

} // namespace shoal::core
