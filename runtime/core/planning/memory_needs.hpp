// runtime/core/planning/memory_needs.hpp -- why a job runs nowhere, in numbers.
#pragma once

#include "runtime/core/planning/layout/cost.hpp"

#include <string>

namespace shoal::core {

/// "not enough memory: needs at least 41.2 GiB (...), has 12.0 GiB on 3 members
/// (6.0 GiB: a; 3.0 GiB: b, c)": of a problem for which no layout was found.
[[nodiscard]] std::string why_nowhere(const layout_problem& p);

} // namespace shoal::core
