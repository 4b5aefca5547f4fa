// tests/sim/cluster_machines.cpp -- processes and disks: disks keep what was
// stored, after a while; processes may end between any two actions.
#include "cluster_world.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace shoal::sim {

namespace {

shoal_id hash_view(const view& v, std::uint64_t salt) {
  shoal_id id{};
  cluster::random r(salt ^ v.members[0].instance ^ (v.number << 32));
  for (auto& b : id)
    b = std::uint8_t(r.next());
  return id;
}

void keep(machine& m, const record& r) {
  if (const auto* v = std::get_if<view_record>(&r))
    m.disk.view = *v;
  else if (const auto* k = std::get_if<key_record>(&r))
    m.disk.keys = *k;
  else
    m.disk.vote = std::get<vote_record>(r);
}

key_digest hash_key(const cluster_key& key) {
  key_digest d = key;
  for (auto& b : d)
    b ^= 0x5a;
  return d;
}

} // namespace

void cluster_world::start_machine(int i) {
  machine& m = machines_[std::size_t(i)];
  if (m.core)
    return;
  config c;
  c.self.id.peer = m.id;
  c.self.instance = m.instance = random_.next();
  c.self.name = "m" + std::to_string(i);
  c.self.addresses = {m.address};
  c.self.witness = i == 3;
  c.self.voter = i != 4;
  c.cluster = "sim";
  c.seed = random_.next();
  c.name_shoal = hash_view;
  const nanoseconds paces[] = {config{}.settle_pace, 0, millisecond};
  c.settle_pace = paces[options_.seed % 3];
  c.key = {1};
  c.digest_key = hash_key;
  m.keys = m.disk.keys.value_or(key_record{c.key, {}, {}});
  m.core = std::make_unique<membership>(std::move(c));
  m.waiting = std::make_unique<outbox>(m.disk);
  m.leaving = false;
  m.ticks_at = 0;
  m.paused_until = 0;
  give(i, cluster::start{m.disk});
  item a;
  a.what = happening::announce;
  a.to = i;
  a.token = m.instance;
  push(std::move(a), 0);
}

void cluster_world::crash(int i, bool silent) {
  machine& m = machines_[std::size_t(i)];
  if (!m.core)
    return;
  if (options_.print)
    std::printf("%9.3f m%d crashes\n", double(now_) / 1e9, i);
  ++result_.crashes;
  m.core.reset();
  m.waiting.reset();
  m.unsynced.clear();
  if (options_.bug == mutant::restarts_without_votes)
    m.disk.vote.reset();
  std::fill_n(ends_.coming[i], slots_max, 0);
  for (int j = 0; j < int(machines_.size()); ++j) {
    std::uint64_t gen = std::exchange(ends_.up[i][j], 0);
    if (gen == 0 || silent || blocked_[i][j])
      continue; // the other end does not notice
    item d;
    d.what = happening::down;
    d.to = j;
    d.from = i;
    d.token = gen;
    push(std::move(d), between(millisecond / 10, 2 * millisecond));
  }
}

void cluster_world::give(int i, const event& e) {
  machine& m = machines_[std::size_t(i)];
  if (!m.core)
    return;
  actions out;
  m.core->step(e, now_, out);
  note(std::uint64_t(now_) * 31 + std::uint64_t(i) * 7 + e.index());
  note(out.size());
  carry_out(i, out);
}

void cluster_world::carry_out(int i, actions& out) {
  machine& m = machines_[std::size_t(i)];
  // A crash between any two actions: stored records stay, later actions are
  // lost.
  std::size_t dies_at = out.size() + 1;
  bool casts_vote = std::ranges::any_of(out, [](const action& a) {
    const auto* p = std::get_if<persist>(&a);
    return p != nullptr && std::holds_alternative<vote_record>(p->what);
  });
  bool soon = chance(0.7);
  if (faults_ && chance(casts_vote ? 0.03 : 0.0005))
    dies_at = random_.below(out.size() + 1);
  for (std::size_t k = 0; k <= out.size() && m.core; ++k) {
    if (k == dies_at) {
      crash(i, chance(0.5));
      item s;
      s.what = happening::start;
      s.to = i;
      push(std::move(s), soon ? between(millisecond, 30 * millisecond)
                              : between(20 * millisecond, 3 * second));
      return;
    }
    if (k == out.size())
      break;
    note(out[k].index());
    check_pauses(out[k]);
    actions ready;
    m.waiting->take(std::move(out[k]), ready);
    write(i, ready);
    if (carry_out_ready(i, ready))
      return;
  }
  for (const record& r : m.unsynced) {
    machine& w = machines_[std::size_t(i)];
    keep(w, r);
  }
  m.unsynced.clear();
}

/// Stores the next record, at once if disks take no time. Actions that such a
/// disk releases follow in `ready`.
void cluster_world::write(int i, actions& ready) {
  machine& m = machines_[std::size_t(i)];
  while (auto next = m.waiting->next()) {
    if (real_disks_ && faults_) {
      item w;
      w.what = happening::written;
      w.to = i;
      w.token = m.instance;
      w.stored = std::make_shared<const outbox::write>(std::move(*next));
      const auto most = std::uint64_t(write_max_);
      push(std::move(w),
           millisecond / 20 + nanoseconds(disk_random_.below(most + 1)));
      return;
    }
    store(i, *next);
    m.waiting->written(true, ready);
  }
}

