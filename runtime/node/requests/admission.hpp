// runtime/node/requests/admission.hpp -- who may be a peer of this node: keys,
// invites and revocations.
//
// The cluster core decides, by views and key records. From both follows the
// keyring by which the transport admits peers; the key in use is kept on disk.
// What clients ask (an invite, its use, a revocation) goes to the core, and is
// answered when a view says so.
//
// Threads:   named at each member. The host is called on the same thread.
// Ownership: host, nodes and requests outlive it.
// Errors:    a request that cannot be met is answered with the reason.
#pragma once

#include "runtime/core/cluster/local/key_ring.hpp"
#include "runtime/core/result.hpp"
#include "runtime/node/requests/request_host.hpp"
#include "runtime/node/state/known_nodes.hpp"
#include "runtime/node/state/waiting_requests.hpp"
#include "transport/tls/fabric.hpp" // refusal
#include "transport/tls/keyring.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace shoal::runtime {

/// What admission asks of its node.
class admission_host : public request_host {
public:
  /// "host:port" where this node listens.
  virtual std::string listener() const = 0;
  /// The transport admits by this ring from now on.
  /// @param others_go peers that were admitted by another key are disconnected
  virtual void use(transport::tls::keyring ring, bool others_go) = 0;
  /// Whether the node is a member that is in contact with others.
  virtual bool among_others() const = 0;
  virtual bool ending() const = 0;
  /// The node cannot go on.
  virtual void end(const std::string& why) = 0;
};

struct admission_config {
  core::peer_id self{};
  std::string cluster;
  core::cluster::key_record keys; ///< at the start
  std::filesystem::path key_dir;  ///< keeps the key; empty: not kept
};

class admission {
public:
  using clock = std::chrono::steady_clock;

  admission(admission_config config, admission_host& node, known_nodes& nodes,
            waiting_requests& requests);

  // Membership actor's thread.
  /// The keys have changed; comes before the view that names a new one.
  void use_keys(const core::cluster::key_record& keys);
  /// A view takes effect. Ends a node that it revokes.
  void adopt(const core::view& v);
  /// No member admits this node. Ends it.
  void shut_out();

  // Control's thread.
  void invite(std::uint64_t token, const make_invite& r);
  void redeem(std::uint64_t token, const use_invite& r);
  void revoke_peer(std::uint64_t token, const revoke& r);

  // TLS progress thread.
  /// The node at `address` refuses this one. Ends it if another process has
  /// its identity.
  void refused(transport::tls::refusal why, const std::string& address,
               std::int64_t unix_ms, clock::time_point now);

private:
  struct revocable {
    core::peer_id peer{};
    std::string name;     ///< may be empty
    bool strange = false; ///< no peer that this node knows
  };
  /// The peer that `revoke WORD` means, or why there is none.
  model::result<revocable>
  find_revocable(const core::view& v, const std::string& word);

  /// A line about the former members that a replaced key still admits; empty if
  /// there is none.
  std::string may_return(const core::view& v) const;

  void duplicate(const std::string& address, clock::time_point now);
  void refuse(std::uint64_t token, std::string why);

  const admission_config config_;
  admission_host& node_;
  known_nodes& nodes_;
  waiting_requests& requests_;

  // Membership actor's thread.
  core::cluster::key_record keys_;
  bool keys_changed_ = false; ///< since the last view

  // TLS progress thread.
  std::optional<clock::time_point> duplicate_since_;
  clock::time_point duplicate_at_{};
};

} // namespace shoal::runtime
