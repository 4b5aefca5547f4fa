// tests/runtime/wire/wild_view.hpp -- views that pass the codec but make little
// sense: every number at an end of its range or anywhere in between, and
// assignments of the view before that name members or not, overlap, or run
// backwards.
#pragma once

#include "runtime/core/view.hpp"

#include <functional>

namespace shoal::tests {

/// A number below `n`; of randomness, or of the bytes of a fuzzer.
using choice = std::function<std::uint64_t(std::uint64_t n)>;

/// @param members_max a limit, so that planning takes little time
core::view wild_view(const choice& below, std::size_t members_max);

} // namespace shoal::tests
