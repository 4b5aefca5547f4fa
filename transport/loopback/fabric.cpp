// transport/loopback/fabric.cpp -- peers, messages and bulk in one process.
#include "transport/loopback/fabric.hpp"

#include "transport/assert.hpp"
#include "transport/loopback/state.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace shoal::transport::loopback {

std::vector<due> take_pending(peer_entry& entry, const std::uint64_t* plan,
                              std::error_code result) {
  std::vector<due> list;
  if (!plan)
    list = std::exchange(entry.canceled, {});
  auto receive = entry.receives.begin();
  auto end = entry.receives.end();
  if (plan) {
    receive = entry.receives.lower_bound({*plan, 0, 0});
    end = entry.receives.upper_bound({*plan, UINT32_MAX, UINT32_MAX});
  }
  for (; receive != end; receive = entry.receives.erase(receive))
    list.push_back({receive->second.done, result});
  for (auto t = entry.sends.begin(); t != entry.sends.end();) {
    if (plan && (*t)->tag.plan != *plan) {
      ++t;
      continue;
    }
    (*t)->finished = true;
    list.push_back({(*t)->done, result});
    t = entry.sends.erase(t);
  }
  return list;
}

void network::state::complete(lock& l, const std::vector<due>& list) {
  if (list.empty())
    return;
  l.unlock();
  for (const auto& [done, result] : list)
    if (done.run)
      done.run(done.context, result);
  l.lock();
}

void network::state::call(lock& l, const node_ptr& n,
                          const std::function<void(fabric_handler&)>& what) {
  if (n->killed || n->finished)
    return;
  l.unlock();
  what(*n->handler);
  l.lock();
}

peer_entry* network::state::entry(const node_ptr& at, const peer_id& peer,
                                  std::uint64_t connection) {
  const auto found = at->peers.find(peer);
  if (found == at->peers.end() || found->second.connection != connection)
    return nullptr;
  return &found->second;
}

void network::state::dial(lock& l, const node_ptr& from,
                          const std::string& address) {
  if (!from->live())
    return;
  const auto to = find(address);
  std::error_code why;
  if (to == from)
    why = errc::self;
  else if (!to || !to->live() || is_cut(from->settings.name, address)
           || is_cut(address, from->settings.name))
    why = errc::unreachable;
  if (why)
    return call(l, from,
                [&](fabric_handler& h) { h.connect_failed(address, why); });
  link(l, from, to);
}

void network::state::link(lock& l, const node_ptr& a, const node_ptr& b) {
  const auto at_a = a->peers.find(b->settings.id);
  const auto at_b = b->peers.find(a->settings.id);
  const bool known_a = at_a != a->peers.end();
  const bool known_b = at_b != b->peers.end();
  if (known_a && known_b && at_a->second.connection == at_b->second.connection)
    return;
  // One end still holds a connection that the other end has given up.
  const auto old_a = known_a ? at_a->second.connection : 0;
  const auto old_b = known_b ? at_b->second.connection : 0;
  lose(l, a, b->settings.id, old_a, errc::peer_lost);
  lose(l, b, a->settings.id, old_b, errc::peer_lost);
  if (!a->live() || !b->live())
    return;
  const auto connection = next_connection++;
  const auto add = [connection](node& at, const node& other) {
    peer_entry fresh;
    fresh.connection = connection;
    fresh.name = other.settings.name;
    at.peers[other.settings.id] = std::move(fresh);
  };
  add(*a, *b);
  add(*b, *a);
  const auto tell = [&](const node_ptr& at, const node& other) {
    const auto& s = other.settings;
    const peer_info info{s.id, s.role, s.instance, s.capabilities, s.name};
    if (entry(at, s.id, connection))
      call(l, at, [&](fabric_handler& h) { h.up(info); });
  };
  tell(b, *a);
  tell(a, *b);
}

void network::state::lose(lock& l, const node_ptr& at, const peer_id& peer,
                          std::uint64_t connection, std::error_code why) {
  const auto found = entry(at, peer, connection);
  if (!found || at->killed)
    return;
  const auto list = take_pending(*found, nullptr, errc::peer_lost);
  at->peers.erase(peer);
  complete(l, list);
  call(l, at, [&](fabric_handler& h) { h.down(peer, why); });
}

