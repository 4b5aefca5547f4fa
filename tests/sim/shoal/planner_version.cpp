// tests/sim/shoal/planner_version.cpp -- a version that never changes, linked
// instead of the definition in the core library.
//
// Views are hashed with the version of their planner, and by the hashes of their
// first views shoals decide which of them joins another. So with the program's
// version the same seeds would run in another way after each change of it.
#include "runtime/core/planner_version.hpp"

namespace shoal::core {

const std::uint32_t planner_version = 2;

} // namespace shoal::core
