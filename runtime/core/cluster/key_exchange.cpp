// runtime/core/cluster/key_exchange.cpp -- replaces the cluster key.
#include "runtime/core/cluster/key_exchange.hpp"

#include "runtime/core/cluster/local/times.hpp"
#include "runtime/core/random.hpp"

#include <algorithm>

namespace shoal::core::cluster {

void key_exchange::revoke(const revoke_peer& e, const situation& s,
                          actions& out) {
  auto refuse = [&](std::string why) {
    out.push_back(rejected{std::move(why), e.tag});
  };
  if (!keys_.can_be_replaced() || config_.embedded)
    return refuse("this peer cannot replace the cluster key");
  if (e.peer == s.self.id.peer)
    return refuse("a peer cannot revoke itself: ask another one");
  if (is_revoked(s.current, e.peer))
    return refuse("this peer is revoked already");
  if (s.phase != phase::member)
    return refuse("this peer has no quorum now");
  if (offer_ || !revocations_.empty())
    return refuse("another revocation is under way: try again");
  hold(e.key, out);
  offer_ = offering{e,
                    keys_.digest(e.key),
                    s.current.key,
                    {},
                    s.now + config_.offer_patience,
                    s.now + config_.offer_max,
                    s.now};
}

void key_exchange::hold(const cluster_key& key, actions& out) {
  if (keys_.hold(key))
    keep(out);
}

void key_exchange::keep(actions& out) const {
  if (!config_.embedded)
    out.push_back(persist{keys_.record()}); // K-3
  out.push_back(use_keys{keys_.record()});
}

void key_exchange::on(const peer_id& from, const key_offer& m,
                      const situation& s, actions& out) {
  if (!keys_.can_be_replaced() || m.shoal != s.current.shoal
      || find_member(s.current, from) == nullptr)
    return;
  hold(m.key, out);
  out.push_back(send{{from}, key_held{s.current.shoal, keys_.digest(m.key)}});
}

void key_exchange::on(const peer_id& from, const key_held& m,
                      const situation& s) {
  if (offer_ && m.shoal == s.current.shoal && m.key == offer_->digest
      && std::ranges::find(offer_->held, from) == offer_->held.end())
    offer_->held.push_back(from);
}

void key_exchange::on(const peer_id& from, const key_request& m,
                      const situation& s, actions& out) {
  if (!keys_.can_be_replaced() || m.shoal != s.current.shoal
      || m.key != s.current.key
      || find_member(s.current, from) == nullptr // K-1
      || keys_.digest(keys_.current()) != m.key)
    return;
  out.push_back(send{{from}, key_offer{s.current.shoal, keys_.current()}});
}

bool key_exchange::follow(const situation& s, actions& out) {
  if (keys_.fits(s.current)) {
    ask_at_ = 0;
    return false;
  }
  if (keys_.take_into_use(s.current)) {
    ask_at_ = 0;
    keep(out);
    out.push_back(log{"the cluster key was replaced"});
    return false;
  }
  return s.now >= ask_at_;
}

void key_exchange::request(const situation& s, std::vector<peer_id> members,
                           actions& out) {
  ask_at_ = s.now + retry_interval;
  std::erase(members, s.self.id.peer);
  if (!members.empty())
    out.push_back(
      send{std::move(members), key_request{s.current.shoal, s.current.key}});
}

/// Whether the members that stay and hold the new key can go on without the
/// rest.
bool key_exchange::offer_is_held(const situation& s) const {
  view rest;
  rest.members = s.current.members;
  std::erase_if(rest.members, [&](const member& m) {
    return m.id.peer == offer_->what.peer;
  });
  std::vector<peer_id> held = offer_->held;
  held.push_back(s.self.id.peer);
  return is_quorum(rest, held);
}

std::optional<change>
key_exchange::go_on(const situation& s, const std::vector<peer_id>& reachable,
                    actions& out) {
  if (!offer_)
    return std::nullopt;
  auto refuse = [&](const char* why) {
    out.push_back(rejected{why, offer_->what.tag});
    offer_.reset();
    return std::nullopt;
  };
  if (s.current.key != offer_->old_key) // K-2
    return refuse("the cluster key was replaced meanwhile: try again");
  std::vector<peer_id> lacking = reachable;
  std::erase_if(lacking, [&](const peer_id& id) {
    return id == s.self.id.peer || id == offer_->what.peer
           || std::ranges::find(offer_->held, id) != offer_->held.end();
  });
  const bool enough = lacking.empty() || s.now >= offer_->patient_until;
  if (enough && s.phase == phase::member && offer_is_held(s)) {
    change c;
    c.kind = change_kind::revoke;
    c.subject.peer = offer_->what.peer;
    c.key = offer_->digest;
    c.old_key = offer_->old_key;
    revocations_[c.key] = offer_->what.tag;
    offer_.reset();
    return c;
  }
  if (s.now >= offer_->until)
    return refuse("too few members took the new cluster key");
  if (s.now >= offer_->next_at && !lacking.empty()) {
    offer_->next_at = s.now + retry_interval;
    out.push_back(send{std::move(lacking),
                       key_offer{s.current.shoal, offer_->what.key}}); // K-1
  }
  return std::nullopt;
}

void key_exchange::settled(const change& c, const view& v, actions& out) {
  const auto own = revocations_.find(c.key);
  if (own == revocations_.end())
    return;
  if (!is_revoked(v, c.subject.peer))
    out.push_back(rejected{"the cluster key was replaced meanwhile: try again",
                           own->second});
  revocations_.erase(own);
}

nanoseconds key_exchange::deadline(nanoseconds now) const {
  nanoseconds due = time_max;
  auto soon = [&](nanoseconds when) {
    if (when > now)
      due = std::min(due, when);
  };
  soon(ask_at_);
  if (offer_) {
    soon(offer_->next_at);
    soon(offer_->patient_until);
    soon(offer_->until);
  }
  return due;
}

} // namespace shoal::core::cluster
