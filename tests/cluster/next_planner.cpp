// tests/cluster/next_planner.cpp -- makes a program of a later version's peer.
//
// It is linked instead of the definition in the core library.
#include "runtime/core/planner_version.hpp"

namespace shoal::core {

const std::uint32_t planner_version = 1'000'000;

} // namespace shoal::core
