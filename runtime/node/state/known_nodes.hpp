// runtime/node/state/known_nodes.hpp -- what this process knows of other nodes:
// connected peers, absent peers, and nodes that do not belong to its shoal.
//
// A node's statement about itself proves nothing to others, so all of this is
// only shown to users: in `shoal status`, in replies, and in the lines that
// members return to be logged. A line is returned once for each node and
// reason. Times are milliseconds of Unix time.
//
// Threads: any; no lock is held when a member has returned.
#pragma once

#include "runtime/core/cluster/messages.hpp"
#include "runtime/discovery/apart_nodes.hpp"
#include "runtime/discovery/beacon_filter.hpp"
#include "runtime/node/state/absent_peers.hpp"
#include "runtime/work/capped_map.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <set>

namespace shoal::runtime {

/// The shoal that a connected peer last reported: perhaps another.
struct shoal_of_peer {
  core::shoal_id shoal{};
  std::string name; ///< of the peer
  std::uint32_t members = 0;
  std::uint32_t running = 0;              ///< jobs
  std::vector<core::shoal_id> superseded; ///< those that it replaced by force
  std::int64_t heard_ms = 0;
};

class known_nodes {
public:
  /// Limit of the peers whose hello is remembered while they are connected: as
  /// many as the transport has connections (tls::config::connections_max), and
  /// this node. A hello that is processed after its peer has disconnected
  /// stays; hence the limit.
  static constexpr std::size_t peers_heard_max = 1025;
  /// A peer of another shoal says hello every second. One that is silent for
  /// this long cannot be reached, even if its connection has not ended yet.
  static constexpr std::int64_t stranger_silence_ms = 5000;
  using line = std::optional<std::string>;
  using view = std::shared_ptr<const core::view>;

  known_nodes(std::string cluster, std::int64_t started_ms)
    : cluster_(std::move(cluster)), absent_(started_ms) {}

  void connected(const core::peer_id& peer);
  void disconnected(const core::peer_id& peer, std::int64_t now_ms);
  /// The hello of a peer that has connected: it holds our key.
  line heard(const core::peer_id& from, const core::cluster::hello& said,
             std::int64_t now_ms);
  /// The program version of this node itself.
  void version(const core::peer_id& self, const std::string& text);
  /// A view has taken effect. `before` may be null.
  void adopted(const core::view* before, view now, std::int64_t now_ms);
  /// A member of the view that has the name of `self`, each once.
  line namesake(const core::peer_id& self);
  /// The keys in use admit the members of the view.
  void admitted(const core::view& v);

  /// The fingerprint of the cluster key in use.
  void uses_key(std::string fingerprint);
  /// A node of this shoal answers at an address.
  void reached(const std::string& address);
  /// A dial has ended without proof of the other end's identity. A member at
  /// that address may use another key, or this node does.
  line not_proved(const std::string& address, std::int64_t now_ms);
  /// The other end refuses this node, with a reason.
  line refused(const std::string& address, const std::string& why,
               std::int64_t now_ms);
  /// The other end refuses this node, since its build of shoal computes other
  /// plans. It may be a member.
  line plans_otherwise(const std::string& address, const std::string& why,
                       std::int64_t now_ms);
  /// The statement of one peer, which may itself have been revoked.
  void revoked_by(const std::string& address, std::int64_t now_ms);
  /// Nobody's statement of that kind counts any more.
  void refute();
  /// A sender of beacons that has proved nothing: it may name many hosts.
  line strange(const std::string& host, std::int64_t now_ms);
  void counted(const beacon_counts& counts);

  /// "NAME (ADDRESS) said at ..." for the first peer that reported this node as
  /// revoked; empty: none.
  std::string accuser() const;
  /// The last node that refused this one because of its build; empty: none
  /// since a peer has connected.
  std::string other_build() const;
  /// "NAME at ADDRESS, ..." of the members among `missing` that answer and do
  /// not prove this node's key; empty: none.
  std::string unproved(const std::vector<core::member>& missing) const;
  /// The fingerprint of the cluster key in use.
  std::string key_in_use() const;
  /// The member of the view that a user means. @pre a view was adopted
  absent_peers::meant find(const std::string& word, std::int64_t now_ms) const;
  /// As absent_peers::gone().
  std::vector<core::peer_id> gone(const std::string& name) const;
  /// As absent_peers::names().
  std::vector<std::string> names(const std::vector<core::peer_id>& peers) const;
  /// Why a member of the view cannot be asked. @pre a view was adopted
  std::string unreachable(const core::peer_id& peer, std::int64_t now_ms) const;

  /// For status.
  struct summary {
    std::map<core::peer_id, std::string> versions;
    std::map<core::peer_id, shoal_of_peer> strangers;
    std::vector<apart_node> apart;
    beacon_counts beacons;
    std::vector<former_member> former; ///< as absent_peers::former()
  };
  summary all(std::int64_t now_ms) const;

private:
  line
  met(const std::string& address, const std::string& why, std::int64_t now_ms);
  bool is_of_a_member(const std::string& address) const;
  bool is_host_of_a_member(const std::string& host) const;

  const std::string cluster_;
  mutable std::mutex mutex_; ///< guards what follows
  view view_;
  capped_map<core::peer_id, std::string, peers_heard_max> versions_;
  capped_map<core::peer_id, shoal_of_peer, peers_heard_max> strangers_;
  absent_peers absent_;
  apart_nodes apart_;
  beacon_counts beacons_;
  std::string shown_key_;
  std::string other_build_;
  /// Addresses of members at which a node answers without proving the key: at
  /// most those of a view.
  std::set<std::string> unproved_;
  std::set<core::peer_id> namesakes_; ///< reported, and still members
  bool key_replaced_ = false;         ///< it is not the shoal's first key
  std::string refused_by_; ///< an address that has just given the reason
  std::string accuser_;
};

} // namespace shoal::runtime
