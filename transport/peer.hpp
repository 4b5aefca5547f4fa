// transport/peer.hpp -- the id and the role of a peer.
//
// A peer's id is the SHA-256 of its Ed25519 public key, so no peer can claim
// the id of another. The same 32 bytes name a peer in every layer.
#pragma once

#include <array>
#include <cstdint>

namespace shoal::transport {

/// SHA-256 of a peer's raw Ed25519 public key.
using peer_id = std::array<std::uint8_t, 32>;

/// The role that the other end asked for when it proved the key.
enum class peer_role : std::uint8_t {
  member = 1,  ///< a peer that wants to be, or is, part of the shoal
  client = 2,  ///< a command line: may ask and submit, never votes
  invitee = 3, ///< holds an invite: may ask for the cluster key only
};

} // namespace shoal::transport
