// tests/sim/job/job_sim.cpp -- the simulated shells, the oracle, the checks.
#include "tests/sim/job/job_sim.hpp"

#include "runtime/core/training/job_core.hpp"
#include "runtime/core/training/plan.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <functional>
#include <memory>
#include <queue>
#include <set>
#include <stdexcept>
#include <utility>

namespace shoal::sim {
namespace {

using namespace shoal::core;
namespace act = shoal::core::job_action;
namespace ev = shoal::core::job_event;

constexpr nanoseconds ms = 1'000'000;
constexpr std::uint32_t seconds_to_end = 120;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class random_source {
public:
  explicit random_source(std::uint64_t seed) : state_(mix(seed, 77)) {}
  std::uint64_t next() { return state_ = mix(state_, 1); }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }

private:
  std::uint64_t state_;
};

using unit_hashes = std::map<std::uint32_t, std::uint64_t>;

/// A process: the core, and what its shell holds.
struct process {
  process(peer_id i, epoch n, job_config c) : id(i), incarnation(n), core(c) {}

  peer_id id{};
  epoch incarnation = 0;
  job_core core;
  unit_hashes state;                ///< hash of each unit held
  std::uint64_t generation = 0;     ///< halts: older work is void
  std::uint64_t running_digest = 0; ///< run_step(running_step) under it
  std::uint64_t running_step = 0;
  std::uint64_t digest_seen = 0;
  std::uint64_t checkpoint_step = 0; ///< run_checkpoint asked
  std::uint64_t gradients_of = 0;    ///< digest that the gradients came from
  bool applying = false;
  state_version prepared; ///< what the gradients lead to
  std::set<std::uint32_t> prepared_units;
  std::function<void()> after_apply;
  std::set<std::pair<std::uint64_t, std::pair<std::uint32_t, peer_id>>> serves;
  state_version reported{};
  bool alive = true;
  bool over = false;
  bool must_say = false; ///< that steps reported here are lost
  bool blobs = false;
  checkpoint_ref saved; ///< on disk
};

class world {
public:
  world(std::uint64_t seed, bool trace)
    : rng_(seed), trace_(trace), seed_(seed) {
    set_up();
  }

  job_sim_result run();

private:
  struct item {
    nanoseconds at;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const item& o) const {
      return std::pair(at, order) > std::pair(o.at, o.order);
    }
  };
  using ptr = std::shared_ptr<process>;

  void set_up();
  void after(nanoseconds delay, std::function<void()> what) {
    queue_.push({now_ + delay, ++order_, std::move(what)});
  }
  nanoseconds between(nanoseconds a, nanoseconds b) {
    return a + static_cast<nanoseconds>(rng_.below(b - a + 1));
  }
  void check(bool ok, const std::string& what) {
    if (!ok)
      throw std::runtime_error(what + " at " + std::to_string(now_ / ms)
                               + " ms");
  }
  void say(const std::string& what) {
    if (trace_)
      std::fprintf(stderr, "%8.1f %s\n", double(now_) / ms, what.c_str());
  }
  std::string name(const ptr& p) const {
    std::string out("p");
    out.append(std::to_string(p->id[0])).append(".");
    return out.append(std::to_string(p->incarnation));
  }

  void new_view();
  void show_view(const ptr& p, const view& v, const plan& pl);
  void start(std::uint8_t n);
  void crash(std::uint8_t n);
  void tick(const ptr& p);
  void schedule_faults();

  void input(const ptr& p, const job_input& e);
  void do_action(const ptr& p, const job_output& a);
  void later(const ptr& p, nanoseconds delay, std::function<void()> what);

  void on(const ptr& p, const act::halt& a);
  void on(const ptr& p, const act::send& a);
  void on(const ptr& p, const act::adopt& a);
  void on(const ptr& p, const act::apply& a);
  void on(const ptr& p, const act::fetch_unit& a);
  void on(const ptr& p, const act::serve_unit& a);
  void on(const ptr& p, const act::initialise_unit& a);
  void on(const ptr& p, const act::restore_unit& a);
  void on(const ptr& p, const act::release& a);
  void on(const ptr& p, const act::run_step& a);
  void on(const ptr& p, const act::run_eval& a);
  void on(const ptr& p, const act::run_checkpoint& a);
  void on(const ptr& p, const act::committed& a);
  void on(const ptr&, const act::eval_known&) {}
  void on(const ptr& p, const act::checkpoint_known& a);
  void on(const ptr& p, const act::lost_state& a);
  void on(const ptr& p, const act::get_blobs& a);
  void on(const ptr& p, const act::waiting& a) {
    say(name(p) + " waits: " + a.why);
  }
  void on(const ptr& p, const act::finished& a);
  void on(const ptr& p, const act::ended& a);

