// runtime/core/training/job/state/outgoing_units.hpp -- units that move away from here
// while steps run: which receivers want which, and what was begun.
//
// A receiver asks again with a higher attempt when a unit has fallen too far
// behind; a repeat of the same attempt gets the same answer.
//
// Threads: none. See incoming_units.hpp for the other end.
#pragma once

#include "runtime/core/training/job/state/duty.hpp"
#include "runtime/core/training/job/state/held_units.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace shoal::core {

class outgoing_units {
public:
  /// @param copies wanted places of state besides the first: a copy for a
  ///        further place is sent without delaying steps
  explicit outgoing_units(std::uint32_t copies) : copies_(copies) {}

  /// Another assignment is taken up.
  void halt() { units_.clear(); }
  /// A receiver is in step at this version: only gradients go to it.
  void go_on(const duty& d, std::uint32_t unit, const state_version& at,
             const peer_id& to, job_actions& out);
  /// A receiver asks for a unit, or for the records of steps.
  /// @param records the committed steps that we know
  /// @pre nothing halts
  void take(const duty& d, const peer_id& from, const arrival_wanted& m,
            const std::vector<step_record>& records, job_actions& out);
  /// At a step boundary: sends what is wanted. @pre d.place, and all own units
  /// are at the same step
  void serve(const duty& d, const held_units& held, job_actions& out);

private:
  struct outgoing {
    std::uint32_t attempt = 0;
    bool wanted = false;
    state_version begun;
  };

  std::uint32_t copies_;
  std::map<std::pair<peer_id, std::uint32_t>, outgoing> units_;
};

} // namespace shoal::core
