// runtime/core/assignment.cpp -- digests of places.
#include "runtime/core/assignment.hpp"

#include "runtime/core/canonical.hpp"

#include <algorithm>

namespace shoal::core {

bool waits(const assignment& a) {
  return std::ranges::all_of(
    a.islands, [](const island_place& at) { return at.replicas.empty(); });
}

std::uint64_t digest(const island_id& id, const island_place& a) {
  canonical_writer w(canonical_writer::unset::written);
  w.add(id.job);
  w.add(a);
  if (id.index > 0)
    w.add(std::uint64_t{id.index});
  std::uint64_t z = 0xcbf29ce484222325u; // FNV-1a
  for (const std::byte b : std::move(w).take())
    z = (z ^ static_cast<std::uint8_t>(b)) * 0x100000001b3u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u; // splitmix64's finaliser
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return z == 0 ? 1 : z; // 0 means none
}

const char* to_text(schedule_kind k) {
  switch (k) {
  case schedule_kind::one_f_one_b:
    return "1f1b";
  case schedule_kind::interleaved:
    return "interleaved";
  case schedule_kind::zero_bubble:
    return "zero_bubble";
  }
  return "unknown";
}

} // namespace shoal::core
