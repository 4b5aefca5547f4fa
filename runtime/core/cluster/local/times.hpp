// runtime/core/cluster/local/times.hpp -- times that several parts share.
#pragma once

#include "runtime/core/ids.hpp"

namespace shoal::core::cluster {

inline constexpr nanoseconds milliseconds = 1'000'000;
/// How often a request that got no answer is repeated.
inline constexpr nanoseconds retry_interval = 200 * milliseconds;

} // namespace shoal::core::cluster
