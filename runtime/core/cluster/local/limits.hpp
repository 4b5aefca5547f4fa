// runtime/core/cluster/local/limits.hpp -- limits of the lists that a peer
// keeps beside its view.
//
// Those of views and messages are in core/limits.hpp.
#pragma once

#include "runtime/core/limits.hpp"

namespace shoal::core::cluster {

/// This many members of a dissolved shoal in ours are enough to inform its late
/// members.
inline constexpr std::size_t former_known_min = 3;
/// Wishes of ours and of other peers that wait for the next view.
inline constexpr std::size_t wishes_max = 256;

} // namespace shoal::core::cluster