  void send(const ptr& from, const peer_id& to, const job_message& m);
  void check_version(const ptr& p, std::uint32_t unit);
  bool reachable(const state_version& v, const assignment& place);
  const assignment* assignment_of(std::uint64_t d) {
    auto at = assignments_.find(d);
    return at == assignments_.end() ? nullptr : &at->second;
  }

  random_source rng_;
  bool trace_;
  std::uint64_t seed_;
  nanoseconds now_ = 0;
  std::uint64_t order_ = 0;
  std::priority_queue<item> queue_;

  std::map<std::uint8_t, ptr> up_; ///< by number; dead ones are replaced
  view view_;
  std::map<std::uint64_t, assignment> assignments_;
  job_config config_;
  bool barrier_ = true;
  std::uint64_t loss_percent_ = 0;
  std::map<std::pair<peer_id, peer_id>, nanoseconds> link_free_;

  std::vector<step_record> chain_;
  std::map<state_version, step_record> known_; ///< every committed one
  std::map<std::pair<state_version, std::uint32_t>, std::uint64_t> hashes_;
  std::set<std::uint64_t> adopted_;
  struct saved_state {
    std::uint64_t step = 0;
    unit_hashes units;
    std::vector<step_record> chain;
  };
  std::map<std::uint64_t, saved_state> checkpoints_;
  std::map<std::uint64_t, state_version> resumed_; ///< by digest
  job_sim_result result_;
  bool done_ = false;
  bool drained_ = false;
};

void world::set_up() {
  config_.job = 7;
  config_.blocks = 1 + static_cast<std::uint32_t>(rng_.below(5));
  config_.microbatches = 2 + static_cast<std::uint32_t>(rng_.below(6));
  config_.total_steps = 10 + rng_.below(40);
  config_.eval_every = rng_.chance(50) ? 1 + rng_.below(9) : 0;
  config_.checkpoint_every = rng_.chance(50) ? 2 + rng_.below(9) : 0;
  config_.checkpoint_at_end = rng_.chance(80);
  barrier_ = rng_.chance(60);
  loss_percent_ = rng_.chance(30) ? 1 + rng_.below(8) : 0;

  job_entry job;
  job.id = config_.job;
  job.blocks = config_.blocks;
  job.microbatches = config_.microbatches;
  job.block_flops = 10'000'000'000;
  job.head_flops = 3'000'000'000;
  job.block_state_bytes = 1'000'000;
  job.embed_state_bytes = job.head_state_bytes = 500'000;
  job.activation_bytes = 1000;
  if (rng_.chance(60)) {
    job.want_replicas = 1 + static_cast<std::int32_t>(rng_.below(3));
    job.want_stages = 1 + static_cast<std::int32_t>(rng_.below(3));
  }
  view_.number = 1;
  auto peers = static_cast<std::uint8_t>(1 + rng_.below(8));
  for (std::uint8_t n = 1; n <= peers; ++n)
    start(n);
  job.submitter = up_.begin()->second->id;
  up_.begin()->second->blobs = true;
  view_.jobs.push_back(job);
  new_view();
  schedule_faults();
}

void world::schedule_faults() {
  nanoseconds end = 3000 * ms;
  auto peers = static_cast<std::uint8_t>(up_.size());
  std::uint64_t faults = rng_.below(14);
  for (std::uint64_t i = 0; i < faults; ++i) {
    auto n = static_cast<std::uint8_t>(1 + rng_.below(peers));
    nanoseconds at = between(0, end);
    // Often two or more close together, so that sealing and fetching are hit.
    for (std::uint64_t burst = 1 + (rng_.chance(40) ? rng_.below(3) : 0);
         burst > 0; --burst) {
      after(at, [=, this] { crash(n); });
      at += between(0, 40 * ms);
      n = static_cast<std::uint8_t>(1 + n % peers);
    }
  }
  for (std::uint64_t i = rng_.below(3); i > 0; --i) {
    auto n = static_cast<std::uint8_t>(peers + i);
    after(between(0, end), [=, this] {
      if (!up_.contains(n)) {
        start(n);
        new_view();
      }
    });
  }
  if (rng_.chance(10))
    after(between(100 * ms, end), [this] {
      auto at = up_.begin();
      std::advance(at, rng_.below(up_.size()));
      if (!at->second->alive)
        return;
      say("drain asked of " + name(at->second));
      drained_ = true;
      input(at->second, ev::drain{});
    });
}

