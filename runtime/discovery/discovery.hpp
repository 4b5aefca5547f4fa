// runtime/discovery/discovery.hpp -- how nodes of one cluster find each other.
//
// A node sends beacons by multicast of both IP families (multicast.hpp): always
// on loopback, and on the other interfaces unless it serves loopback only. A
// beacon (beacon.hpp) names the address and port to dial and carries a keyed
// hash, so that strangers learn neither the cluster nor its key, and their
// beacons are ignored. A beacon is only a hint: the node that answers must
// still prove itself over TLS. beacon_filter.hpp bounds the effect of repeated
// and excessive beacons. The clock of a machine does not matter to any other.
//
// Threads: one of its own, which calls the handler.
// Ownership: the handler outlives it.
// Cost:    one datagram per interface and family a second while alone,
//          otherwise one in five seconds.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/discovery/beacon_filter.hpp"

#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {

struct discovery_config {
  std::string cluster;
  transport::tls::shared_key key{};
  core::peer_id self{};
  /// The address that the listener is bound to, "host:port": a loopback address
  /// (beacons stay on this machine), 0.0.0.0 (IPv4 on all interfaces), ::
  /// (both families) or one interface's address.
  std::string listener;
};

/// What discovery tells and asks its node. On its thread; must not wait.
class discovery_handler {
public:
  virtual ~discovery_handler() = default;
  /// Whether a peer is connected, by the first bytes of its id.
  virtual bool connected(std::uint64_t sender) const = 0;
  /// "host:port" of a node that sent a beacon and is not; may come again.
  virtual void found(const std::string& address) = 0;
  /// The outcomes of datagrams so far.
  virtual void counted(const beacon_counts& counts) = 0;
  /// A datagram came from this host that is of no node of this cluster and key,
  /// or of no node at all.
  virtual void strange(const std::string& host) = 0;
  virtual void say(const std::string& line) = 0;
};

class discovery {
public:
  /// Starts; says once which parts do not work (no multicast) and goes on.
  discovery(discovery_config config, discovery_handler& node);
  ~discovery();

  /// The first key signs; beacons by any of them are heard: a peer that was
  /// away while the key was replaced still sends with the old one. @pre not
  /// empty
  void set_keys(std::vector<transport::tls::shared_key> keys);

  /// Whether any other peer is known: beacons are then rare.
  void set_alone(bool alone);

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::runtime
