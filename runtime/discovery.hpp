// runtime/discovery.hpp -- how nodes of one cluster find each other.
//
// A node sends a beacon by IPv4 multicast: on loopback always, on the other
// interfaces unless it serves loopback only. A beacon names the port to dial
// and carries a keyed hash, so that strangers learn neither the cluster nor
// its key, and theirs are ignored. A beacon only says where to dial: who
// answers must still prove itself over TLS.
//
// Threads: one own; found() is called on it and must not wait.
// Cost:    one datagram per interface a second while alone, one in five
//          seconds else.
#pragma once

#include "runtime/core/ids.hpp"
#include "transport/tls/identity.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shoal::runtime {

/// What one datagram says.
struct beacon {
  std::uint16_t port = 0;               ///< of the TLS listener
  std::array<std::uint8_t, 8> sender{}; ///< first bytes of the peer's id
  std::array<std::uint8_t, 16> nonce{};
  bool alone = false; ///< the sender knows nobody: answer soon
};

/// Where beacons go: a group of the local scope (RFC 2365), one hop far.
inline constexpr const char* discovery_group = "239.255.83.72";
inline constexpr std::uint16_t discovery_port = 18372;
inline constexpr std::size_t discovery_interfaces_max = 32;

/// magic 4, version 1, flags 1, port 2, sender 8, nonce 16, proof 32.
inline constexpr std::size_t beacon_bytes = 64;

std::array<std::byte, beacon_bytes>
encode_beacon(const beacon& b, const std::string& cluster,
              const transport::tls::shared_key& key);

/// @returns nothing for what is malformed or of another cluster or key.
std::optional<beacon>
decode_beacon(std::span<const std::byte> bytes, const std::string& cluster,
              const transport::tls::shared_key& key);

struct discovery_config {
  std::string cluster;
  transport::tls::shared_key key{};
  core::peer_id self{};
  std::uint16_t port = 0; ///< of our TLS listener
  /// What the listener is bound to: a loopback address (beacons stay on this
  /// machine), "0.0.0.0" (all interfaces) or the address of one interface.
  std::string host = "127.0.0.1";
  /// "host:port" of a node that sent a beacon; may come again and again.
  std::function<void(const std::string& address, std::uint64_t sender)> found;
  std::function<void(const std::string& line)> say;
};

class discovery {
public:
  /// Starts; says once what does not work (no multicast) and goes on.
  explicit discovery(discovery_config config);
  ~discovery();

  /// The first key signs; all are listened to: a peer that was away while the
  /// key was replaced still sends by the old one. @pre not empty
  void set_keys(std::vector<transport::tls::shared_key> keys);

  /// Whether any other peer is known: beacons are then rare.
  void set_alone(bool alone);

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::runtime
