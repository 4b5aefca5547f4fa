// tests/runtime/core/training/wild_seals.hpp -- seals that pass the codec but
// need not fit each other, and the invariants of a decision for any seals.
//
// Numbers come from small sets, so that versions, checkpoints and digests of
// different peers coincide. A decision is checked by throwing on the first
// claim that does not hold; the text names the claim.
#pragma once

#include "runtime/core/training/resume.hpp"

#include <functional>

namespace shoal::tests {

/// A number below `n`; of randomness, or of the bytes of a fuzzer.
using choice = std::function<std::uint64_t(std::uint64_t n)>;

/// An assignment and one seal for each of its sealers.
struct sealed_place {
  core::island_place place;
  std::uint32_t blocks = 0;
  std::uint64_t origin_step = 0;
  std::uint64_t interval = 0;
  std::map<core::peer_id, core::seal> seals;
};

sealed_place wild_seals(const choice& below);

/// Decides twice and checks the decision.
/// @throws std::logic_error naming what does not hold
void check_decision(const sealed_place& s);

} // namespace shoal::tests
