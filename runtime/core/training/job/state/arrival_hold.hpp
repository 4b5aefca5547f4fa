// runtime/core/training/job/state/arrival_hold.hpp -- the switch to a view that uses
// what has arrived.
//
// When all units are in step, receivers report so with every step. Participants
// then stop at a boundary, and once the receivers are at that boundary too, they
// ask for a view that says so: a peer that halts then has the same state as the
// receivers. No peer waits longer than hold_max; then the run goes on, and waits
// again later.
//
// Threads: none.
#pragma once

#include "runtime/core/training/job/state/duty.hpp"

#include <cstdint>
#include <map>

namespace shoal::core {

class arrival_hold {
public:
  /// The longest wait at a boundary: a change of the view takes some 0.2 s, 2 s
  /// on a very busy machine.
  static constexpr nanoseconds hold_max = 5'000'000'000;
  static constexpr nanoseconds hold_again_after = 30'000'000'000;

  /// Another assignment is taken up.
  void halt();
  /// A receiver has all its units as of `step`. @pre d.place
  void take(const duty& d, const peer_id& from, std::uint64_t step);
  /// Whether to stop before the step after `step`: receivers may be behind by
  /// what is on its way. @pre d.place
  [[nodiscard]] bool
  due(const duty& d, std::uint64_t step, nanoseconds now) const;
  void begin(nanoseconds now) { since_ = now; }
  /// Steps stand still after `step`: asks for the view, once, when all have
  /// arrived. @pre d.place
  void ask_if_arrived(const duty& d, std::uint64_t step, job_actions& out);
  /// Whether the wait is over; then the next begins a while later.
  bool take_end(nanoseconds now);

private:
  [[nodiscard]] bool all_arrived(const duty& d, std::uint64_t step) const;

  std::map<peer_id, std::uint64_t> arrived_at_; ///< step, by receiver
  bool asked_ = false;
  nanoseconds since_ = 0;
  nanoseconds not_before_ = 0;
};

} // namespace shoal::core