void world::start(std::uint8_t n) {
  peer_id id{};
  id[0] = n;
  job_config c = config_;
  c.self = id;
  bool blobs = up_.contains(n) && up_[n]->blobs; // the store is on disk
  checkpoint_ref saved = up_.contains(n) ? up_[n]->saved : checkpoint_ref{};
  ptr p = std::make_shared<process>(id, view_.number + 1, c);
  p->blobs = blobs;
  up_[n] = p;
  member m;
  m.id = {id, view_.number + 1};
  m.device.mflops = 50'000 + 10'000 * rng_.below(5);
  m.device.memory_bytes = 1'000'000'000;
  std::erase_if(view_.members, [&](auto& x) { return x.id.peer == id; });
  view_.members.push_back(m);
  std::ranges::sort(view_.members, {}, &member::id);
  say(name(p) + " starts");
  after(between(0, 200 * ms), [=, this] { tick(p); });
  if (blobs)
    input(p, ev::blobs_held{});
  if ((p->saved = saved) != checkpoint_ref{})
    input(p, ev::checkpoint_held{saved});
}

void world::crash(std::uint8_t n) {
  auto at = up_.find(n);
  if (done_ || at == up_.end() || !at->second->alive)
    return;
  at->second->alive = false;
  ++result_.crashes;
  say(name(at->second) + " CRASHES");
  member_id gone{at->second->id, at->second->incarnation};
  after(between(1 * ms, 200 * ms), [=, this] {
    if (std::erase_if(view_.members, [&](auto& m) { return m.id == gone; }))
      new_view();
  });
  after(between(50 * ms, 800 * ms), [=, this] {
    start(n); // replaces the dead member, if it is still in the view
    new_view();
  });
}

void world::new_view() {
  ++view_.number;
  ++result_.views;
  plan pl = make_plan(view_);
  for (const assignment& a : pl.jobs) {
    assignments_[digest(a)] = a;
    if (trace_) {
      std::string s = "view " + std::to_string(view_.number) + " since "
                      + std::to_string(a.since) + ":";
      for (auto& r : a.replicas) {
        s += " [";
        for (auto& st : r.stages)
          s += " p" + std::to_string(st.where.peer[0]) + ":"
               + std::to_string(st.first_block) + "-"
               + std::to_string(st.last_block);
        s += " ]";
      }
      say(s);
    }
  }
  for (auto& [n, p] : up_)
    if (find_member(view_, p->id))
      after(between(0, 30 * ms), [=, this, v = view_] { show_view(p, v, pl); });
  view_.previous = pl.jobs;
}

void world::show_view(const ptr& p, const view& v, const plan& pl) {
  if (!p->alive || p->over || v.number <= p->digest_seen)
    return;
  const member* m = find_member(v, p->id);
  if (!m || m->id.incarnation != p->incarnation)
    return;
  p->digest_seen = v.number; // newest view shown
  ev::view_changed e{v.number, std::nullopt, {}};
  for (const assignment& a : pl.jobs)
    e.place = a;
  for (const member& x : v.members)
    e.members.push_back(x.id.peer);
  if (p->blobs)
    input(p, ev::blobs_held{});
  input(p, e);
}

void world::tick(const ptr& p) {
  if (!p->alive || p->over)
    return;
  input(p, ev::tick{});
  after(200 * ms, [=, this] { tick(p); });
}

void world::input(const ptr& p, const job_input& e) {
  if (!p->alive || p->over)
    return;
  for (const job_output& a : p->core.step(e, now_))
    do_action(p, a);
}

void world::do_action(const ptr& p, const job_output& a) {
  std::visit([&](const auto& x) { on(p, x); }, a);
}

/// Runs unless the process died or halted meanwhile.
void world::later(const ptr& p, nanoseconds delay, std::function<void()> what) {
  after(delay, [=, this, g = p->generation] {
    if (p->alive && p->generation == g)
      what();
  });
}

