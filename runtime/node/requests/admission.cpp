// runtime/node/requests/admission.cpp -- views and key records to a keyring,
// requests to the core.
#include "runtime/node/requests/admission.hpp"

#include "runtime/control/invite.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/discovery/own_addresses.hpp"
#include "runtime/identity/identity.hpp"
#include "runtime/wire/codec.hpp"

#include <algorithm>
#include <utility>

namespace shoal::runtime {

namespace cl = core::cluster;

/// A process whose predecessor has just died is taken for a second one until
/// its peers have noticed: shorter is no reason to give up.
static constexpr std::chrono::seconds duplicate_patience{4};
static constexpr std::chrono::seconds duplicate_memory{10};
/// Digits of an id that name a peer to revoke.
static constexpr std::size_t revoked_digits_min = 8;

/// What is left to do with a revoked node.
static constexpr const char* new_identity =
  "It cannot come back with this identity. To let it in again, run `shoal "
  "invite --out FILE` on a member, and here `shoal node --name NEW_NAME "
  "--join-token-file FILE` (with another --data-dir, if you name one)";

static std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

admission::admission(admission_config config, admission_host& node,
                     known_nodes& nodes, waiting_requests& requests)
  : config_(std::move(config)), node_(node), nodes_(nodes), requests_(requests),
    keys_(config_.keys) {
  nodes_.uses_key(key_fingerprint(keys_.current));
}

void admission::refuse(std::uint64_t token, std::string why) {
  node_.answer(token, {0, std::move(why), {}, {}});
}

void admission::use_keys(const cl::key_record& keys) {
  const bool replaced = keys.current != keys_.current;
  keys_ = keys;
  nodes_.uses_key(key_fingerprint(keys.current));
  keys_changed_ = keys_changed_ || replaced;
  if (replaced && !config_.key_dir.empty())
    try {
      keep_own_key(config_.key_dir, keys.current);
      node_.say("[node] the cluster key was replaced; new machines and "
                "`--cluster-key` need "
                + own_key_file(config_.key_dir).string());
    } catch (const setup_error& e) { // the records have it too
      node_.say(std::string("[node] the cluster key was replaced, but ")
                + e.what());
    }
  if (auto v = node_.view())
    adopt(*v);
}

void admission::adopt(const core::view& v) {
  if (core::is_revoked(v, config_.self))
    return node_.end("this node was revoked by its shoal, as view "
                     + std::to_string(v.number) + " says. " + new_identity);
  nodes_.admitted(v);
  transport::tls::keyring ring;
  ring.current = keys_.current;
  ring.pending = keys_.pending;
  ring.replaced = keys_.replaced;
  ring.known = v.lapsed;
  for (const core::member& m : v.members)
    ring.known.push_back(m.id.peer);
  std::ranges::sort(ring.known);
  ring.revoked = v.revoked;
  std::ranges::sort(ring.revoked);
  for (const core::invitation& i : v.invites)
    ring.invites.push_back({i.key, i.expires_s, i.used_by});
  const bool others_go =
    v.key == codec::key_digest(keys_.current) && keys_changed_;
  keys_changed_ = keys_changed_ && !others_go;
  node_.use(std::move(ring), others_go);
}

void admission::invite(std::uint64_t token, const make_invite& r) {
  invite_token t;
  t.expires_s = unix_seconds() + r.seconds;
  t.inviter = config_.self;
  t.key = transport::tls::make_shared_key();
  t.cluster = config_.cluster;
  t.addresses = reachable_addresses(node_.listener());
  if (t.addresses.size() > token_addresses_max)
    t.addresses.resize(token_addresses_max);
  waiting_requests::wanted_view w;
  w.tag = transport::tls::make_instance();
  w.reached = [key = t.key, text = encode_token(t)](const core::view& v,
                                                    outcome& o) {
    o.text = text;
    return std::ranges::find(v.invites, key, &core::invitation::key)
           != v.invites.end();
  };
  w.invite = t.key;
  if (!requests_.want(token, std::move(w)))
    return refuse(token, "no view yet: try again");
  node_.tell(cl::add_invite{{t.key, t.expires_s, {}}});
}

void admission::redeem(std::uint64_t token, const use_invite& r) {
  const auto now = node_.view();
  if (r.who == core::peer_id{} || !now)
    return refuse(token, "only a joining peer uses an invite");
  const auto find = [key = r.token](const core::view& v) {
    auto at = std::ranges::find(v.invites, key, &core::invitation::key);
    return at == v.invites.end() ? nullptr : &*at;
  };
  const core::invitation* i = find(*now);
  if (!i)
    return refuse(token,
                  "the invite is unknown here, or void since a revocation");
  if (unix_seconds() >= i->expires_s)
    return refuse(token, "the invite has expired: ask for a new one");
  const auto reached = [find, who = r.who, this](const core::view& v,
                                                 outcome& o) {
    const core::invitation* at = find(v);
    if (at && at->used_by == core::peer_id{})
      return false;
    if (!at || at->used_by != who)
      o.why = "the invite was used by another peer: ask for a new one";
    else
      for (std::uint8_t b : keys_.current)
        o.bytes.push_back(std::byte{b});
    return true;
  };
  waiting_requests::wanted_view w;
  w.tag = transport::tls::make_instance();
  w.reached = reached;
  if (i->used_by != core::peer_id{} && i->used_by != r.who)
    return refuse(token,
                  "the invite was used by another peer: ask for a new one");
  if (!requests_.want(token, std::move(w)))
    return refuse(token, "no view yet: try again");
  // Used before by the same peer, whose answer was lost: asked for anew.
  node_.tell(cl::redeem_invite{r.token, r.who});
}

model::result<admission::revocable>
admission::find_revocable(const core::view& v, const std::string& word) {
  std::vector<revocable> found;
  const auto begins = [&word](const core::peer_id& id) {
    return word.size() >= revoked_digits_min
           && core::to_hex(id).starts_with(word);
  };
  for (const core::member& m : v.members)
    if (m.name == word || begins(m.id.peer))
      found.push_back({m.id.peer, m.name});
  for (const core::peer_id& id : v.lapsed)
    if (begins(id))
      found.push_back({id, {}});
  if (found.empty())
    for (const core::peer_id& id : v.revoked)
      if (begins(id))
        found.push_back({id, {}});
  if (found.empty())
    for (const core::peer_id& id : nodes_.gone(word))
      found.push_back({id, word});
  core::peer_id whole{};
  if (found.empty() && word.size() == 2 * whole.size()
      && core::from_hex(word, whole)) {
    // Not seen here, but it is to stay away, if that is meant.
    for (const core::member& m : v.members)
      if (core::short_name(m.id.peer) == core::short_name(whole))
        return model::failure{"no peer has the id " + word + ": that of "
                              + m.name + " begins alike, and is "
                              + core::to_hex(m.id.peer)};
    found.push_back({whole, {}, true});
  }
  if (found.size() != 1)
    return model::failure{
      (found.empty() ? "no peer is named '" : "several peers are named '")
      + word
      + (found.empty() ? "', and none that went since this node started" : "'")
      + ": use the first " + std::to_string(revoked_digits_min)
      + " digits of its id, or more (`shoal status --json` has those of "
        "members, `shoal logs` those of peers that went)"};
  if (found[0].peer == config_.self)
    return model::failure{"a peer cannot revoke itself: ask another one"};
  if (core::is_revoked(v, found[0].peer))
    return model::failure{"this peer is revoked already"};
  return std::move(found[0]);
}

void admission::revoke_peer(std::uint64_t token, const revoke& r) {
  const auto now = node_.view();
  if (!now)
    return refuse(token, "no view yet: try again");
  const auto found = find_revocable(*now, r.peer);
  if (!found)
    return refuse(token, found.message());
  const std::string id = core::to_hex(found->peer);
  const std::string strange =
    found->strange ? " (no peer that this node knows has this id)" : "";
  if (r.only_find)
    return node_.answer(
      token, {0,
              {},
              found->name.empty()
                ? id + strange
                : found->name + " (" + core::short_name(found->peer) + ")",
              {}});
  waiting_requests::wanted_view w;
  w.tag = transport::tls::make_instance();
  w.reached = [this, id = found->peer, strange](const core::view& v,
                                                outcome& o) {
    o.text = core::to_hex(id) + strange + may_return(v);
    return core::is_revoked(v, id);
  };
  const cl::revoke_peer event{found->peer, transport::tls::make_shared_key(),
                              w.tag};
  if (!requests_.want(token, std::move(w)))
    return refuse(token, "no view yet: try again");
  node_.tell(event);
}

std::string admission::may_return(const core::view& v) const {
  return v.lapsed.empty()
           ? std::string()
           : "\nformer members may still come back by the old key, and get the "
             "new one: "
               + core::listed(nodes_.names(v.lapsed))
               + "; to shut one out, too: shoal revoke PEER";
}

void admission::shut_out() {
  node_.end(
    "nobody admits this node, and " + nodes_.accuser()
    + " that it was revoked. " + new_identity
    + ". If it was not revoked, start it again when other members can be "
      "reached");
}

void admission::refused(transport::tls::refusal why, const std::string& address,
                        std::int64_t unix_ms, clock::time_point now) {
  using transport::tls::refusal;
  if (why == refusal::duplicate)
    return duplicate(address, now);
  if (why == refusal::revoked) {
    nodes_.revoked_by(address, unix_ms);
    return node_.tell(cl::turned_away{address});
  }
  const char* const reason = transport::tls::to_text(why);
  const auto line = why == refusal::other_planner
                      ? nodes_.plans_otherwise(address, reason, unix_ms)
                      : nodes_.refused(address, reason, unix_ms);
  if (line)
    node_.say(*line);
}

/// The node at `address` knows another process with this identity.
void admission::duplicate(const std::string& address, clock::time_point now) {
  node_.tell(cl::doubted{});
  // The others know this process: it is not the second.
  const bool seated = node_.among_others();
  const bool first =
    !duplicate_since_ || now > duplicate_at_ + duplicate_memory;
  if (first)
    duplicate_since_ = now;
  duplicate_at_ = now;
  const bool over =
    now >= *duplicate_since_ + duplicate_patience && !node_.ending() && !seated;
  if (first)
    node_.say("[node] " + address
              + " knows another process with this node's identity; "
              + (seated ? "this one is in the shoal and stays"
                        : "if it does not end, this one will"));
  if (over)
    node_.end("another process has this node's identity (" + address
              + " says so): is its data directory a copy? Remove identity.key "
                "and *.record from one of the two");
}

} // namespace shoal::runtime
