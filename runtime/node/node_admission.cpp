// runtime/node/node_admission.cpp -- keys, invites and revocations of a node.
//
// The core decides; here its keys reach the transport and the disk, and what
// clients ask reaches the core.
#include "runtime/control/invite.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/discovery/discovery.hpp"
#include "runtime/discovery/own_addresses.hpp"
#include "runtime/node/node_impl.hpp"

#include <caf/all.hpp>

#include <algorithm>

namespace shoal::runtime {

namespace cl = core::cluster;
using std::chrono::steady_clock;

/// A process whose predecessor has just died is taken for a second one until
/// its peers have noticed: shorter is no reason to give up.
static constexpr std::chrono::seconds duplicate_patience{4};
static constexpr std::chrono::seconds duplicate_memory{10};
/// Digits of an id that name a peer to revoke.
static constexpr std::size_t id_digits_min = 8;

/// What is left to do with a revoked node.
static constexpr const char* new_identity =
  "It cannot come back with this identity. To let it in again, run `shoal "
  "invite --out FILE` on a member, and here `shoal node --data-dir NEW_DIR "
  "--join-token-file FILE`";

static std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

/// Membership actor's thread: before the view that names the new key.
void node::impl::use_keys(const cl::key_record& keys) {
  bool replaced = keys.current != keys_.current;
  keys_ = keys;
  known_->uses_key(key_fingerprint(keys.current));
  keys_changed_ = keys_changed_ || replaced;
  if (replaced && !config_.embedded)
    try {
      keep_own_key(setup_.data_dir, keys.current);
      say("[node] the cluster key was replaced; new machines and "
          "`--cluster-key` need "
          + own_key_file(setup_.data_dir).string());
    } catch (const setup_error& e) { // the records have it too
      say(std::string("[node] the cluster key was replaced, but ") + e.what());
    }
  if (auto v = view())
    admit(*v);
}

/// Membership actor's thread: whom the transport admits from now on.
void node::impl::admit(const core::view& v) {
  if (core::is_revoked(v, self_))
    return end("this node was revoked by its shoal, as view "
               + std::to_string(v.number) + " says. " + new_identity);
  known_->admitted(v);
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
  if (discovery_) {
    std::vector<transport::tls::shared_key> keys{keys_.current};
    keys.insert(keys.end(), keys_.pending.begin(), keys_.pending.end());
    keys.insert(keys.end(), keys_.replaced.begin(), keys_.replaced.end());
    discovery_->set_keys(std::move(keys));
  }
  bool others_go = v.key == codec::key_digest(keys_.current) && keys_changed_;
  keys_changed_ = keys_changed_ && !others_go;
  mesh_->set_keys(std::move(ring), others_go);
}

void node::impl::invite(std::uint64_t token, const make_invite& r) {
  invite_token t;
  t.expires_s = unix_seconds() + r.seconds;
  t.inviter = self_;
  t.key = transport::tls::make_shared_key();
  t.cluster = setup_.cluster;
  t.addresses = reachable_addresses(address_);
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
  if (!requests_.want(token, std::move(w)))
    return control_->answered(token, {0, "no view yet: try again", {}, {}});
  tell(cl::add_invite{{t.key, t.expires_s, {}}});
}

void node::impl::redeem(std::uint64_t token, const use_invite& r) {
  const auto refuse = [&](const char* why) {
    control_->answered(token, {0, why, {}, {}});
  };
  auto now = view();
  if (r.who == core::peer_id{} || !now)
    return refuse("only a joining peer uses an invite");
  const auto find = [key = r.token](const core::view& v) {
    auto at = std::ranges::find(v.invites, key, &core::invitation::key);
    return at == v.invites.end() ? nullptr : &*at;
  };
  const core::invitation* i = find(*now);
  if (!i)
    return refuse("the invite is unknown here, or void since a revocation");
  if (unix_seconds() >= i->expires_s)
    return refuse("the invite has expired: ask for a new one");
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
    return refuse("the invite was used by another peer: ask for a new one");
  if (!requests_.want(token, std::move(w)))
    return refuse("no view yet: try again");
  // Used before by the same peer, whose answer was lost: asked for anew.
  tell(cl::redeem_invite{r.token, r.who});
}

void node::impl::revoke_peer(std::uint64_t token, const revoke& r) {
  const auto refuse = [&](std::string why) {
    control_->answered(token, {0, std::move(why), {}, {}});
  };
  auto now = view();
  if (!now)
    return refuse("no view yet: try again");
  std::vector<core::peer_id> found;
  const auto by_id = [&](const core::peer_id& id) {
    if (r.peer.size() >= id_digits_min && core::to_hex(id).starts_with(r.peer))
      found.push_back(id);
  };
  for (const core::member& m : now->members)
    if (m.name == r.peer)
      found.push_back(m.id.peer);
    else
      by_id(m.id.peer);
  for (const core::peer_id& id : now->lapsed)
    by_id(id);
  core::peer_id whole{};
  if (found.empty() && r.peer.size() == 2 * whole.size()
      && core::from_hex(r.peer, whole))
    found.push_back(whole); // not seen here, but it is to stay away
  if (found.size() != 1)
    return refuse((found.empty() ? "no peer is named '"
                                 : "several peers are "
                                   "named '")
                  + r.peer + "': use the first " + std::to_string(id_digits_min)
                  + " digits of its id, or more (`shoal status --json`)");
  waiting_requests::wanted_view w;
  w.tag = transport::tls::make_instance();
  w.reached = [id = found[0]](const core::view& v, outcome& o) {
    o.text = core::to_hex(id);
    return core::is_revoked(v, id);
  };
  const cl::revoke_peer event{found[0], transport::tls::make_shared_key(),
                              w.tag};
  if (!requests_.want(token, std::move(w)))
    return refuse("no view yet: try again");
  tell(event);
}

/// Membership actor's thread: nobody is there but those that say so.
void node::impl::shut_out() {
  end("nobody admits this node, and " + known_->accuser()
      + " that it was revoked. " + new_identity
      + ". If it was not revoked, start it again when other members can be "
        "reached");
}

/// TLS progress thread.
void node::impl::refused(transport::tls::refusal why,
                         const std::string& address) {
  using transport::tls::refusal;
  if (why == refusal::revoked) {
    known_->revoked_by(address, unix_ms());
    return tell(cl::turned_away{address});
  }
  if (why == refusal::other_planner)
    return say_if(known_->plans_otherwise(address, transport::tls::to_text(why),
                                          unix_ms()));
  if (why != refusal::duplicate)
    return say_if(
      known_->refused(address, transport::tls::to_text(why), unix_ms()));
  tell(cl::doubted{});
  bool seated = false; // the others know this process: it is not the second
  {
    std::lock_guard lock(mutex_);
    seated = phase_ == cl::phase::member && reachable_.size() > 1;
  }
  const auto now = steady_clock::now();
  const bool first =
    !duplicate_since_ || now > duplicate_at_ + duplicate_memory;
  if (first)
    duplicate_since_ = now;
  duplicate_at_ = now;
  const bool over = now >= *duplicate_since_ + duplicate_patience
                    && !life_->ending() && !seated;
  if (first)
    say("[node] " + address
        + " knows another process with this node's identity; "
        + (seated ? "this one is in the shoal and stays"
                  : "if it does not end, this one will"));
  if (over)
    end("another process has this node's identity (" + address
        + " says so): is its data directory a copy? Remove identity.key and "
          "*.record from one of the two");
}

} // namespace shoal::runtime
