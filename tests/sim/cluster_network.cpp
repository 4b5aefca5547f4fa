// tests/sim/cluster_network.cpp -- half-open connections and lost messages.
#include "cluster_world.hpp"

#include <algorithm>
#include <utility>

namespace shoal::sim {

int cluster_world::at_address(const std::string& address) const {
  for (int i = 0; i < int(machines_.size()); ++i)
    if (machines_[std::size_t(i)].address == address)
      return i;
  return -1;
}

void cluster_world::transmit(int from, int to,
                             std::shared_ptr<const message> m) {
  std::uint64_t gen = ends_.up[from][to];
  if (gen == 0 || blocked_[from][to] || chance(loss_))
    return;
  item d;
  d.what = happening::deliver;
  d.to = to;
  d.from = from;
  d.token = gen;
  d.body = std::move(m);
  nanoseconds delay = between(millisecond / 20, 2 * millisecond);
  if (chance(slow_))
    delay += between(0, 400 * millisecond);
  push(std::move(d), delay);
}

void cluster_world::dial(int from, const std::string& address) {
  item c;
  c.what = happening::connect;
  c.from = from;
  c.to = at_address(address);
  c.address = address;
  c.token = machines_[std::size_t(from)].instance;
  push(std::move(c), between(millisecond / 10, 2 * millisecond));
}

void cluster_world::lose_connection(int i, int j) {
  std::uint64_t gen = ends_.up[i][j];
  for (auto [a, b] : {std::pair(i, j), std::pair(j, i)})
    if (ends_.up[a][b] != 0 && ends_.up[a][b] == gen) {
      item d;
      d.what = happening::down;
      d.to = a;
      d.from = b;
      d.token = gen;
      push(std::move(d), between(0, millisecond));
    }
}

void cluster_world::deliver(item& i) {
  if (!machines_[std::size_t(i.to)].core)
    return;
  if (ends_.up[i.to][i.from] == i.token) {
    give(i.to, received{machines_[std::size_t(i.from)].id, *i.body});
  } else if (ends_.coming[i.to][i.from] == i.token) {
    push(std::move(i), millisecond / 5); // no event comes before up
  } else if (ends_.up[i.from][i.to] == i.token) {
    item d; // the other host does not know this connection
    d.what = happening::down;
    d.to = i.from;
    d.from = i.to;
    d.token = i.token;
    push(std::move(d), millisecond);
  }
}

void cluster_world::come_up(item& i) {
  machine& m = machines_[std::size_t(i.to)];
  const machine& other = machines_[std::size_t(i.from)];
  if (!m.core || m.instance != i.token)
    return;
  std::uint64_t gen = std::stoull(i.address);
  if (ends_.coming[i.to][i.from] != gen)
    return; // a newer connection has replaced it
  ends_.coming[i.to][i.from] = 0;
  if (ends_.up[i.to][i.from] != 0) {
    ends_.up[i.to][i.from] = 0;
    give(i.to, peer_down{other.id});
  }
  if (!m.core || !other.core)
    return;
  ends_.up[i.to][i.from] = gen;
  give(i.to, peer_up{other.id, other.instance});
}

void cluster_world::accept(item& i) {
  const machine* m = i.to >= 0 ? &machines_[std::size_t(i.to)] : nullptr;
  const machine& f = machines_[std::size_t(i.from)];
  if (!f.core || f.instance != i.token)
    return;
  const auto& pending = f.keys.pending; // tried in turn with the current key
  bool other = !pending.empty() && chance(0.5);
  const cluster_key& proves = other ? pending.back() : f.keys.current;
  const bool revoked = calls_revoked(i);
  if (m != nullptr && m->core && !admits(*m, f, proves))
    m = nullptr;
  bool cut = m == nullptr || blocked_[i.from][i.to] || blocked_[i.to][i.from];
  if (cut || !m->core) {
    item r;
    r.what = happening::refuse;
    r.to = i.from;
    r.token = f.instance;
    r.address = i.address;
    r.turned_away = revoked;
    push(std::move(r), cut && !revoked ? second : millisecond / 5);
    return;
  }
  if (ends_.up[i.from][i.to] != 0
      && ends_.up[i.from][i.to] == ends_.up[i.to][i.from])
    return;
  std::uint64_t gen = ++generation_;
  for (auto [a, b] : {std::pair(i.from, i.to), std::pair(i.to, i.from)}) {
    item u;
    u.what = happening::up;
    u.to = a;
    u.from = b;
    u.token = machines_[std::size_t(a)].instance;
    u.address = std::to_string(gen);
    ends_.coming[a][b] = gen;
    push(std::move(u), between(millisecond / 10, millisecond));
  }
}

void cluster_world::announce(item& i) {
  const machine& m = machines_[std::size_t(i.to)];
  if (!m.core || m.instance != i.token)
    return;
  for (int j = 0; j < int(machines_.size()); ++j)
    if (j != i.to && !blocked_[i.to][j] && !chance(loss_)) {
      item d;
      d.what = happening::discover;
      d.to = j;
      d.address = m.address;
      push(std::move(d), between(millisecond / 10, millisecond));
    }
  push(i, second);
}

void cluster_world::handle(item& i) {
  machine* m = i.to >= 0 ? &machines_[std::size_t(i.to)] : nullptr;
  if (m != nullptr && m->core && now_ < m->paused_until
      && i.what <= happening::refuse) {
    push(std::move(i), m->paused_until - now_);
    return;
  }
  switch (i.what) {
  case happening::deliver:
    return deliver(i);
  case happening::tick:
    if (m->core && std::uint64_t(m->ticks_at) == i.token)
      give(i.to, cluster::tick{});
    return;
  case happening::up:
    return come_up(i);
  case happening::down:
    if (m->core && ends_.up[i.to][i.from] == i.token) {
      ends_.up[i.to][i.from] = 0;
      give(i.to, peer_down{machines_[std::size_t(i.from)].id});
    }
    return;
  case happening::refuse:
    if (m->core && m->instance == i.token && i.turned_away)
      turned_away(i);
    if (m->core && m->instance == i.token)
      give(i.to, connect_failed{i.address});
    return;
  case happening::connect:
    return accept(i);
  case happening::discover:
    give(i.to, discovered{i.address});
    return;
  case happening::start:
    if (!m->stays_down)
      start_machine(i.to);
    return;
  case happening::crash:
    crash(i.to, i.token != 0);
    return;
  case happening::announce:
    return announce(i);
  case happening::fault:
    if (faults_)
      fault();
    return;
  case happening::written:
    return written(i);
  case happening::lie:
    lies_ ? lie() : expel();
    return push(i, nanoseconds(lie_random_.below(std::uint64_t(second))));
  case happening::heal:
    if (faults_)
      std::fill_n(&blocked_[0][0], slots_max * slots_max, false);
    return;
  }
}

} // namespace shoal::sim