void world::on(const ptr& p, const act::halt& a) {
  ++p->generation;
  p->running_digest = 0;
  p->serves.clear();
  auto answer = [=, this] {
    later(p, between(0, 15 * ms),
          [=, this] { input(p, ev::halted{a.digest}); });
  };
  if (p->applying)
    p->after_apply = answer; // not to be interrupted
  else
    answer();
}

void world::on(const ptr& p, const act::send& a) {
  check(a.to != p->id, "a message to itself");
  send(p, a.to, a.message);
}

void world::send(const ptr& from, const peer_id& to, const job_message& m) {
  if (rng_.chance(loss_percent_))
    return;
  nanoseconds at = now_ + between(ms / 10, rng_.chance(10) ? 60 * ms : 5 * ms);
  nanoseconds& free = link_free_[{from->id, to}];
  at = free = std::max(at, free + 1);
  std::uint8_t n = to[0];
  ptr receiver = up_.contains(n) ? up_[n] : nullptr;
  if (!receiver)
    return;
  after(at - now_, [=, this] { // sent before death arrives after it
    input(receiver, ev::received{from->id, m});
  });
}

void world::check_version(const ptr& p, std::uint32_t unit) {
  state_version v = p->core.held().at(unit);
  auto [at, fresh] = hashes_.try_emplace({v, unit}, p->state.at(unit));
  check(fresh || at->second == p->state.at(unit),
        name(p) + " holds unit " + std::to_string(unit) + " at step "
          + std::to_string(v.step) + " with another hash");
}

bool world::reachable(const state_version& v, const assignment& place) {
  for (std::uint32_t u = 0; u < config_.blocks + 2; ++u) {
    bool found = false;
    for (auto& [n, p] : up_) {
      bool seals =
        p->alive
        && std::ranges::find(place.sealers, member_id{p->id, p->incarnation})
             != place.sealers.end();
      auto at = p->core.held().find(u);
      found = found
              || (seals && at != p->core.held().end()
                  && (at->second == v
                      || (at->second.step + 1 == v.step && p->prepared == v
                          && p->prepared_units.contains(u))));
    }
    if (!found)
      return false;
  }
  return true;
}

void world::on(const ptr& p, const act::adopt& a) {
  p->must_say = p->reported.step > a.from.step;
  auto [at, fresh] = resumed_.try_emplace(a.digest, a.from);
  check(at->second == a.from, "sealers resume at different versions");
  if (!fresh)
    return;
  say(name(p) + " adopts: resume at " + std::to_string(a.from.step) + " made "
      + std::to_string(a.from.made));
  std::uint64_t tip =
    chain_.empty() ? config_.origin_step : chain_.back().version.step;
  if (a.from.step < tip) {
    check(!reachable(chain_.back().version, a.place),
          "step " + std::to_string(tip) + " is given up though all is there");
    ++result_.losses;
    while (!chain_.empty() && chain_.back().version.step > a.from.step)
      chain_.pop_back();
  } else if (a.from.step > tip) {
    for (auto& [key, saved] : checkpoints_)
      if (saved.step == a.from.step && a.from.made == a.place.since) {
        chain_ = saved.chain; // a keeper came back with more than was left
        return;
      }
    ++result_.forwards;
    check(a.from.step == tip + 1, "rolls forward by more than one step");
  }
}

void world::on(const ptr& p, const act::lost_state& a) {
  say(name(p) + " LOST: " + std::to_string(a.last) + " -> "
      + std::to_string(a.resume));
  p->must_say = false;
  p->reported.step = a.resume;
}

void world::on(const ptr& p, const act::apply& a) {
  check(!p->applying, "two applies at once");
  p->applying = true;
  after(between(1 * ms, 10 * ms), [=, this] {
    if (!p->alive)
      return;
    p->applying = false;
    for (std::uint32_t u : a.units)
      p->state.at(u) =
        mix(mix(p->state.at(u), a.step),
            mix(std::bit_cast<std::uint64_t>(a.grad_norm), p->gradients_of));
    input(p, ev::applied{a.step});
    for (std::uint32_t u : a.units)
      if (p->core.held().contains(u))
        check_version(p, u);
    if (p->after_apply)
      std::exchange(p->after_apply, nullptr)();
  });
}

