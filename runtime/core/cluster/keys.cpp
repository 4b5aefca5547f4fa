// runtime/core/cluster/keys.cpp -- replacing the cluster key, and invites.
//
// A new key is offered to every member but the one that is to go. When all
// that can be reached hold it on disk, or a quorum of those that stay after
// offer_patience, the view is wished for that revokes the peer and names the
// new key. So whoever decides that view can follow it, and whoever was away
// gets the key from any other member.
//
// Invariants
// K-1: a key is offered, and sent on request, to members only, and never to
//      the peer that it was made to exclude.
// K-2: a revocation holds only for the key that was in use when its own was
//      made: of two at a time, one key would be known to the other's subject.
// K-3: the current key and those offered are persisted before a view or an
//      answer counts on them.
// K-4: a shoal joins no shoal whose key it has replaced: who was revoked here
//      could be a member there.
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>

namespace shoal::core::cluster {

using impl = membership::impl;

void impl::on(const revoke_peer& e) {
  auto refuse = [&](std::string why) {
    out_->push_back(rejected{std::move(why), e.tag});
  };
  if (config_.digest_key == nullptr || config_.embedded)
    return refuse("this peer cannot replace the cluster key");
  if (e.peer == config_.self.id.peer)
    return refuse("a peer cannot revoke itself: ask another one");
  if (is_revoked(view_, e.peer))
    return refuse("this peer is revoked already");
  if (phase_ != phase::member)
    return refuse("this peer has no quorum now");
  if (offer_ || !revocations_.empty())
    return refuse("another revocation is under way: try again");
  hold_key(e.key);
  offer_ =
    offering{e,   config_.digest_key(e.key),     view_.key,
             {},  now_ + config_.offer_patience, now_ + config_.offer_max,
             now_};
}

/// @returns whether the key is new. @pre digest_key is given
bool impl::hold_key(const cluster_key& key) {
  auto& p = keys_.pending;
  if (key == keys_.current || std::ranges::find(p, key) != p.end())
    return false;
  p.push_back(key);
  if (p.size() > keys_pending_max)
    p.erase(p.begin());
  keep_keys();
  return true;
}

void impl::keep_keys() {
  if (!config_.embedded)
    out_->push_back(persist{keys_}); // K-3
  out_->push_back(use_keys{keys_});
}

void impl::on(const peer_id& from, const key_offer& m) {
  if (config_.digest_key == nullptr || m.shoal != view_.shoal
      || find_member(view_, from) == nullptr)
    return;
  hold_key(m.key);
  send_to(from, key_held{view_.shoal, config_.digest_key(m.key)});
}

void impl::on(const peer_id& from, const key_held& m) {
  if (offer_ && m.shoal == view_.shoal && m.key == offer_->digest
      && std::ranges::find(offer_->held, from) == offer_->held.end())
    offer_->held.push_back(from);
}

void impl::on(const peer_id& from, const key_request& m) {
  if (config_.digest_key == nullptr || m.shoal != view_.shoal
      || m.key != view_.key || find_member(view_, from) == nullptr // K-1
      || config_.digest_key(keys_.current) != m.key)
    return;
  send_to(from, key_offer{view_.shoal, keys_.current});
}

/// Takes the key into use that the view names, or asks for it.
void impl::follow_key() {
  if (config_.digest_key == nullptr || view_.key == key_digest{}
      || view_.key == config_.digest_key(keys_.current)) {
    ask_key_at_ = 0;
    return;
  }
  auto& p = keys_.pending;
  auto at = std::ranges::find(p, view_.key, config_.digest_key);
  if (at != p.end()) {
    keys_.replaced.push_back(keys_.current);
    if (keys_.replaced.size() > keys_replaced_max)
      keys_.replaced.erase(keys_.replaced.begin());
    keys_.current = *at;
    p.erase(at);
    ask_key_at_ = 0;
    keep_keys();
    say("the cluster key was replaced");
    return;
  }
  if (now_ < ask_key_at_)
    return;
  ask_key_at_ = now_ + retry_interval;
  std::vector<peer_id> to = reachable();
  std::erase(to, config_.self.id.peer);
  if (!to.empty())
    out_->push_back(send{std::move(to), key_request{view_.shoal, view_.key}});
}

key_age impl::age_of_key(const hello& said) const {
  if (config_.digest_key == nullptr || said.key == key_digest{})
    return key_age::same;
  const key_digest own = config_.digest_key(keys_.current);
  if (said.key == own)
    return key_age::same;
  if (std::ranges::find(said.replaced, own) != said.replaced.end())
    return key_age::newer;
  bool older = std::ranges::find(keys_.replaced, said.key, config_.digest_key)
               != keys_.replaced.end();
  return older ? key_age::older : key_age::unrelated;
}

/// Whether those that stay, and hold the new key, can go on without the rest.
bool impl::offer_is_held() const {
  view rest;
  rest.members = view_.members;
  std::erase_if(rest.members, [&](const member& m) {
    return m.id.peer == offer_->what.peer;
  });
  std::vector<peer_id> held = offer_->held;
  held.push_back(config_.self.id.peer);
  return is_quorum(rest, held);
}

void impl::refresh_offer() {
  if (!offer_)
    return;
  auto refuse = [&](const char* why) {
    out_->push_back(rejected{why, offer_->what.tag});
    offer_.reset();
  };
  if (view_.key != offer_->old_key) // K-2
    return refuse("the cluster key was replaced meanwhile: try again");
  std::vector<peer_id> to = reachable();
  std::erase_if(to, [&](const peer_id& id) {
    return id == config_.self.id.peer || id == offer_->what.peer
           || std::ranges::find(offer_->held, id) != offer_->held.end();
  });
  const bool over = now_ >= offer_->until;
  const bool enough = to.empty() || now_ >= offer_->patient_until;
  if (enough && phase_ == phase::member && offer_is_held()) {
    change c;
    c.kind = change_kind::revoke;
    c.subject.peer = offer_->what.peer;
    c.key = offer_->digest;
    c.old_key = offer_->old_key;
    revocations_[c.key] = offer_->what.tag;
    offer_.reset();
    wish(std::move(c));
  } else if (over) {
    refuse("too few members took the new cluster key");
  } else if (now_ >= offer_->next_at && !to.empty()) {
    offer_->next_at = now_ + retry_interval;
    out_->push_back(
      send{std::move(to), key_offer{view_.shoal, offer_->what.key}}); // K-1
  }
}

void impl::on(const add_invite& e) {
  if (wishes_.changes.size() >= wishes_max)
    return;
  change c;
  c.kind = change_kind::invite;
  c.invite = e.invite;
  wish(std::move(c));
}

void impl::on(const redeem_invite& e) {
  if (wishes_.changes.size() >= wishes_max)
    return;
  change c;
  c.kind = change_kind::redeem;
  c.invite.key = e.token;
  c.subject.peer = e.peer;
  if (!settled(c, view_))
    wish(std::move(c));
}

} // namespace shoal::core::cluster
