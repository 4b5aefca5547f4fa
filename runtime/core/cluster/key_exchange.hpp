// runtime/core/cluster/key_exchange.hpp -- replaces the cluster key.
//
// A new key is offered to every member but the one that is to go. When all
// that can be reached hold it on disk, or a quorum of those that stay after
// offer_patience, the view is wished for that revokes the peer and names the
// new key. So every voter that decides that view can follow it, and a member
// that was away gets the key from any other.
//
// Invariants
// K-1: a key is offered, and sent on request, to members only, and never to
//      the peer that it was made to exclude.
// K-2: a revocation holds only for the key that was in use when its own was
//      made: of two at a time, one key would be known to the other's subject.
// K-3: the current key and those offered are persisted before a view or an
//      answer counts on them.
// K-4: a shoal joins no shoal whose key it has replaced: a peer that was
//      revoked here could be a member there (rival_shoals.hpp).
//
// Threads: one at a time; see membership.hpp.
#pragma once

#include "runtime/core/cluster/events.hpp"
#include "runtime/core/cluster/local/situation.hpp"

#include <map>
#include <optional>

namespace shoal::core::cluster {

struct key_exchange_config {
  bool embedded = false; ///< stores nothing
  nanoseconds offer_patience = 0;
  nanoseconds offer_max = 0;
};

class key_exchange {
public:
  key_exchange(key_exchange_config c, key_ring keys)
    : config_(c), keys_(std::move(keys)) {}

  key_ring& keys() { return keys_; }
  const key_ring& keys() const { return keys_; }

  /// Begins to offer the new key, or says why it cannot.
  void revoke(const revoke_peer& e, const situation& s, actions& out);
  void
  on(const peer_id& from, const key_offer& m, const situation& s, actions& out);
  void on(const peer_id& from, const key_held& m, const situation& s);
  void on(const peer_id& from, const key_request& m, const situation& s,
          actions& out);

  /// Takes the key into use that the view names, if it is here.
  /// @returns whether the other members are to be asked for it: request()
  bool follow(const situation& s, actions& out);
  void request(const situation& s, std::vector<peer_id> members, actions& out);

  /// A key is on its way to the members.
  bool is_offering() const { return offer_.has_value(); }
  /// Repeats the offer, or ends it. @param reachable members, self too
  /// @returns the change to wish for once enough members hold the key
  std::optional<change>
  go_on(const situation& s, const std::vector<peer_id>& reachable,
        actions& out);
  /// A wish of ours for this change is settled by the view: tells the user if
  /// it was a revocation that has failed.
  void settled(const change& c, const view& v, actions& out);

  /// When follow() or go_on() has something to do, after `now`.
  nanoseconds deadline(nanoseconds now) const;

private:
  /// A new key on its way to all but the peer to be revoked.
  struct offering {
    revoke_peer what;
    key_digest digest{};
    key_digest old_key{};
    std::vector<peer_id> held;     ///< by these members
    nanoseconds patient_until = 0; ///< then a quorum is enough
    nanoseconds until = 0;
    nanoseconds next_at = 0;
  };

  void hold(const cluster_key& key, actions& out);
  void keep(actions& out) const;
  bool offer_is_held(const situation& s) const;

  key_exchange_config config_;
  key_ring keys_;
  std::optional<offering> offer_;
  nanoseconds ask_at_ = 0; ///< when to ask for the view's key; 0: no need
  std::map<key_digest, std::uint64_t> revocations_; ///< own wishes: their tags
};

} // namespace shoal::core::cluster
