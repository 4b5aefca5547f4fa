// runtime/core/watch.hpp -- progress reports of long operations.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <functional>
#include <string_view>

namespace shoal::model {

/// Called repeatedly with the current activity ("reading text"), the amount
/// done, and the total amount (0: unknown).
/// @returns false to cancel the operation
using watch = std::function<bool(std::string_view what, std::uint64_t done,
                                 std::uint64_t all)>;

/// Calls a watch that may be empty.
inline status tell(const watch& to, std::string_view what, std::uint64_t n,
                   std::uint64_t all) {
  if (to && !to(what, n, all))
    return failure{"stopped while " + std::string(what)};
  return done{};
}

} // namespace shoal::model
