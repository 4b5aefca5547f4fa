// actors/training/training_state.cpp -- units, and the stages of a sub-plan.
#include "actors/training/training_state.hpp"

#include "kernels/backend.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/files/bytes_hash.hpp"

#include <chrono>

namespace shoal::actors {

std::vector<stage_name>
stages_on(const core::island_place& a, const core::peer_id& peer) {
  std::vector<stage_name> out;
  for (std::uint32_t r = 0; r < a.replicas.size(); ++r)
    for (std::uint32_t s = 0; s < a.replicas[r].stages.size(); ++s)
      if (a.replicas[r].stages[s].lead().peer == peer)
        out.push_back({r, s});
  return out;
}

std::size_t state_bytes(const model::unit_state& unit) {
  return 3 * unit.size() * sizeof(float);
}

std::size_t gradient_bytes(const model::unit_state& unit) {
  return unit.size() * sizeof(float);
}

std::uint64_t digest_of(const model::unit_state& unit) {
  std::uint64_t digest = 0;
  for (const std::span<const float> part :
       {unit.parameters(), unit.first_moment(), unit.second_moment()})
    digest = runtime::hash_of(std::as_bytes(part), digest);
  return digest;
}

void copy_state_out(kernels::backend& device, model::unit_state& unit,
                    std::span<float> into) {
  SHOAL_ASSERT(into.size() == 3 * unit.size());
  const std::size_t n = unit.size();
  device.copy(into.subspan(0, n), unit.parameters());
  device.copy(into.subspan(n, n), unit.first_moment());
  device.copy(into.subspan(2 * n, n), unit.second_moment());
}

void copy_state_in(kernels::backend& device, std::span<const float> from,
                   model::unit_state& unit) {
  SHOAL_ASSERT(from.size() == 3 * unit.size());
  const std::size_t n = unit.size();
  device.copy(unit.parameters(), from.subspan(0, n));
  device.copy(unit.first_moment(), from.subspan(n, n));
  device.copy(unit.second_moment(), from.subspan(2 * n, n));
}

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

core::nanoseconds steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
           std::chrono::steady_clock::now().time_since_epoch())
    .count();
}

} // namespace shoal::actors