/// A disk has stored a record, or has failed to.
void cluster_world::written(item& i) {
  machine& m = machines_[std::size_t(i.to)];
  if (!m.core || m.instance != i.token)
    return;
  if (now_ < m.paused_until)
    return push(std::move(i), m.paused_until - now_);
  const bool fails =
    faults_ && double(disk_random_.below(1000)) < write_fails_ * 1000;
  if (!fails)
    store(i.to, *i.stored);
  note(fails ? 77 : 78);
  actions ready;
  m.waiting->written(!fails, ready);
  write(i.to, ready);
  carry_out_ready(i.to, ready);
}

/// @returns whether the process has ended.
bool cluster_world::carry_out_ready(int i, actions& ready) {
  for (const action& a : ready)
    if (carry_out(i, a))
      return true;
  return false;
}

/// @returns whether the process has ended.
bool cluster_world::carry_out(int i, const action& a) {
  machine& m = machines_[std::size_t(i)];
  if (const auto* s = std::get_if<cluster::send>(&a)) {
    auto body = std::make_shared<const message>(s->what);
    for (const peer_id& id : s->to)
      for (int j = 0; j < int(machines_.size()); ++j)
        if (machines_[std::size_t(j)].id == id)
          transmit(i, j, body);
  } else if (const auto* c = std::get_if<cluster::connect>(&a)) {
    dial(i, c->address);
  } else if (const auto* d = std::get_if<disconnect>(&a)) {
    for (int j = 0; j < int(machines_.size()); ++j)
      if (machines_[std::size_t(j)].id == d->peer)
        lose_connection(i, j);
  } else if (const auto* t = std::get_if<need_tick_at>(&a)) {
    m.ticks_at = t->when;
    item k;
    k.what = happening::tick;
    k.to = i;
    k.token = std::uint64_t(t->when);
    push(std::move(k), t->when - now_ + between(0, millisecond / 2));
  } else if (const auto* v = std::get_if<new_view>(&a)) {
    saw(i, *v);
    if (is_revoked(v->current, m.id)) { // like a node
      m.revoked = true;
      crash(i, false);
      return true;
    }
  } else if (std::holds_alternative<cluster::shut_out>(a)) {
    shut_out(i);
    return true;
  } else if (const auto* k = std::get_if<use_keys>(&a)) {
    m.keys = k->keys;
    for (const auto& [key, subject] : made_against_)
      if (subject == m.id
          && (key == m.keys.current
              || std::ranges::find(m.keys.pending, key)
                   != m.keys.pending.end()))
        checker_.fail("a peer has the key that excludes it"); // K-1
  } else if (const auto* l = std::get_if<left>(&a)) {
    if (options_.print)
      std::printf("%9.3f m%d left%s\n", double(now_) / 1e9, i,
                  l->clean ? "" : ", not confirmed");
    if (!m.disk.view)
      m.highest = 0; // erased before the last view was seen
    crash(i, false);
    --result_.crashes;
    item s;
    s.what = happening::start;
    s.to = i;
    push(std::move(s), between(100 * millisecond, 5 * second));
    return true;
  } else if (options_.print) {
    if (const auto* x = std::get_if<cluster::log>(&a))
      std::printf("%9.3f m%d %s\n", double(now_) / 1e9, i, x->text.c_str());
    else if (const auto* r = std::get_if<rejected>(&a))
      std::printf("%9.3f m%d rejected: %s\n", double(now_) / 1e9, i,
                  r->reason.c_str());
    else if (const auto* w = std::get_if<waiting_for>(&a))
      std::printf("%9.3f m%d waits for %zu\n", double(now_) / 1e9, i,
                  w->missing.size());
  }
  return false;
}

void cluster_world::store(int i, const outbox::write& w) {
  machine& m = machines_[std::size_t(i)];
  if (std::holds_alternative<erase_history>(w)) {
    m.disk.view.reset();
    m.disk.vote.reset();
    m.highest = 0;
    return;
  }
  const record& r = std::get<record>(w);
  if (const auto* v = std::get_if<vote_record>(&r)) {
    checker_.saw_vote(m.id, *v);
    if (options_.bug == mutant::votes_not_stored)
      return;
  }
  if (options_.bug == mutant::stores_too_late) {
    m.unsynced.push_back(r);
    return;
  }
  keep(m, r);
}

void cluster_world::saw(int i, const new_view& v) {
  machine& m = machines_[std::size_t(i)];
  if (options_.print) {
    std::printf("%9.3f m%d view %llu of %s:", double(now_) / 1e9, i,
                (unsigned long long)v.current.number,
                to_hex(v.current.shoal).substr(0, 6).c_str());
    for (const member& x : v.current.members)
      std::printf(" %s%s", x.name.c_str(),
                  x.state == member_state::active    ? ""
                  : x.state == member_state::joining ? "?"
                                                     : "!");
    std::printf("%s%s jobs %zu\n", v.member ? "" : " (outside)",
                v.current.dissolved_into ? " dissolved" : "",
                v.current.jobs.size());
  }
  note(v.current.number * 64 + v.current.jobs.size());
  for (const member& x : v.current.members)
    note(x.instance * 4 + std::uint64_t(x.state));
  drop_strangers(i);
  checker_.saw_view(m.id, v.current);
  if (v.current.number < m.highest)
    checker_.fail("the epoch of m" + std::to_string(i) + " fell"); // C-2
  m.highest = v.current.number;
  for (const job_entry& j : v.current.jobs) {
    if (j.state == job_state::running)
      checker_.acknowledged(j.id);
    else
      checker_.ended(j.id);
  }
}

} // namespace shoal::sim
