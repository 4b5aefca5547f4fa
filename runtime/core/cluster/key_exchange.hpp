// runtime/core/cluster/key_exchange.hpp -- replaces the cluster key.
//
// A new key is offered to every member except the one that is to be revoked.
// The peer that makes the offer wishes for a view that revokes that peer and
// names the new key. It does so when all reachable members hold the key on
// disk, or, after offer_patience, when a quorum of the members that stay does.
// So every voter that decides that view can follow it, and a member that was
// away can get the key from any other.
//
// Invariants
// K-1: a key is offered, and sent on request, to members only, and never to
//      the peer that it was made to exclude.
// K-2: a revocation is valid only while the key that was in use when its new
//      key was made still is: of two revocations at a time, each subject would
//      otherwise know the other's new key.
// K-3: the current key and those offered are persisted before a view or an
//      answer relies on them.
// K-4: a shoal joins no shoal whose key it has replaced: a peer that was
//      revoked here could be a member there (rival_shoals.hpp).
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

  /// Starts to use the key that the view names, if this peer has it.
  /// @returns whether to ask the other members for the key: request()
  bool follow(const situation& s, actions& out);
  void request(const situation& s, std::vector<peer_id> members, actions& out);

  /// Whether a key is being offered to the members.
  bool is_offering() const { return offer_.has_value(); }
  /// Repeats the offer, or ends it. @param reachable members, self too
  /// @returns the change to wish for once enough members hold the key
  std::optional<change>
  go_on(const situation& s, const std::vector<peer_id>& reachable,
        actions& out);
  /// The view has settled our wish for this change. If it was a revocation that
  /// failed, tells the user.
  void settled(const change& c, const view& v, actions& out);

  /// When follow() or go_on() next has something to do, after `now`.
  nanoseconds deadline(nanoseconds now) const;

private:
  /// A new key that is sent to all members but the peer to be revoked.
  struct offering {
    revoke_peer what;
    key_digest digest{};
    key_digest old_key{};
    std::vector<peer_id> held;     ///< by these members
    nanoseconds patient_until = 0; ///< from then on a quorum is enough
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
  std::map<key_digest, std::uint64_t> revocations_; ///< tags of our
                                                    ///< revocations, by new key
};

} // namespace shoal::core::cluster
