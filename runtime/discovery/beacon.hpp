// runtime/discovery/beacon.hpp -- one datagram of discovery.
//
// It says: a node of this cluster can be dialled at this address. The proof, an
// HMAC by the cluster key, covers every byte before it and the cluster's name.
#pragma once

#include "runtime/host/ip_address.hpp"
#include "transport/tls/identity.hpp" // shared_key

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace shoal::runtime {

struct beacon {
  std::uint16_t port = 0;               ///< of the TLS listener
  std::array<std::uint8_t, 8> sender{}; ///< first bytes of the peer's id
  /// Microseconds since 1970 by the sender's clock; each beacon of a sender has
  /// a later one. It says nothing about any other clock.
  std::uint64_t time = 0;
  ip_address address{}; ///< of the listener, as reached over this network
  bool alone = false;   ///< the sender knows no other node: answer soon
};

/// magic 4, version 1, flags 1, port 2, sender 8, time 8, address 16, proof 32.
inline constexpr std::size_t beacon_bytes = 72;
inline constexpr std::size_t beacon_head_bytes = beacon_bytes - 32;

std::array<std::byte, beacon_bytes>
encode_beacon(const beacon& b, const std::string& cluster,
              const transport::tls::shared_key& key);

/// @returns nothing if it is malformed or of another cluster or key.
std::optional<beacon>
decode_beacon(std::span<const std::byte> bytes, const std::string& cluster,
              const transport::tls::shared_key& key);

} // namespace shoal::runtime