void network::state::tell_lost(const node_ptr& from, const peer_entry& gone) {
  const auto peer = find(gone.name);
  if (!peer)
    return;
  carry(from->settings.name, gone.name,
        [this, peer, id = from->settings.id, connection = gone.connection](
          lock& l) { lose(l, peer, id, connection, errc::peer_lost); });
}

void network::state::finish(lock& l, const node_ptr& n) {
  while (!n->peers.empty()) {
    auto first = n->peers.extract(n->peers.begin());
    if (!n->killed)
      tell_lost(n, first.mapped());
    complete(l, take_pending(first.mapped(), nullptr, errc::canceled));
    call(l, n, [&](fabric_handler& h) { h.down(first.key(), errc::canceled); });
  }
  n->finished = true;
  done.notify_all();
}

void network::state::deliver(lock& l, const node_ptr& from, const node_ptr& to,
                             std::uint64_t connection,
                             const std::vector<std::byte>& bytes, bool lost) {
  if (auto* sender = entry(from, to->settings.id, connection)) {
    --sender->messages;
    sender->message_bytes -= bytes.size();
  }
  auto* receiver = entry(to, from->settings.id, connection);
  if (lost || !receiver || !to->live()
      || is_cut(from->settings.name, to->settings.name))
    return;
  receiver->moved.received_bytes += bytes.size();
  call(l, to, [&](fabric_handler& h) { h.message(from->settings.id, bytes); });
}

void network::state::deliver_bulk(lock& l, const node_ptr& from,
                                  const node_ptr& to, std::uint64_t connection,
                                  const std::shared_ptr<transfer>& t) {
  auto* receiver = entry(to, from->settings.id, connection);
  if (t->finished || !receiver || !to->live())
    return;
  std::error_code result = errc::not_posted;
  const auto found = receiver->receives.find(t->tag);
  std::vector<due> list;
  if (found != receiver->receives.end()) {
    const auto into = found->second.into;
    result = {};
    if (into.size() != t->bytes.size())
      result = errc::size_mismatch;
    else if (chance(trouble.corrupt))
      result = errc::corrupt;
    else if (!into.empty())
      std::memcpy(into.data(), t->bytes.data(), into.size()); // L-2
    receiver->moved.received_bytes += t->bytes.size();
    list.push_back({found->second.done, result});
    receiver->receives.erase(found);
  }
  carry(to->settings.name, from->settings.name,
        [this, from, id = to->settings.id, connection, t, result](lock& held) {
          finish_send(held, from, id, connection, t, result);
        });
  complete(l, list);
}

void network::state::finish_send(lock& l, const node_ptr& from,
                                 const peer_id& to, std::uint64_t connection,
                                 const std::shared_ptr<transfer>& t,
                                 std::error_code result) {
  auto* sender = entry(from, to, connection);
  if (!sender || t->finished || from->killed)
    return;
  t->finished = true;
  sender->sends.remove(t);
  complete(l, {{t->done, result}});
}

fabric::fabric(const network& net, config settings, fabric_handler& handler)
  : net_(net.state_), self_(std::make_shared<node>()) {
  self_->settings = std::move(settings);
  self_->handler = &handler;
  lock l(net_->mutex);
  for (const auto& [name, other] : net_->nodes)
    if (name == self_->settings.name
        || other->settings.id == self_->settings.id)
      throw std::invalid_argument("loopback: the name or id of \""
                                  + self_->settings.name + "\" is in use");
  net_->nodes[self_->settings.name] = self_;
}

fabric::~fabric() {
  close();
}

std::size_t fabric::message_bytes_max() const noexcept {
  return control_bytes_max;
}

std::string fabric::local_address() const {
  return self_->settings.name;
}

void fabric::connect(const std::string& address) {
  lock l(net_->mutex);
  if (!self_->live())
    return;
  const auto at = net_->threaded ? net_->clock : net_->clock + net_->delay();
  net_->push(at, [s = net_.get(), self = self_, address](lock& held) {
    s->dial(held, self, address);
  });
}