void world::on(const ptr& p, const act::serve_unit& a) {
  check(p->state.contains(a.unit), "serves what it has not");
  p->serves.insert({a.digest, {a.unit, a.to}});
}

void world::on(const ptr& p, const act::fetch_unit& a) {
  p->state.erase(a.unit);
  later(p, between(1 * ms, 60 * ms), [=, this] {
    ptr from = up_[a.from[0]];
    auto offer = std::pair(a.digest, std::pair(a.unit, p->id));
    if (!from->alive || !from->serves.contains(offer)) {
      on(p, a); // not offered yet, or never: another view will tell
      return;
    }
    p->state[a.unit] = from->state.at(a.unit);
    input(p, ev::loaded{a.digest, a.unit});
    check_version(p, a.unit);
  });
}

void world::on(const ptr& p, const act::initialise_unit& a) {
  p->state.erase(a.unit);
  later(p, between(1 * ms, 20 * ms), [=, this] {
    p->state[a.unit] = mix(a.unit, 4711);
    input(p, ev::loaded{a.digest, a.unit});
    check_version(p, a.unit);
  });
}

void world::on(const ptr& p, const act::restore_unit& a) {
  p->state.erase(a.unit);
  check(!a.holders.empty(), "a checkpoint of nobody");
  later(p, between(1 * ms, 20 * ms), [=, this] {
    std::uint64_t key = 0;
    for (int i = 0; i < 8; ++i)
      key |= std::uint64_t{a.checkpoint.manifest[i]} << (8 * i);
    check(checkpoints_.contains(key), "an unknown checkpoint");
    p->state[a.unit] = checkpoints_[key].units.at(a.unit);
    input(p, ev::loaded{a.digest, a.unit});
    check_version(p, a.unit);
  });
}

void world::on(const ptr& p, const act::release& a) {
  for (std::uint32_t u : a.units)
    p->state.erase(u);
}

void world::on(const ptr& p, const act::run_step& a) {
  const assignment* place = assignment_of(a.digest);
  check(place, "runs an unknown assignment");
  check(!p->must_say, "a loss was not said");
  for (auto& u : units_of(*place, config_.blocks, p->id))
    check(p->core.held().at(u).step + 1 == a.step, "runs on old state");
  p->running_digest = a.digest;
  p->running_step = a.step;
  auto prepare = std::make_shared<std::function<void()>>();
  *prepare = [=, this, weak = std::weak_ptr(prepare)] {
    for (const peer_id& other : participants(*place)) {
      const ptr& q = up_[other[0]];
      bool there =
        q->alive && q->running_digest == a.digest && q->running_step >= a.step;
      if (barrier_ && !there) {
        later(p, between(1 * ms, 10 * ms),
              [again = weak.lock()] { (*again)(); });
        return;
      }
    }
    ev::prepared e{a.digest, a.step, {}, {}};
    bool head = false;
    for (std::uint32_t u : units_of(*place, config_.blocks, p->id)) {
      unit_sums s{u, {}};
      for (std::uint64_t t = 0; t < 3; ++t)
        s.sums.push_back(
          1.0 + double(mix(mix(p->state.at(u), a.digest), t) >> 40) / 1e3);
      e.units.push_back(std::move(s));
      head = head || u == config_.blocks + 1;
    }
    for (std::uint32_t m = 0; head && m < config_.microbatches; ++m)
      e.losses.push_back(double(mix(mix(a.step, m), a.digest) >> 40) / 1e6);
    p->gradients_of = a.digest;
    p->prepared = {a.step, place->since};
    p->prepared_units.clear();
    for (const unit_sums& u : e.units)
      p->prepared_units.insert(u.unit);
    input(p, e);
  };
  later(p, between(5 * ms, 60 * ms), [prepare] { (*prepare)(); });
}

void world::on(const ptr& p, const act::run_eval& a) {
  later(p, between(1 * ms, 20 * ms), [=, this] {
    input(p, ev::evaluated{a.digest, a.step, rng_.chance(90), 1.5, 100});
  });
}

