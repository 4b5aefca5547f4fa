// runtime/core/training/job/state/duty.hpp -- what the assignment that a peer has
// taken up asks of it: the input to most calls of a part of job_core.
//
// Ownership: job_core has one and replaces it with each assignment; a part
// never keeps it beyond a call.
// Threads:   plain data.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/training/job_events.hpp"

#include <optional>
#include <vector>

namespace shoal::core {

/// How often a message that may have been lost is sent again.
inline constexpr nanoseconds job_repeat_after = 500'000'000;

struct duty {
  peer_id self{};
  job_header header;                 ///< of `place`; digest 0: none
  std::optional<island_place> place; ///< none yet, or the job has left the view
  holdings holds;                    ///< under `place`
  std::vector<std::uint32_t> units;  ///< that we hold at every step; ascending
  std::vector<peer_id> participants; ///< ascending
  std::vector<peer_id> sealers;      ///< ascending

  [[nodiscard]] bool participates() const;
  [[nodiscard]] bool seals() const;
  /// Whether a message was made under this assignment.
  [[nodiscard]] bool mine(const job_header& h) const noexcept {
    return place && h == header;
  }
};

/// The duty under `place`; without it, of a peer that has none in this island.
[[nodiscard]] duty duty_under(const std::optional<island_place>& place,
                              const island_id& id, const peer_id& self);

/// Appends one send to each of `peers` but `self`.
void send_to(const std::vector<peer_id>& peers, const peer_id& self,
             const job_message& m, job_actions& out);

} // namespace shoal::core
