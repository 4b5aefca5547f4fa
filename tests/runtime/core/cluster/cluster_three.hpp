// tests/runtime/core/cluster/cluster_three.hpp -- three cores that talk without delay,
// any two of them linked or not.
#pragma once

#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <algorithm>
#include <vector>

namespace shoal::tests {

struct three_nodes {
  node a{2}, b{3}, c{1};
  nanoseconds now = 0;
  std::deque<std::pair<node*, received>> wire;
  std::vector<std::pair<node*, node*>> links;

  std::vector<node*> nodes() { return {&a, &b, &c}; }
  bool linked(const node& x, const node& y) const {
    return std::ranges::any_of(links, [&](const auto& l) {
      return (l.first == &x && l.second == &y)
             || (l.first == &y && l.second == &x);
    });
  }

  void begin(node& n) {
    n.c.seed += 16; // another process: its shoals have other names
    n.c.self.instance = std::uint64_t(now) + n.c.seed * 1000 + 7;
    n.core = std::make_unique<membership>(n.c);
    n.said.clear();
    give(n, start{n.disk});
  }

  void give(node& n, const event& e) {
    actions out;
    n.core->step(e, now, out);
    for (action& x : out) {
      if (auto* s = std::get_if<send>(&x)) {
        for (node* to : nodes())
          for (const peer_id& id : s->to)
            if (to->core && linked(n, *to) && id == to->c.self.id.peer)
              wire.push_back({to, {n.c.self.id.peer, s->what}});
      } else if (auto* p = std::get_if<persist>(&x)) {
        if (auto* v = std::get_if<view_record>(&p->what))
          n.disk.view = *v;
        else if (auto* k = std::get_if<key_record>(&p->what))
          n.disk.keys = *k;
        else
          n.disk.vote = std::get<vote_record>(p->what);
      } else if (std::holds_alternative<erase_history>(x)) {
        n.disk = {};
        n.erased = true;
      }
      n.said.push_back(std::move(x));
    }
  }

  void link(node& x, node& y) {
    links.emplace_back(&x, &y);
    give(x, peer_up{y.c.self.id.peer, y.c.self.instance});
    give(y, peer_up{x.c.self.id.peer, x.c.self.instance});
  }

  /// The process ends; the others notice.
  void stop(node& n) {
    for (node* other : nodes())
      if (linked(n, *other) && other->core) {
        give(*other, peer_down{n.c.self.id.peer});
        give(*other, connect_failed{n.c.self.addresses[0]});
      }
    std::erase_if(
      links, [&](const auto& l) { return l.first == &n || l.second == &n; });
    std::erase_if(wire, [&](const auto& m) { return m.first == &n; });
    n.core.reset();
  }

  void run(nanoseconds time) {
    for (nanoseconds end = now + time; now < end; now += ms) {
      while (!wire.empty()) {
        auto [to, e] = std::move(wire.front());
        wire.pop_front();
        if (to->core)
          give(*to, e);
      }
      for (node* n : nodes())
        if (n->core)
          give(*n, tick{});
    }
  }

  bool in(const node& n, const shoal_id& shoal) const {
    return n.core->current().shoal == shoal && n.core->seated()
           && find_member(n.core->current(), n.c.self.id.peer) != nullptr;
  }
};

} // namespace shoal::tests
