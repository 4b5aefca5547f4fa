// runtime/core/planner_version.hpp -- which plans this program computes, and which
// checkpoints it begins.
#pragma once

#include <cstdint>

namespace shoal::core {

/// Raised whenever the same view would give another plan, or the same votes and
/// seals another step at which a checkpoint begins (C-3). All peers of a shoal
/// compute these by themselves and must get the same, so members of unlike
/// versions refuse each other when they connect. Every view names the
/// version of the peers that agreed on it.
///
/// Alone in its object file: a program that is linked with another definition
/// is a peer of another version, as tests need one.
extern const std::uint32_t planner_version;

} // namespace shoal::core
