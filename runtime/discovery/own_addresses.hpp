// runtime/discovery/own_addresses.hpp -- the addresses of this machine for its peers.
//
// Threads: any. Cost: asks the system for its interfaces.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shoal::runtime {

/// The number that a member may list.
inline constexpr std::size_t own_addresses_max = 16;

/// The addresses "host:port" by which others reach a listener that is bound to
/// `bound`: of all interfaces if it is bound to any, at most own_addresses_max.
std::vector<std::string> reachable_addresses(const std::string& bound);

} // namespace shoal::runtime
