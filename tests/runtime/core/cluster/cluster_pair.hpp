// tests/runtime/core/cluster/cluster_pair.hpp -- two cores that talk without delay.
#pragma once

#include "runtime/core/cluster/membership.hpp"
#include "tests/runtime/core/cluster/cluster_local.hpp"

#include <deque>
#include <memory>

namespace shoal::tests {

using namespace shoal::core;
using namespace shoal::core::cluster;

inline shoal_id name(const view& v, std::uint64_t salt) {
  shoal_id id{};
  id[0] = v.members[0].id.peer[0];
  for (int i = 0; i < 8; ++i)
    id[std::size_t(i) + 1] = std::uint8_t(salt >> (8 * i));
  return id;
}

inline key_digest digest(const cluster_key& key) {
  key_digest d = key;
  d.back() ^= 0x5a;
  return d;
}

/// A core with its disk and what it said.
struct node {
  config c;
  history disk;
  std::unique_ptr<membership> core;
  actions said;
  bool erased = false;

  explicit node(std::uint8_t n) {
    c.self.id.peer = peer(n);
    c.self.name = std::string(1, char('a' + n));
    c.self.addresses = {c.self.name + ":1"};
    c.name_shoal = name;
    c.seed = n;
    c.key = {1};
    c.digest_key = digest;
  }

  template <class Action>
  std::size_t count() const {
    std::size_t n = 0;
    for (const action& a : said)
      n += std::holds_alternative<Action>(a);
    return n;
  }
};

struct pair_of_nodes {
  node a{1};
  node b{2};
  nanoseconds now = 0;
  std::deque<std::pair<node*, received>> wire;
  bool linked = false;

  void begin(node& n) {
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
        node& other = &n == &a ? b : a;
        for (const peer_id& id : s->to)
          if (linked && other.core && id == other.c.self.id.peer)
            wire.push_back({&other, {n.c.self.id.peer, s->what}});
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

  void link() {
    linked = true;
    give(a, peer_up{b.c.self.id.peer, b.c.self.instance});
    give(b, peer_up{a.c.self.id.peer, a.c.self.instance});
  }

  void run(nanoseconds time) {
    for (nanoseconds end = now + time; now < end; now += ms) {
      while (!wire.empty()) {
        auto [to, e] = std::move(wire.front());
        wire.pop_front();
        if (to->core)
          give(*to, e);
      }
      for (node* n : {&a, &b})
        if (n->core)
          give(*n, tick{});
    }
  }

  bool together() const {
    return a.core->current() == b.core->current()
           && a.core->current().members.size() == 2
           && a.core->current().members[0].state == member_state::active
           && a.core->current().members[1].state == member_state::active;
  }
};

} // namespace shoal::tests
