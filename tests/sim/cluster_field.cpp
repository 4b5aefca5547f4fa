// tests/sim/cluster_field.cpp -- many cluster cores on a plain network.
#include "cluster_field.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace shoal::sim {

using namespace core;
using namespace core::cluster;

namespace {

shoal_id name(const view& v, std::uint64_t salt) {
  shoal_id id{};
  cluster::random r(salt ^ v.members[0].instance);
  for (auto& b : id)
    b = std::uint8_t(r.next());
  return id;
}

std::pair<int, int> pair_of(int a, int b) {
  return std::minmax(a, b);
}

} // namespace

field::field(const field_options& o) : options_(o), random_(o.seed) {
  peers_.resize(std::size_t(o.peers));
  links_.resize(peers_.size() * peers_.size());
  for (int i = 0; i < o.peers; ++i) {
    for (auto& b : at(i).id)
      b = std::uint8_t(random_.next());
    places_[at(i).id] = i;
    config c;
    c.self.id.peer = at(i).id;
    c.self.instance = at(i).instance = random_.next();
    c.self.name = "p" + std::to_string(i);
    c.self.addresses = {std::to_string(i)};
    c.cluster = "field";
    c.seed = random_.next();
    c.name_shoal = name;
    at(i).core = std::make_unique<membership>(std::move(c));
    at(i).outbox = std::make_unique<outbox>(history{});
  }
}

bool field::gather(nanoseconds limit) {
  for (int i = 0; i < size(); ++i)
    give(i, start{});
  for (int a = 0; a < size(); ++a)
    for (int b = a + 1; b < size(); ++b)
      link(a, b, true);
  return until([&] { return agreed(peers_.size()); }, limit) >= 0;
}

bool field::agreed(std::size_t members) const {
  const view* all = nullptr;
  for (const one& p : peers_) {
    if (!p.core || p.dark)
      continue;
    if (!p.seen) // its first view is being stored
      return false;
    const view& v = *p.seen;
    if (v.members.size() != members
        || (all != nullptr
            && (all->number != v.number || all->shoal != v.shoal)))
      return false;
    if (all == nullptr && std::ranges::any_of(v.members, [](const member& m) {
          return m.state != member_state::active;
        }))
      return false;
    all = &v;
  }
  return all != nullptr;
}

void field::push(int to, nanoseconds delay, event e, nanoseconds tick) {
  queue_.push({now_ + delay, ++order_, to, tick, false,
               std::make_shared<const event>(std::move(e))});
}

bool field::linked(int a, int b) const {
  return links_[std::size_t(a) * peers_.size() + std::size_t(b)];
}

int field::find(const peer_id& id) const {
  auto it = places_.find(id);
  return it == places_.end() ? -1 : it->second;
}

void field::link(int a, int b, bool up) {
  if (linked(a, b) == up || a == b)
    return;
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)}) {
    links_[std::size_t(x) * peers_.size() + std::size_t(y)] = up;
    if (up)
      push(x, 1000, peer_up{at(y).id, at(y).instance});
    else
      push(x, 1000, peer_down{at(y).id});
  }
}

void field::give(int i, const event& e) {
  if (!at(i).core)
    return;
  actions out;
  at(i).core->step(e, now_, out);
  actions ready;
  for (action& a : out) {
    at(i).outbox->take(std::move(a), ready);
    write(i, ready);
  }
  carry_out(i, ready);
}

/// Stores the next record: at once if disks take no time here.
void field::write(int i, actions& ready) {
  while (at(i).outbox->next()) {
    if (options_.write_max > 0) {
      const auto span =
        std::uint64_t(options_.write_max - options_.write_min + 1);
      queue_.push({now_ + options_.write_min + nanoseconds(random_.below(span)),
                   ++order_, i, 0, true, nullptr});
      return;
    }
    at(i).outbox->written(true, ready);
  }
}

void field::dial(int from, const std::string& address) {
  int to = std::stoi(address);
  if (linked(from, to))
    return;
  bool silent = cuts_.contains(pair_of(from, to)) || at(to).dark;
  if (silent)
    push(from, 1'000'000'000, connect_failed{address});
  else if (!at(to).core)
    push(from, 200'000, connect_failed{address});
  else
    link(from, to, true);
}

void field::carry_out(int i, actions& out) {
  for (action& a : out) {
    if (auto* s = std::get_if<send>(&a)) {
      auto body = std::make_shared<const event>(received{at(i).id, s->what});
      for (const peer_id& id : s->to) {
        int to = find(id);
        ++messages_;
        if (to < 0 || !linked(i, to) || at(to).dark || at(i).dark
            || int(random_.below(10'000)) < options_.loss_per_10000)
          continue;
        auto span = std::uint64_t(options_.delay_max - options_.delay_min + 1);
        queue_.push(
          {now_ + options_.delay_min + nanoseconds(random_.below(span)),
           ++order_, to, 0, false, body});
      }
    } else if (auto* t = std::get_if<need_tick_at>(&a)) {
      at(i).ticks_at = t->when;
      push(i, t->when - now_, tick{}, t->when);
    } else if (auto* c = std::get_if<connect>(&a)) {
      dial(i, c->address);
    } else if (auto* v = std::get_if<new_view>(&a)) {
      views_.insert(v->current.number);
      ++adopted_;
      at(i).seen = std::make_shared<const view>(std::move(v->current));
    }
  }
}

/// Processes one event. @returns whether there was one
bool field::next() {
  if (queue_.empty())
    return false;
  item i = queue_.top();
  queue_.pop();
  now_ = i.at;
  one& p = at(i.to);
  if (!p.core || p.dark)
    return true;
  if (now_ < p.stopped_until || (p.slow > 0 && !i.late)) {
    nanoseconds when = std::max(p.stopped_until, now_);
    if (p.slow > 0)
      when = std::max(p.last,
                      when + nanoseconds(random_.below(std::uint64_t(p.slow))));
    p.last = when;
    i.late = true;
    i.at = when;
    i.order = ++order_;
    queue_.push(std::move(i));
    return true;
  }
  if (!i.what) {
    actions ready;
    p.outbox->written(true, ready);
    write(i.to, ready);
    carry_out(i.to, ready);
  } else if (i.tick == 0 || i.tick == p.ticks_at) {
    give(i.to, *i.what);
  }
  return true;
}

void field::run(nanoseconds time) {
  nanoseconds end = now_ + time;
  while (!queue_.empty() && queue_.top().at <= end)
    next();
  now_ = end;
}

nanoseconds field::until(const std::function<bool()>& done, nanoseconds limit) {
  nanoseconds begin = now_;
  while (!done())
    for (auto before = adopted_; adopted_ == before;)
      if (now_ - begin > limit || !next())
        return -1;
  return now_ - begin;
}

void field::kill(int i) {
  at(i).core.reset();
  for (int j = 0; j < size(); ++j)
    link(i, j, false);
}

void field::vanish(int i) {
  at(i).dark = true;
}

void field::stop(int i, nanoseconds time) {
  at(i).stopped_until = now_ + time;
}

void field::cut(int a, int b) {
  cuts_.insert(pair_of(a, b));
  link(a, b, false);
}

void field::mend(int a, int b) {
  cuts_.erase(pair_of(a, b));
}

} // namespace shoal::sim
