// tests/support/held_parts.hpp -- single questions about who holds what.
#pragma once

#include "runtime/core/state/holdings.hpp"
#include "runtime/core/state/parts.hpp"

#include <vector>

namespace shoal::core {

/// The parts that `peer` holds at every step.
inline part_set held_by(const island_place& a, const peer_id& peer) {
  return holdings(a).of(peer).held;
}
inline part_set followed_by(const island_place& a, const peer_id& peer) {
  return holdings(a).of(peer).follows;
}
inline part_set arriving_at(const island_place& a, const peer_id& peer) {
  return holdings(a).of(peer).arrives;
}
inline std::vector<peer_id> participants_of(const island_place& a) {
  return holdings(a).participants();
}
/// The parts of a stage.
inline part_range
parts_of(const island_place& a, std::uint32_t replica, std::uint32_t stage) {
  const auto& stages = a.replicas.at(replica).stages;
  return parts_of_stage(stages.at(stage), stage == 0,
                        stage + 1 == stages.size());
}
inline std::uint32_t copies_of(const island_place& a, std::uint32_t blocks) {
  return holdings(a).least_copies(part_table(blocks));
}

} // namespace shoal::core