std::error_code
fabric::send(const peer_id& to, std::span<const std::byte> message) {
  if (message.size() > message_bytes_max())
    return errc::too_large;
  lock l(net_->mutex);
  if (self_->closing)
    return errc::canceled;
  const auto found = self_->peers.find(to);
  if (found == self_->peers.end() || self_->killed)
    return errc::peer_lost;
  auto& peer = found->second;
  const auto& limit = self_->settings.queue;
  if (peer.messages >= limit.messages
      || peer.message_bytes + message.size() > limit.message_bytes)
    return errc::would_block;
  ++peer.messages;
  peer.message_bytes += message.size();
  peer.moved.sent_bytes += message.size();
  const auto receiver = net_->find(peer.name);
  const auto& own = self_->settings.name;
  const bool lost = net_->chance(net_->trouble.loss);
  if (!receiver) // it has died, which was not noticed yet
    return {};
  net_->push(net_->arrival(own, peer.name),
             [s = net_.get(), self = self_, receiver, lost,
              connection = peer.connection,
              bytes = std::vector(message.begin(), message.end())](lock& held) {
               s->deliver(held, self, receiver, connection, bytes, lost);
             });
  return {};
}

std::error_code
fabric::post_receive(const peer_id& from, bulk_tag tag,
                     std::span<std::byte> into, completion done) {
  lock l(net_->mutex);
  if (self_->closing)
    return errc::canceled;
  const auto found = self_->peers.find(from);
  if (found == self_->peers.end() || self_->killed)
    return errc::peer_lost;
  if (found->second.receives.size() >= self_->settings.queue.receives)
    return errc::would_block;
  found->second.receives.emplace(tag, posted{into, done});
  return {};
}

std::error_code
fabric::send_bulk(const peer_id& to, bulk_tag tag,
                  std::span<const std::byte> bytes, completion done) {
  lock l(net_->mutex);
  if (self_->closing)
    return errc::canceled;
  const auto found = self_->peers.find(to);
  if (found == self_->peers.end() || self_->killed)
    return errc::peer_lost;
  auto& peer = found->second;
  if (peer.sends.size() >= self_->settings.queue.bulk_sends)
    return errc::would_block;
  auto t = std::make_shared<transfer>(transfer{tag, bytes, done});
  peer.sends.push_back(t);
  peer.moved.sent_bytes += bytes.size();
  const auto receiver = net_->find(peer.name);
  if (!receiver)
    return {};
  net_->carry(self_->settings.name, peer.name,
              [s = net_.get(), self = self_, receiver, t,
               connection = peer.connection](lock& held) {
                s->deliver_bulk(held, self, receiver, connection, t);
              });
  return {};
}

void fabric::cancel(std::uint64_t plan) {
  lock l(net_->mutex);
  bool any = false;
  for (auto& [id, peer] : self_->peers) {
    const auto some = take_pending(peer, &plan, errc::canceled);
    peer.canceled.insert(peer.canceled.end(), some.begin(), some.end());
    any = any || !some.empty();
  }
  if (!any)
    return;
  net_->push(net_->clock, [self = self_](lock& held) {
    std::vector<due> list;
    for (auto& [id, peer] : self->peers) {
      const auto some = std::exchange(peer.canceled, {});
      list.insert(list.end(), some.begin(), some.end());
    }
    network::state::complete(held, list);
  });
}

void fabric::drop(const peer_id& peer) {
  lock l(net_->mutex);
  net_->push(net_->clock, [s = net_.get(), self = self_, peer](lock& held) {
    const auto found = self->peers.find(peer);
    if (found == self->peers.end() || !self->live())
      return;
    s->tell_lost(self, found->second);
    s->lose(held, self, peer, found->second.connection, errc::canceled);
  });
}

traffic fabric::traffic_with(const peer_id& peer) const {
  lock l(net_->mutex);
  const auto found = self_->peers.find(peer);
  return found == self_->peers.end() ? traffic{} : found->second.moved;
}

void fabric::close() {
  lock l(net_->mutex);
  if (self_->finished)
    return;
  SHOAL_ASSERT(!net_->threaded
               || std::this_thread::get_id() != net_->thread.get_id());
  if (!self_->closing) {
    self_->closing = true;
    const auto named = net_->nodes.find(self_->settings.name);
    if (named != net_->nodes.end() && named->second == self_)
      net_->nodes.erase(named);
    if (!net_->threaded)
      return net_->finish(l, self_);
    net_->push(net_->clock, [s = net_.get(), self = self_](lock& held) {
      s->finish(held, self);
    });
  }
  net_->done.wait(l, [&] { return self_->finished || !net_->threaded; });
}

} // namespace shoal::transport::loopback
