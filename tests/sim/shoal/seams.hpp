// tests/sim/shoal/seams.hpp -- how often each seam was passed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal::sim {

enum class seam : std::uint8_t {
  step,
  apply,
  initialise,
  copy_in,
  load,
  sample
};
inline constexpr std::size_t seams_count = 6;

/// Since the program began.
std::uint64_t seam_hits(seam s);

} // namespace shoal::sim
