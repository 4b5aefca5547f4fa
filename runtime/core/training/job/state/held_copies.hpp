// runtime/core/training/job/state/held_copies.hpp -- copies of units beside the state
// that steps change: when they are taken, and when older ones may be dropped.
//
// Where following every step would cost too much, all keep a copy of their
// units every `copy_every` steps, and followers get those copies. Copies are of
// the same step everywhere, and older ones are dropped only once all votes of a
// step have reported that the newer ones are complete. Copies begin early enough
// that at most copy_every steps are run again; where they take longer than that
// allows, votes wait for them.
//
// All participants take the same copies: that depends only on the assignment,
// the seals and votes that all have.
//
// Threads: none. Units: steps.
#pragma once

#include "runtime/core/training/job/state/duty.hpp"
#include "runtime/core/training/resume.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace shoal::core {

class held_copies {
public:
  /// Another assignment is taken up. Copies on their way still count.
  void halt();
  /// Nothing comes any more.
  void halted() { newest_.reset(); }
  /// The run goes on at to.version: drops all copies but those of it and the
  /// newest complete ones.
  /// @pre d.place, and `seals` has those that `to` was decided from
  void resume(const duty& d, const resume_decision& to,
              const std::map<peer_id, seal>& seals, job_actions& out);
  /// Drops all copies: the job has no use for this peer's state.
  void drop_all(job_actions& out) { keep({}, out); }

  /// Takes copies of the state at `at`, if it is their turn. No copies are
  /// taken before the first step of an assignment is committed: all wait for
  /// that step, and copies would delay it.
  /// @param committed whether a step has been, under this assignment
  /// @pre d.place, and not the last step
  void take_if_due(const duty& d, const state_version& at, bool committed,
                   job_actions& out);
  /// A step begins. @pre d.place
  void step_begins(const duty& d);
  /// Whether the vote for the step must wait until our own copies in progress
  /// are here: otherwise one step too many could have to run again. So the
  /// bound holds however long copies take, at the cost of waiting.
  [[nodiscard]] bool late(std::uint64_t step) const;
  /// A copy is here. @returns whether it is one of those taken last
  bool take(const job_event::copied& e);
  /// A step is committed. Drops older copies only when all votes report that
  /// the newer are complete.
  void note(const std::vector<const vote*>& votes, std::uint64_t step,
            job_actions& out);

  /// For our vote: step + 1 of the newest copies, if they are complete here.
  [[nodiscard]] std::uint64_t complete_here() const;
  /// Units of the newest copies that are not here yet.
  [[nodiscard]] std::size_t missing() const noexcept { return missing_.size(); }
  [[nodiscard]] bool has(const state_version& v, std::uint32_t unit) const;
  /// The copies here, by version.
  [[nodiscard]] const std::map<state_version, std::set<std::uint32_t>>&
  all() const noexcept {
    return copies_;
  }

private:
  [[nodiscard]] std::uint64_t distance(std::uint64_t every) const;
  void keep(std::vector<state_version> versions, job_actions& out);

  std::map<state_version, std::set<std::uint32_t>> copies_;
  std::optional<state_version> newest_; ///< taken under this assignment
  std::uint64_t newest_under_ = 0;      ///< its digest
  std::set<std::uint32_t> missing_;     ///< of `newest_`
  bool complete_ = false;               ///< all of newest_, on all peers
  std::uint64_t complete_at_ = 0; ///< step of the newest complete, or resumed
  std::uint64_t lag_ = 0;         ///< steps that those took; 0: unknown
  std::uint64_t last_vote_ = 0;   ///< votes for later steps wait for copies
  // As decided at the last resume.
  state_version resumed_;
  std::optional<state_version> resumed_copies_; ///< the newest complete ones
  bool resumed_in_use_ = false; ///< those are in all places that we want
};

} // namespace shoal::core
