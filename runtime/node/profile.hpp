// runtime/node/profile.hpp -- the speed and memory of this machine, measured.
//
// The speed is the rate of the three matrix products of training on `threads`
// threads, and that of memory while two matrices are added. Both take a fifth
// of a second in all and are stored below $XDG_CACHE_HOME/shoal for this
// processor and thread count, so that later starts are instant. Nodes of one
// machine measure one after another and share the result: equal peers are then
// equal in the view. A quota on processor time (host_limits.hpp) scales both.
// Numbers are rounded so that noise does not cause views.
//
// Threads: any; blocks.
#pragma once

#include <cstdint>
#include <string>

namespace shoal::core {
struct device_profile; // runtime/core/view.hpp
}

namespace shoal::runtime {

/// @param threads 0: all cores that this process may use
/// @param memory_bytes 0: half of the free memory, shared by all nodes of this
/// host that have 0
/// @param mflops 0: measure
core::device_profile
measure_profile(int threads, std::uint64_t memory_bytes, std::uint64_t mflops);

/// Identifies the boot of the running kernel: equal on peers that share
/// processors.
std::string boot_id();

/// Rounds to one of eight steps per doubling.
std::uint64_t quantised(std::uint64_t value);

} // namespace shoal::runtime
