// runtime/core/planner_version.cpp -- the version itself.
#include "runtime/core/planner_version.hpp"

namespace shoal::core {

const std::uint32_t planner_version = 8;

} // namespace shoal::core
