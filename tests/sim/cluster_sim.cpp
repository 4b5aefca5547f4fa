// tests/sim/cluster_sim.cpp -- the simulated world around the cluster cores.
#include "cluster_sim.hpp"

#include "checker.hpp"
#include "runtime/core/cluster/random.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <queue>
#include <utility>

namespace shoal::sim {

using namespace core;
using namespace core::cluster;

namespace {

constexpr int slots_max = 9;
constexpr nanoseconds settle_time = 10 * second; // what is promised

shoal_id hash_view(const view& v, std::uint64_t salt) {
  shoal_id id{};
  cluster::random r(salt ^ v.members[0].instance ^ (v.number << 32));
  for (auto& b : id)
    b = std::uint8_t(r.next());
  return id;
}

/// One machine: its process, if it runs, and its disk.
struct machine {
  peer_id id{};
  std::string address;
  std::unique_ptr<membership> core;
  std::uint64_t instance = 0;
  history disk;
  nanoseconds ticks_at = 0; ///< ticks for other times are stale
  nanoseconds paused_until = 0;
  epoch highest = 0;
  bool stays_down = false;
  bool leaving = false;
  std::vector<record> unsynced; ///< of a planted bug
};

/// One direction's view of a connection: 0 = down, else its generation.
struct ends {
  std::uint64_t up[slots_max][slots_max] = {};
  std::uint64_t coming[slots_max][slots_max] = {}; ///< up event on its way
};

enum class happening : std::uint8_t {
  deliver,
  tick,
  up,
  down,
  refuse,
  connect,
  discover,
  start,
  crash,
  fault,
  announce,
  heal
};

struct item {
  nanoseconds at = 0;
  std::uint64_t order = 0;
  happening what{};
  int to = 0;
  int from = 0;
  std::uint64_t token = 0; ///< generation of the connection, process, or fault
  std::shared_ptr<const message> body;
  std::string address;
};

struct later {
  bool operator()(const item& a, const item& b) const {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
};

class world {
public:
  explicit world(const cluster_options& o);
  cluster_result run();

private:
  // the queue
  void push(item i, nanoseconds delay);
  void handle(item& i);
  void note(std::uint64_t x) { trace_ = (trace_ ^ x) * 0x100000001b3u; }
  bool chance(double p) {
    return double(random_.below(1u << 20)) < p * (1 << 20);
  }
  nanoseconds between(nanoseconds low, nanoseconds high) {
    return low + nanoseconds(random_.below(std::uint64_t(high - low + 1)));
  }

  // machines
  void start_machine(int i);
  void crash(int i, bool silent);
  void give(int i, const event& e);
  void carry_out(int i, actions& out);
  bool carry_out(int i, const action& a);
  void store(int i, const record& r);
  void saw(int i, const new_view& v);

  // network
  void transmit(int from, int to, std::shared_ptr<const message> m);
  void dial(int from, const std::string& address);
  void lose_connection(int i, int j);
  int at_address(const std::string& address) const;

  // faults
  void fault();
  void cut(int kind);
  void submit();
  void end_job();
  void heal();

  bool settled(std::string* why);
  bool group_gone(const std::vector<int>& group);

