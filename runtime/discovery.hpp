// runtime/discovery.hpp -- how nodes of one cluster find each other.
//
// A node sends beacons by multicast of both IP families (node/multicast.hpp):
// on loopback always, on the other interfaces unless it serves loopback only.
// A beacon (node/beacon.hpp) names the address and port to dial and carries a
// keyed hash, so that strangers learn neither the cluster nor its key, and
// theirs are ignored. A beacon is only a hint: who answers must still prove
// itself over TLS. What repeated and too many beacons can do is bounded in
// node/beacon_filter.hpp; no machine's clock matters to another.
//
// Threads: one own; found(), connected() and counted() are called on it and
//          must not wait.
// Cost:    one datagram per interface and family a second while alone, one in
//          five seconds else.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/node/beacon_filter.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {

struct discovery_config {
  std::string cluster;
  transport::tls::shared_key key{};
  core::peer_id self{};
  /// What the listener is bound to, "host:port": of a loopback address
  /// (beacons stay on this machine), 0.0.0.0 (IPv4 on all interfaces), ::
  /// (both families) or one interface's address.
  std::string listener;
  /// Whether a peer is connected, by the first bytes of its id; may be empty.
  std::function<bool(std::uint64_t sender)> connected;
  /// "host:port" of a node that sent a beacon and is not; may come again.
  std::function<void(const std::string& address)> found;
  /// What became of the datagrams so far; may be empty.
  std::function<void(const beacon_counts&)> counted;
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
