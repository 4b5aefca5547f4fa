// runtime/core/watch.hpp -- how work that may take long tells how far it is.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <functional>
#include <string_view>

namespace shoal::model {

/// Called again and again with what is done ("reading text"), how much of it,
/// and of how much (0: not known). @returns false if it is to be given up
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