  cluster_options options_;
  cluster::random random_;
  nanoseconds now_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t trace_ = 0xcbf29ce484222325u;
  std::priority_queue<item, std::vector<item>, later> queue_;
  std::vector<machine> machines_;
  ends ends_;
  bool blocked_[slots_max][slots_max] = {};
  double loss_ = 0;
  double slow_ = 0; ///< share of messages that are delayed a lot
  bool faults_ = false;
  bool disk_lost_ = false;
  checker checker_;
  cluster_result result_;
};

world::world(const cluster_options& o) : options_(o), random_(o.seed) {
  int n = o.peers > 0 ? std::min(o.peers, slots_max)
                      : 1 + int(random_.below(slots_max));
  machines_.resize(std::size_t(n));
  for (int i = 0; i < n; ++i) {
    machine& m = machines_[std::size_t(i)];
    for (auto& b : m.id)
      b = std::uint8_t(random_.next());
    m.address = "m" + std::to_string(i) + ":1";
  }
}

void world::push(item i, nanoseconds delay) {
  i.at = now_ + delay;
  i.order = ++order_;
  queue_.push(std::move(i));
}

// Machines -------------------------------------------------------------------

void world::start_machine(int i) {
  machine& m = machines_[std::size_t(i)];
  if (m.core)
    return;
  config c;
  c.self.id.peer = m.id;
  c.self.instance = m.instance = random_.next();
  c.self.name = "m" + std::to_string(i);
  c.self.addresses = {m.address};
  c.self.witness = i == 3;
  c.cluster = "sim";
  c.seed = random_.next();
  c.name_shoal = hash_view;
  m.core = std::make_unique<membership>(std::move(c));
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

void world::crash(int i, bool silent) {
  machine& m = machines_[std::size_t(i)];
  if (!m.core)
    return;
  if (options_.print)
    std::printf("%9.3f m%d crashes\n", double(now_) / 1e9, i);
  ++result_.crashes;
  m.core.reset();
  m.unsynced.clear();
  if (options_.bug == planted::restarts_without_votes)
    m.disk.vote.reset();
  std::fill_n(ends_.coming[i], slots_max, 0);
  for (int j = 0; j < int(machines_.size()); ++j) {
    std::uint64_t gen = std::exchange(ends_.up[i][j], 0);
    if (gen == 0 || silent || blocked_[i][j])
      continue; // the other end notices nothing
    item d;
    d.what = happening::down;
    d.to = j;
    d.from = i;
    d.token = gen;
    push(std::move(d), between(millisecond / 10, 2 * millisecond));
  }
}

void world::give(int i, const event& e) {
  machine& m = machines_[std::size_t(i)];
  if (!m.core)
    return;
  actions out;
  m.core->step(e, now_, out);
  note(std::uint64_t(now_) * 31 + std::uint64_t(i) * 7 + e.index());
  note(out.size());
  carry_out(i, out);
}

void world::carry_out(int i, actions& out) {
  machine& m = machines_[std::size_t(i)];
  // A crash between any two actions: what is persisted stays, the rest is
  // never heard of.
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
    if (carry_out(i, out[k]))
      return;
  }
  for (const record& r : m.unsynced) {
    machine& w = machines_[std::size_t(i)];
    if (const auto* v = std::get_if<view_record>(&r))
      w.disk.view = *v;
    else
      w.disk.vote = std::get<vote_record>(r);
  }
  m.unsynced.clear();
}

/// @returns whether the process has ended.
bool world::carry_out(int i, const action& a) {
  machine& m = machines_[std::size_t(i)];
  if (const auto* s = std::get_if<cluster::send>(&a)) {
    auto body = std::make_shared<const message>(s->what);
    for (const peer_id& id : s->to)
      for (int j = 0; j < int(machines_.size()); ++j)
        if (machines_[std::size_t(j)].id == id)
          transmit(i, j, body);
  } else if (const auto* p = std::get_if<persist>(&a)) {
    store(i, p->what);
  } else if (const auto* c = std::get_if<cluster::connect>(&a)) {
    dial(i, c->address);
  } else if (const auto* t = std::get_if<need_tick_at>(&a)) {
    m.ticks_at = t->when;
    item k;
    k.what = happening::tick;
    k.to = i;
    k.token = std::uint64_t(t->when);
    push(std::move(k), t->when - now_ + between(0, millisecond / 2));
  } else if (const auto* v = std::get_if<new_view>(&a)) {
    saw(i, *v);
  } else if (std::holds_alternative<erase_history>(a)) {
    m.disk = {};
    m.highest = 0;
  } else if (const auto* l = std::get_if<left>(&a)) {
    if (options_.print)
      std::printf("%9.3f m%d left%s\n", double(now_) / 1e9, i,
                  l->clean ? "" : ", not confirmed");
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

void world::store(int i, const record& r) {
  machine& m = machines_[std::size_t(i)];
  if (const auto* v = std::get_if<vote_record>(&r)) {
    checker_.saw_vote(m.id, *v);
    if (options_.bug == planted::votes_not_stored)
      return;
  }
  if (options_.bug == planted::stores_too_late) {
    m.unsynced.push_back(r);
    return;
  }
  if (const auto* v = std::get_if<view_record>(&r))
    m.disk.view = *v;
  else
    m.disk.vote = std::get<vote_record>(r);
}

void world::saw(int i, const new_view& v) {
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

// Network --------------------------------------------------------------------

int world::at_address(const std::string& address) const {
  for (int i = 0; i < int(machines_.size()); ++i)
    if (machines_[std::size_t(i)].address == address)
      return i;
  return -1;
}

void world::transmit(int from, int to, std::shared_ptr<const message> m) {
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

void world::dial(int from, const std::string& address) {
  item c;
  c.what = happening::connect;
  c.from = from;
  c.to = at_address(address);
  c.address = address;
  c.token = machines_[std::size_t(from)].instance;
  push(std::move(c), between(millisecond / 10, 2 * millisecond));
}

void world::lose_connection(int i, int j) {
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

void world::handle(item& i) {
  machine* m = i.to >= 0 ? &machines_[std::size_t(i.to)] : nullptr;
  if (m != nullptr && m->core && now_ < m->paused_until
      && i.what <= happening::refuse) {
    push(std::move(i), m->paused_until - now_);
    return;
  }
  switch (i.what) {
  case happening::deliver:
    if (!m->core)
      return;
    if (ends_.up[i.to][i.from] == i.token) {
      give(i.to, received{machines_[std::size_t(i.from)].id, *i.body});
    } else if (ends_.coming[i.to][i.from] == i.token) {
      push(std::move(i), millisecond / 5); // nothing comes before up
    } else if (ends_.up[i.from][i.to] == i.token) {
      item d; // the other host does not know this connection
      d.what = happening::down;
      d.to = i.from;
      d.from = i.to;
      d.token = i.token;
      push(std::move(d), millisecond);
    }
    return;
  case happening::tick:
    if (m->core && std::uint64_t(m->ticks_at) == i.token)
      give(i.to, cluster::tick{});
    return;
  case happening::up:
    if (m->core && m->instance == i.token) {
      std::uint64_t gen = std::stoull(i.address);
      if (ends_.coming[i.to][i.from] != gen)
        return; // a newer connection has replaced it
      ends_.coming[i.to][i.from] = 0;
      if (ends_.up[i.to][i.from] != 0) {
        ends_.up[i.to][i.from] = 0;
        give(i.to, peer_down{machines_[std::size_t(i.from)].id});
      }
      if (!m->core || !machines_[std::size_t(i.from)].core)
        return;
      ends_.up[i.to][i.from] = gen;
      give(i.to, peer_up{machines_[std::size_t(i.from)].id,
                         machines_[std::size_t(i.from)].instance});
    }
    return;
  case happening::down:
    if (m->core && ends_.up[i.to][i.from] == i.token) {
      ends_.up[i.to][i.from] = 0;
      give(i.to, peer_down{machines_[std::size_t(i.from)].id});
    }
    return;
  case happening::refuse:
    if (m->core && m->instance == i.token)
      give(i.to, connect_failed{i.address});
    return;
  case happening::connect: {
    machine& f = machines_[std::size_t(i.from)];
    if (!f.core || f.instance != i.token)
      return;
    bool cut = m == nullptr || blocked_[i.from][i.to] || blocked_[i.to][i.from];
    if (cut || !m->core) {
      item r;
      r.what = happening::refuse;
      r.to = i.from;
      r.token = f.instance;
      r.address = i.address;
      push(std::move(r), cut ? second : millisecond / 5);
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
    return;
  }
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
    if (!m->core || m->instance != i.token)
      return;
    for (int j = 0; j < int(machines_.size()); ++j)
      if (j != i.to && !blocked_[i.to][j] && !chance(loss_)) {
        item d;
        d.what = happening::discover;
        d.to = j;
        d.address = m->address;
        push(std::move(d), between(millisecond / 10, millisecond));
      }
    push(i, second);
    return;
  case happening::fault:
    if (faults_)
      fault();
    return;
  case happening::heal:
    if (faults_)
      std::fill_n(&blocked_[0][0], slots_max * slots_max, false);
    return;
  }
}

// Faults ---------------------------------------------------------------------

void world::fault() {
  int n = int(machines_.size());
  int i = int(random_.below(std::uint64_t(n)));
  machine& m = machines_[std::size_t(i)];
  switch (random_.below(12)) {
  case 0:
  case 1:
  case 2: { // kill, and restart
    crash(i, chance(0.3));
    if (chance(0.04)) { // and its disk is lost
      m.disk = {};
      m.highest = 0;
      disk_lost_ = true;
    }
    item s;
    s.what = happening::start;
    s.to = i;
    push(std::move(s), between(10 * millisecond, 4 * second));
    break;
  }
  case 3: // all at once, as when the power fails
    if (chance(0.3))
      for (int j = 0; j < n; ++j) {
        crash(j, true);
        item s;
        s.what = happening::start;
        s.to = j;
        push(std::move(s), between(10 * millisecond, 2 * second));
      }
    break;
  case 4:
  case 5:
    cut(int(random_.below(3)));
    break;
  case 6:
    loss_ = chance(0.5) ? 0 : double(random_.below(30)) / 100;
    slow_ = chance(0.5) ? 0 : double(random_.below(30)) / 100;
    break;
  case 7:
    if (m.core)
      m.paused_until = now_ + between(50 * millisecond, 3 * second);
    break;
  case 8:
    lose_connection(i, int(random_.below(std::uint64_t(n))));
    break;
  case 9: // several at a time, so that proposals collide
    for (std::uint64_t k = random_.below(4); k < 4; ++k)
      submit();
    break;
  case 10:
    if (chance(0.5))
      end_job();
    else if (m.core)
      give(i, update_profile{{"cpu", "", 1, random_.below(9), 0}, {m.address}});
    break;
  case 11:
    if (m.core) {
      m.leaving = true;
      give(i, cluster::leave{});
      if (m.core)
        give(i, leave_now{});
    }
    break;
  }
  item f;
  f.what = happening::fault;
  push(std::move(f), between(20 * millisecond, 1500 * millisecond));
}

void world::cut(int kind) {
  int n = int(machines_.size());
  if (kind == 0) { // two sides, both ways or one way
    std::uint64_t side = random_.next();
    bool one_way = chance(0.3);
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < n; ++b) {
        bool sa = (side >> a) & 1;
        bool sb = (side >> b) & 1;
        if (sa != sb && (!one_way || sa))
          blocked_[a][b] = true;
      }
  } else { // one pair
    int a = int(random_.below(std::uint64_t(n)));
    int b = int(random_.below(std::uint64_t(n)));
    blocked_[a][b] = true;
    if (kind == 1)
      blocked_[b][a] = true;
  }
  item h;
  h.what = happening::heal;
  push(std::move(h), between(50 * millisecond, 5 * second));
}

void world::submit() {
  int i = int(random_.below(machines_.size()));
  if (!machines_[std::size_t(i)].core || !chance(0.6))
    return;
  job_entry j;
  j.id = random_.next();
  j.name = "job";
  ++result_.jobs;
  give(i, submit_job{j});
}

void world::end_job() {
  int i = int(random_.below(machines_.size()));
  machine& m = machines_[std::size_t(i)];
  if (!m.core)
    return;
  for (const job_entry& j : m.core->current().jobs)
    if (j.state == job_state::running) {
      give(i, set_job_state{j.id, job_state::done, 7});
      return;
    }
}

void world::heal() {
  faults_ = false;
  loss_ = slow_ = 0;
  std::fill_n(&blocked_[0][0], slots_max * slots_max, false);
  bool some_stay_down = chance(0.2);
  for (int i = 0; i < int(machines_.size()); ++i) {
    machine& m = machines_[std::size_t(i)];
    m.paused_until = std::min(m.paused_until, now_);
    m.stays_down = !m.core && some_stay_down && chance(0.5);
    if (!m.core && !m.stays_down)
      start_machine(i);
  }
}

// The end --------------------------------------------------------------------

/// Whether peers of one shoal can not go on: its newest view, or the newest
/// that they know, needs votes of peers that do not run or have lost them.
bool world::group_gone(const std::vector<int>& group) {
  std::vector<peer_id> ids;
  const view* known = nullptr;
  for (int i : group) {
    const machine& m = machines_[std::size_t(i)];
    ids.push_back(m.id);
    if (known == nullptr || m.core->current().number > known->number)
      known = &m.core->current();
  }
  const view* tip = checker_.tip(known->shoal);
  return !is_quorum(*tip, ids) || !is_quorum(*known, ids);
}

bool world::settled(std::string* why) {
  std::map<shoal_id, std::vector<int>> groups;
  for (int i = 0; i < int(machines_.size()); ++i) {
    const machine& m = machines_[std::size_t(i)];
    if (!m.core)
      continue;
    if (!m.core->seated()) {
      *why = "m" + std::to_string(i) + " is in no shoal";
      return false;
    }
    groups[m.core->current().shoal].push_back(i);
  }
  std::size_t live = 0;
  std::size_t busy = 0;
  result_.quorum_gone = false;
  for (const auto& [id, group] : groups) {
    if (group_gone(group)) {
      result_.quorum_gone = true;
      continue;
    }
    const view& v = machines_[std::size_t(group[0])].core->current();
    ++live;
    busy += std::ranges::any_of(
      v.jobs, [](const auto& j) { return j.state == job_state::running; });
    for (int i : group) {
      const machine& m = machines_[std::size_t(i)];
      const member* e = find_member(v, m.id);
      if (!(m.core->current() == v) || v.members.size() != group.size()
          || e == nullptr || e->instance != m.instance
          || e->state != member_state::active
          || m.core->phase() != phase::member) {
        *why = "m" + std::to_string(i) + " is not in one view with its shoal";
        return false;
      }
    }
  }
  for (job_id id : checker_.jobs()) {
    bool found = disk_lost_ || result_.quorum_gone;
    for (const machine& m : machines_)
      found = found || m.stays_down
              || (m.core && find_job(m.core->current(), id) != nullptr);
    if (!found) {
      *why = "an acknowledged job is lost";
      return false;
    }
  }
  if (live > 1 && busy < live) {
    *why = "two shoals stay apart without a reason";
    return false;
  }
  return true;
}

cluster_result world::run() {
  faults_ = !options_.calm;
  bool rough_birth = faults_ && chance(0.5);
  nanoseconds ready = 0;
  for (int i = 0; i < int(machines_.size()); ++i) {
    item s;
    s.what = happening::start;
    s.to = i;
    nanoseconds at = between(0, 300 * millisecond);
    ready = std::max(ready, at);
    push(std::move(s), at);
  }
  nanoseconds chaos_end = faults_ ? ready + between(3, 20) * second : ready;
  if (faults_) {
    item f;
    f.what = happening::fault;
    push(std::move(f), rough_birth ? 0 : 2 * second);
  }
  bool healed = false;
  std::string why = "nothing ran";
  nanoseconds check_at = 0;
  while (!queue_.empty() && checker_.failure().empty()) {
    if (!healed && queue_.top().at >= chaos_end) {
      healed = true;
      now_ = chaos_end;
      if (options_.print)
        std::printf("%9.3f the faults stop\n", double(now_) / 1e9);
      heal();
    }
    item i = queue_.top();
    queue_.pop();
    now_ = i.at;
    ++result_.events;
    handle(i);
    if (healed && now_ >= check_at) {
      check_at = now_ + 20 * millisecond;
      if (settled(&why)) {
        why.clear();
        break;
      }
      if (now_ > chaos_end + settle_time)
        break;
    }
  }
  if (!why.empty())
    checker_.fail("10 s after the last fault: " + why);
  result_.failure = checker_.failure();
  result_.settled_after = now_ - chaos_end;
  result_.trace = trace_;
  result_.views = checker_.views();
  result_.merges = checker_.merges();
  return result_;
}

} // namespace

cluster_result run_cluster(const cluster_options& options) {
  return world(options).run();
}

} // namespace shoal::sim