void world::on(const ptr& p, const act::run_checkpoint& a) {
  const assignment* place = assignment_of(a.digest);
  p->running_digest = a.digest;
  p->checkpoint_step = a.step;
  later(p, between(1 * ms, 20 * ms), [=, this] {
    ev::checkpointed e{a.digest, a.step, false, {}, 0};
    if (place->checkpointer.peer != p->id) {
      input(p, e);
      return;
    }
    unit_hashes all;
    for (const peer_id& other : participants(*place)) {
      const ptr& q = up_[other[0]];
      // Others may have gone on to the next step, but not applied it.
      for (auto& [u, hash] : q->state)
        if (q->alive && q->core.held().contains(u)
            && q->core.held().at(u).step == a.step)
          all[u] = hash;
    }
    if (all.size() == config_.blocks + 2 && rng_.chance(95)) {
      std::uint64_t key = mix(a.digest, a.step);
      for (int i = 0; i < 8; ++i)
        e.manifest[i] = static_cast<std::uint8_t>(key >> (8 * i));
      checkpoints_[key] = {a.step, all, chain_};
      e.known = true;
      e.bytes = 100;
    }
    input(p, e);
  });
}

void world::on(const ptr& p, const act::checkpoint_known& a) {
  if (a.at == p->id)
    p->saved = a.checkpoint;
  else if (a.keep && rng_.chance(50))
    after(between(1 * ms, 100 * ms), [=, this] {
      if (p->alive)
        p->saved = a.checkpoint;
      input(p, ev::checkpoint_held{a.checkpoint});
    });
}

void world::on(const ptr& p, const act::get_blobs& a) {
  later(p, between(1 * ms, 50 * ms), [=, this] {
    for (const peer_id& from : a.holders)
      if (up_[from[0]]->alive && up_[from[0]]->blobs) {
        p->blobs = true;
        input(p, ev::blobs_held{});
        return;
      }
    on(p, a);
  });
}

void world::on(const ptr& p, const act::committed& a) {
  const step_record& r = a.record;
  if (a.publish)
    for (const member& m : view_.members)
      if (m.id.peer != p->id)
        send(p, m.id.peer, progress{a.on, r, 0.1, 10, 5});
  if (a.again)
    return;
  auto age = [](const state_version& v) { return std::pair(v.made, v.step); };
  check(age(r.version) > age(p->reported) && r.version.step > p->reported.step,
        name(p) + " reports a step out of order");
  p->reported = r.version;
  auto [at, fresh] = known_.try_emplace(r.version, r);
  check(at->second.loss == r.loss && at->second.grad_norm == r.grad_norm,
        "a step has two losses or norms");
  if (!fresh)
    return;
  std::uint64_t tip =
    chain_.empty() ? config_.origin_step : chain_.back().version.step;
  say("step " + std::to_string(r.version.step) + " committed");
  check(r.version.step == tip + 1, "step " + std::to_string(r.version.step)
                                     + " committed after "
                                     + std::to_string(tip));
  chain_.push_back(r);
  ++result_.steps;
}

void world::on(const ptr& p, const act::finished& a) {
  say(name(p) + " finished " + std::to_string(a.step));
  bool completed = a.reason == stop_reason::completed;
  check(completed ? a.step == config_.total_steps : drained_,
        "finished for no reason");
  const assignment* place = assignment_of(
    digest(view_.previous.empty() ? assignment{} : view_.previous.front()));
  if (done_ || !place || place->reporter.peer != p->id)
    return;
  check(!chain_.empty() ? chain_.back().version.step == a.step : a.step == 0,
        "finished at a step that is not committed");
  done_ = true;
  view_.jobs.front().state = job_state::done;
  new_view();
}

void world::on(const ptr& p, const act::ended&) {
  check(p->state.empty() && p->core.held().empty(), "state left behind");
  p->over = true;
}

job_sim_result world::run() {
  try {
    while (!queue_.empty()) {
      item next = queue_.top();
      queue_.pop();
      now_ = next.at;
      check(now_ < seconds_to_end * 1000 * ms, "the job does not end");
      next.what();
    }
    check(done_, "nothing left to do, but the job has not ended");
    for (auto& [n, p] : up_)
      check(!p->alive || p->over, name(p) + " did not end");
    for (std::size_t i = 0; i < chain_.size(); ++i)
      check(chain_[i].version.step == config_.origin_step + i + 1,
            "the chain has a gap");
    result_.ok = true;
  } catch (const std::exception& e) {
    result_.error = "seed " + std::to_string(seed_) + ": " + e.what();
  }
  return result_;
}

} // namespace

job_sim_result run_job_sim(std::uint64_t seed, bool trace) {
  return world(seed, trace).run();
}

} // namespace shoal::sim
