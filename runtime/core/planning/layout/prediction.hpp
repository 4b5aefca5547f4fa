// runtime/core/planning/layout/prediction.hpp -- what a layout is predicted to
// cost: the result of cost.hpp, for those that only read it.
//
// Units: nanoseconds, bytes.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <vector>

namespace shoal::core {

/// Predicted time of one step, and its demands on each member.
struct prediction {
  nanoseconds step = 0;
  struct need {
    member_id where;
    std::uint64_t bytes = 0; ///< memory
    nanoseconds busy = 0;    ///< time of its device, forward and backward
  };
  std::vector<need> members; ///< those that take part
};

} // namespace shoal::core
