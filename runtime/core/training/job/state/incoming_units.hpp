// runtime/core/training/job/state/incoming_units.hpp -- units that move here while
// steps run (planning/arrivals.hpp): from the first question to being in step.
//
//     idle -- asked for --> asked -- the source begins --> copying
//      ^                                                     | the copy is here
//      `-- too far behind -- following: applies each step <--'
//     left: after too many attempts; the halt brings it
//
// A receiver asks the sources for units, a few at a time, first those in the
// fewest places. At the next step boundary the source has the unit copied and
// sent, and from then on also its reduced gradients. The receiver keeps the
// gradients until the copy is there, then applies them step by step as it hears
// which steps are committed.
//
// J-4: a unit goes from a step to the next only by gradients reduced under the
//      assignment of both.
//
// Threads: none. Cost: a call takes the units that arrive here.
#pragma once

#include "runtime/core/training/job/state/duty.hpp"
#include "runtime/core/training/job/state/held_units.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace shoal::core {

class incoming_units {
public:
  /// @param copies wanted places of state besides the first: further ones are
  ///        brought without haste
  explicit incoming_units(std::uint32_t copies) : copies_(copies) {}

  /// Another assignment is taken up: nothing is asked for or applied until
  /// halted().
  void halt();
  /// Nothing comes any more. An arriving unit's part of the step in progress
  /// counts as prepared: the seals may lead to it.
  /// @param prepared of the step in progress; set if it was none
  /// @param units the units whose gradients are here; ascending
  void halted(const held_units& held, state_version& prepared,
              std::vector<std::uint32_t>& units);
  /// The run goes on under the assignment. @pre d.place
  void begin(const duty& d, nanoseconds now);
  /// A unit is in step: it goes on from what is held. @pre begin() was called
  void go_on(const duty& d, std::uint32_t unit, const state_version& at,
             const held_units& held, job_actions& out);
  /// Keeps some units on their way; reports when all are in step.
  void move(const duty& d, const held_units& held, job_actions& out);

  void take(const duty& d, const peer_id& from, const arrival_begun& m,
            held_units& held, job_actions& out);
  void take(const duty& d, const job_event::arrival_copied& e, held_units& held,
            job_actions& out);
  void take(const duty& d, const job_event::arrival_reduced& e,
            const held_units& held, job_actions& out);
  void take(const duty& d, const job_event::arrival_applied& e,
            held_units& held, job_actions& out);
  /// A step has been committed.
  void note(const duty& d, const step_record& r, const held_units& held,
            job_actions& out);
  /// Sends again what may have been lost.
  void repeat(const duty& d, const held_units& held, nanoseconds now,
              job_actions& out);

  /// All units are here as of this step, as last reported; + 1; 0: not yet.
  [[nodiscard]] std::uint64_t complete() const noexcept { return complete_; }
  /// The assignment of begin().
  [[nodiscard]] const job_header& under() const noexcept { return under_; }
  /// Units that arrive here, and those of them that are in step.
  [[nodiscard]] std::size_t all() const noexcept { return units_.size(); }
  [[nodiscard]] std::size_t here() const noexcept;

private:
  enum class state : std::uint8_t { idle, asked, copying, following, left };
  struct incoming {
    peer_id from{};
    std::uint32_t places = 0; ///< holders when the assignment began
    state now = state::idle;
    std::uint32_t attempt = 0;
    state_version begun;               ///< version of the copy
    std::set<std::uint64_t> gradients; ///< kept for later steps
    bool applying = false;
    bool behind = false; ///< starts over when the shell is done with it
  };

  /// The unit, if it arrives under the assignment with this digest; or null.
  incoming* find(std::uint64_t digest, std::uint32_t unit);
  bool ask_for_next(const duty& d, job_actions& out);
  void ask(const duty& d, std::uint32_t unit, std::uint64_t after,
           job_actions& out) const;
  void catch_up(const duty& d, std::uint32_t unit, const held_units& held,
                job_actions& out);
  void start_over(incoming& in);

  std::uint32_t copies_;
  bool halting_ = false;
  std::map<std::uint32_t, incoming> units_;
  job_header under_;
  std::map<std::uint64_t, double> norms_; ///< by step: the newest
  std::uint64_t complete_ = 0;            ///< step + 1
  nanoseconds repeated_ = 0;
};

} // namespace shoal::core
