// runtime/node/node_others.cpp -- requests of a client for another peer: finds
// the peer, and passes request and reply.
//
// A command has no key of the shoal and cannot reach its other machines; the
// node that it asks can do both.
// that it asks has both.
#include "runtime/node/node_impl.hpp"

#include <algorithm>

namespace shoal::runtime {

using std::chrono::steady_clock;

meant_peer node::impl::find(const std::string& word) const {
  if (!view())
    return {{}, false, "no view yet: try again"};
  auto [peer, why] = known_->find(word, unix_ms());
  return {peer, why.empty() && peer == self_, std::move(why)};
}

void node::impl::hand_on(std::uint64_t token, const core::peer_id& peer,
                         client_request&& r) {
  const auto now = steady_clock::now();
  requests_.asked(token, peer, now, now + other_peer_wait);
  // A peer answers for itself, whichever peer asks.
  if (!mesh_->send(peer, envelope(client_request{token, std::move(r.body)})))
    return;
  requests_.forget(token);
  outcome o;
  o.why = known_->unreachable(peer, unix_ms());
  control_->answered(token, std::move(o));
}

void node::impl::take(const core::peer_id& from, client_reply&& reply) {
  if (!requests_.replied(reply.number, from))
    return; // no request is waiting for it
  outcome o;
  o.job = reply.value;
  o.text = std::move(reply.text);
  if (reply.code != reply_code::ok)
    o.why = o.text.empty() ? "the peer gives no reason" : o.text;
  control_->answered(reply.number, std::move(o));
}

void node::impl::say_if(const known_nodes::line& line) {
  if (line)
    say(*line);
}

/// Discovery's thread.
void node::impl::strange(const std::string& host) {
  say_if(known_->strange(host, unix_ms()));
}

bool node::impl::connected(std::uint64_t sender) const {
  return mesh_->is_up(sender);
}

void node::impl::found(const std::string& address) {
  tell(core::cluster::discovered{address});
}

void node::impl::listed(const std::string& address) {
  if (address != address_)
    tell(core::cluster::discovered{address, true});
}

void node::impl::counted(const beacon_counts& counts) {
  known_->counted(counts);
}

void node::impl::addresses_changed(std::vector<std::string> addresses) {
  addresses.resize(std::min(addresses.size(), codec::addresses_max));
  say("[node] telling the shoal where this node is: " + addresses.front());
  tell(core::cluster::update_addresses{std::move(addresses)});
}

} // namespace shoal::runtime
