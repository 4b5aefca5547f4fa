// tests/sim/job/job_shell.cpp -- carries out the actions of the cores.
#include "runtime/core/training/shards.hpp"
#include "tests/sim/job/job_world.hpp"
#include "tests/support/held_parts.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace shoal::sim {

void job_world::tick(const ptr& p) {
  if (!p->alive || p->over)
    return;
  input(p, ev::tick{});
  after(200 * ms, [=, this] { tick(p); });
}

void job_world::input(const ptr& p, const job_input& e) {
  if (!p->alive || p->over)
    return;
  const job_actions out = p->core.step(e, now_);
  note(std::uint64_t(now_) * 31 + p->id[0]);
  note(std::uint64_t(e.index() * 1000 + out.size()));
  for (const job_output& a : out)
    do_action(p, a);
  p->kept.clear();
}

void job_world::do_action(const ptr& p, const job_output& a) {
  std::visit([&](const auto& x) { on(p, x); }, a);
}

/// Runs unless the process died or halted meanwhile.
void job_world::later(const ptr& p, nanoseconds delay,
                      std::function<void()> what) {
  after(delay, [=, g = p->generation] {
    if (p->alive && p->generation == g)
      what();
  });
}

/// Whether the process's disk refuses, under a sub-plan.
static bool refuses(const std::shared_ptr<process>& p, std::uint64_t digest) {
  return mix(digest, p->id[0]) % 4 == 0;
}

void job_world::on(const ptr& p, const act::halt& a) {
  ++p->generation;
  p->running_digest = 0;
  p->fetched.clear();
  p->serves.clear();
  p->sends.clear();
  auto answer = [=, this] {
    later(p, between(0, 15 * ms), [=, this] {
      input(p, ev::halted{a.digest, refuses(p, a.digest)});
    });
  };
  if (p->applying > 0)
    p->after_apply = answer; // not interruptible
  else
    answer();
}

void job_world::on(const ptr& p, const act::send& a) {
  check(a.to != p->id, "a message to itself");
  send(p, a.to, a.message);
}

void job_world::send(const ptr& from, const peer_id& to, const job_message& m) {
  if (rng_.chance(loss_percent_))
    return;
  nanoseconds at = now_ + between(ms / 10, rng_.chance(10) ? 60 * ms : 5 * ms);
  nanoseconds& free = link_free_[{from->id, to}];
  at = free = std::max(at, free + 1);
  std::uint8_t n = to[0];
  ptr receiver = up_.contains(n) ? up_[n] : nullptr;
  if (!receiver)
    return;
  after(at - now_, [=, this] { // a message sent before a death arrives after it
    input(receiver, ev::received{from->id, m});
  });
}

void job_world::on(const ptr& p, const act::apply& a) {
  if (p->prepared.step == a.step)
    check_applied(p->prepared, a.grad_norm);
  ++p->applying;
  after(between(1 * ms, 10 * ms), [=, this, kept = p->kept] {
    if (!p->alive)
      return;
    for (std::uint32_t u : a.units) {
      const auto in = kept.find(u);
      apply_unit(p, u, a.step, a.grad_norm,
                 in == kept.end() ? nullptr : &in->second);
    }
    input(p, ev::applied{a.step});
    for (std::uint32_t u : a.units)
      if (p->core.held().contains(u))
        check_version(p, u);
    applied_one(p);
  });
}

/// With own gradients, or with those kept aside for an arrival.
void job_world::apply_unit(const ptr& p, std::uint32_t unit, std::uint64_t step,
                           double norm, const process::receiving* in) {
  std::uint64_t gradients = p->gradients_of;
  if (in) {
    check(in->gradients.contains(step), "applies what is not there");
    gradients = in->gradients.at(step);
    if (bug_ == job_mutant::backlog_not_applied && in->early.contains(step))
      return;
  } else {
    check(p->prepared.step == step && p->prepared_units.contains(unit),
          "applies what is not prepared");
  }
  if (!std::isfinite(norm)) // such a step leaves the state unchanged
    return;
  const bool bad = rotten(p, unit);
  p->state.at(unit) = mix(mix(p->state.at(unit), step),
                          mix(std::bit_cast<std::uint64_t>(norm), gradients));
  if (bad)
    rotten_hashes_.insert(p->state.at(unit));
}

void job_world::applied_one(const ptr& p) {
  if (--p->applying == 0 && p->after_apply)
    std::exchange(p->after_apply, nullptr)();
}

void job_world::on(const ptr& p, const act::serve_unit& a) {
  check(a.copy ? p->copies.at(*a.copy).contains(a.unit)
               : p->state.contains(a.unit),
        "serves what it has not");
  p->serves_copy[{a.digest, a.unit}] = a.copy;
  p->serves.insert({a.digest, {a.unit, a.to}});
}

void job_world::on(const ptr& p, const act::fetch_unit& a) {
  if (p->state.contains(a.unit) && rotten(p, a.unit))
    ++result_.mended;
  p->state.erase(a.unit);
  later(p, between(1 * ms, 60 * ms), [=, this] {
    ptr from = up_[a.from[0]];
    auto offer = std::pair(a.digest, std::pair(a.unit, p->id));
    if (!from->alive || !from->serves.contains(offer)) {
      on(p, a); // not offered yet, or never: another view follows
      return;
    }
    const auto copy = from->serves_copy[{a.digest, a.unit}];
    p->state[a.unit] =
      copy ? from->copies.at(*copy).at(a.unit) : from->state.at(a.unit);
    input(p, ev::loaded{a.digest, a.unit});
    check_version(p, a.unit);
  });
}

void job_world::on(const ptr& p, const act::take_copies& a) {
  const island_place* place = assignment_of(a.digest);
  for (std::uint32_t u : a.own)
    check(p->core.held().at(u) == a.version, "copies another version");
  unit_hashes own; // the present state, before the next step
  for (std::uint32_t u : a.own)
    own[u] = p->state.at(u);
  auto here = [=, this](std::uint32_t u, std::uint64_t hash) {
    p->copies[a.version][u] = hash;
    input(p, ev::copied{a.digest, a.version, u});
  };
  for (auto& [u, hash] : own)
    later(p, between(0, 5 * ms), [=, u = u, hash = hash] { here(u, hash); });
  for (std::uint32_t u : a.followed) {
    peer_id owner{};
    for (std::uint32_t s = 0; s < place->replicas.front().stages.size(); ++s)
      if (u >= parts_of(*place, 0, s).first && u < parts_of(*place, 0, s).last)
        owner = place->replicas.front().stages[s].lead().peer;
    receive_copy(p, a, u, owner);
  }
}

/// As soon as the owner has made its copy under the same assignment.
void job_world::receive_copy(const ptr& p, const act::take_copies& a,
                             std::uint32_t u, const peer_id& owner) {
  later(p, between(1 * ms, 80 * ms), [=, this] {
    const ptr& from = up_[owner[0]];
    const auto made = from->copies.find(a.version);
    if (!from->alive || made == from->copies.end()
        || !made->second.contains(u)) {
      receive_copy(p, a, u, owner);
      return;
    }
    p->copies[a.version][u] = made->second.at(u);
    input(p, ev::copied{a.digest, a.version, u});
  });
}

void job_world::on(const ptr& p, const act::revert_unit& a) {
  later(p, between(1 * ms, 5 * ms), [=, this] {
    p->state[a.unit] = p->copies.at(a.version).at(a.unit);
    ++result_.reverts;
    input(p, ev::loaded{a.digest, a.unit});
    check_version(p, a.unit);
  });
}

void job_world::on(const ptr& p, const act::drop_copies& a) {
  std::erase_if(p->copies, [&](const auto& kept) {
    return std::ranges::find(a.keep, kept.first) == a.keep.end();
  });
  check(p->copies.size() <= 2, "too many copies are kept");
}

void job_world::on(const ptr& p, const act::initialise_unit& a) {
  p->state.erase(a.unit);
  later(p, between(1 * ms, 20 * ms), [=, this] {
    p->state[a.unit] = mix(a.unit, 4711);
    input(p, ev::loaded{a.digest, a.unit});
    check_version(p, a.unit);
  });
}

static std::uint64_t key_of(const checkpoint_ref& c) {
  std::uint64_t key = 0;
  for (int i = 0; i < 8; ++i)
    key |= std::uint64_t{c.manifest[i]} << (8 * i);
  return key;
}

/// Whether each part is on the disks of `stores` members; `here`: of members that
/// run.
bool job_world::in_stores(const checkpoint_ref& c, std::size_t stores,
                          bool here) const {
  std::vector<part_set> lacks;
  for (const auto& [n, p] : up_) {
    const auto at = std::ranges::find_if(p->saved, [&](const auto& saved) {
      return saved.first.manifest == c.manifest;
    });
    if (at != p->saved.end()
        && (!here || (p->alive && find_member(view_, p->id))))
      lacks.push_back(at->second);
  }
  return everywhere(all_parts().size(), stores, lacks);
}

bool job_world::is_rotten(const checkpoint_ref& c) const {
  const auto at = rotten_.find(key_of(c));
  return at != rotten_.end() && at->second;
}

/// In rounds, like the product.
void job_world::on(const ptr& p, const act::fetch_checkpoint& a) {
  check(!p->given_up.contains(a.checkpoint),
        "fetches what it has given up itself");
  const std::uint64_t key = key_of(a.checkpoint);
  later(p, between(1 * ms, 20 * ms), [=, this] {
    const bool rotten = rotten_.try_emplace(key, rng_.chance(30)).first->second;
    if (!rotten && on_some_disk(a.checkpoint, true)) {
      p->fetched.insert(key);
      input(p, ev::checkpoint_fetched{a.digest, a.checkpoint});
      return;
    }
    input(p, ev::checkpoint_missing{a.digest, a.checkpoint});
    later(p, 1'000 * ms, [=, this] {
      if (!p->given_up.contains(a.checkpoint))
        on(p, a);
    });
  });
}

void job_world::on(const ptr& p, const act::restore_unit& a) {
  p->state.erase(a.unit);
  const std::uint64_t key = key_of(a.checkpoint);
  check(checkpoints_.contains(key), "an unknown checkpoint");
  for (const peer_id& q : participants_of(*p->core.place()))
    check(up_[q[0]]->fetched.contains(key)
            || up_[q[0]]->core.under() != p->core.under(),
          "restores before all have what they need");
  later(p, between(1 * ms, 20 * ms), [=, this] {
    p->state[a.unit] = checkpoints_[key].units.at(a.unit);
    input(p, ev::loaded{a.digest, a.unit});
    check_version(p, a.unit);
  });
}

void job_world::on(const ptr& p, const act::release& a) {
  for (std::uint32_t u : a.units)
    p->state.erase(u);
}

void job_world::on(const ptr& p, const act::run_step& a) {
  const island_place* place = assignment_of(a.digest);
  check(place, "runs an unknown assignment");
  check(!p->must_say, "a loss was not said");
  for (const part_index u : held_by(*place, p->id))
    check(p->core.held().at(u).step + 1 == a.step, "runs on old state");
  p->running_digest = a.digest;
  p->running_step = a.step;
  auto prepare = std::make_shared<std::function<void()>>();
  *prepare = [=, this, weak = std::weak_ptr(prepare)] {
    for (const peer_id& other : participants_of(*place)) {
      const ptr& q = up_[other[0]];
      bool there =
        q->alive && q->running_digest == a.digest && q->running_step >= a.step;
      if (barrier_ && !there) {
        later(p, between(1 * ms, 10 * ms),
              [again = weak.lock()] { (*again)(); });
        return;
      }
    }
    ev::prepared e{a.digest, a.step, {}, {}, {}};
    bool head = false;
    for (std::uint32_t u : held_by(*place, p->id)) {
      unit_square s{u, 0};
      for (std::uint64_t t = 0; t < 3; ++t)
        s.sum +=
          1.0 + double(mix(mix(p->state.at(u), a.digest), t) >> 40) / 1e3;
      e.units.push_back(s);
      head = head || u == config_.blocks + 1;
    }
    for (std::uint32_t m = 0; head && m < config_.microbatches; ++m) {
      e.losses.push_back(is_bad(a.step)
                           ? std::numeric_limits<double>::quiet_NaN()
                           : double(mix(mix(a.step, m), a.digest) >> 40) / 1e6);
      e.samples.push_back(mix(a.step, m)); // independent of the peer that
                                           // computes it
    }
    e.unable = refuses(p, a.digest);
    note_hashes(p, a, e);
    e.writing = mix(a.digest, a.step + p->id[0]) % 8 == 0;
    p->gradients_of = a.digest;
    p->reduced_step = a.step;
    p->prepared = {a.step, place->since};
    p->prepared_units.clear();
    for (const unit_square& u : e.units)
      p->prepared_units.insert(u.unit);
    input(p, e);
  };
  later(p, between(5 * ms, 60 * ms), [prepare] { (*prepare)(); });
}

void job_world::on(const ptr& p, const act::run_eval& a) {
  later(p, between(1 * ms, 20 * ms), [=, this] {
    input(p, ev::evaluated{a.digest, a.step, rng_.chance(90), 1.5, 100});
  });
}

/// The state is copied, the run goes on, and the checkpointer writes.
void job_world::on(const ptr& p, const act::run_checkpoint& a) {
  p->running_digest = a.digest;
  p->checkpoint_step = a.step;
  auto& steps = begun_[a.digest]; // C-3: no peer skips or adds one
  auto& mine = begun_by_[{a.digest, p->id}];
  const auto next = steps.upper_bound(mine);
  check(next == steps.end() || *next == a.step,
        "peers begin different checkpoints");
  steps.insert(mine = a.step);
  check(unable_.try_emplace({a.digest, a.step}, a.unable).first->second
          == a.unable,
        "peers think that different ones cannot write");
  later(p, between(1 * ms, 20 * ms), [=, this] {
    for (const auto& [u, hash] : p->state)
      if (p->core.held().contains(u) && p->core.held().at(u).step == a.step)
        snapshots_[{a.digest, a.step}][u] = hash;
    input(p, ev::snapshot_taken{a.digest, a.step});
  });
  if (a.publisher == p->id)
    write_checkpoint(p, a);
}

/// The disk may be slow, or full for a while: then the last checkpoint is tried
/// again.
void job_world::write_checkpoint(const ptr& p, const act::run_checkpoint& a) {
  const nanoseconds slow = rng_.chance(20) ? 2'000 * ms : 40 * ms;
  later(p, between(1 * ms, slow), [=, this] {
    ev::checkpointed e{a.digest, a.step, false, {}, 0, {}, false};
    const unit_hashes& all = snapshots_[{a.digest, a.step}];
    if (all.size() == config_.blocks + 2 && rng_.chance(95)) {
      std::uint64_t key = mix(a.digest, a.step);
      for (int i = 0; i < 8; ++i)
        e.manifest[i] = static_cast<std::uint8_t>(key >> (8 * i));
      std::vector<step_record> chain;
      for (const step_record& r : chain_)
        if (r.version.step <= a.step)
          chain.push_back(r);
      checkpoints_[key] = {a.step, all, chain, {}};
      if (const island_place& place = *p->core.place();
          !place.part_keepers.empty()) {
        checkpoints_[key].writers = shard_writers(
          place, std::vector<std::uint64_t>(all.size(), 1), a.unable);
        e.lacks = all_parts();
        e.lacks.remove(
          parts_gathered_by(p->id, place, all_parts().size(), a.unable));
      }
      e.known = true;
      e.bytes = 100;
    } else {
      e.why = "no space";
      e.trying = a.last;
    }
    input(p, e);
    if (e.trying)
      write_checkpoint(p, a);
  });
}

/// The store has these parts, besides those that it had.
void job_world::save(const ptr& p, const checkpoint_ref& c,
                     const part_set& parts) {
  constexpr std::size_t kept = 3;
  p->saved.try_emplace(c, all_parts()).first->second.remove(parts);
  if (p->saved.size() <= kept)
    return;
  const checkpoint_ref oldest = p->saved.begin()->first;
  p->saved.erase(oldest);
  after(0, [=, this] { input(p, ev::checkpoint_dropped{oldest}); });
}

void job_world::on(const ptr& p, const act::checkpoint_known& a) {
  p->heard.insert(a.checkpoint);
  if (a.at == p->id)
    save(
      p, a.checkpoint,
      parts_gathered_by(p->id, *p->core.place(), all_parts().size(), a.unable));
}

void job_world::on(const ptr& p, const act::checkpoint_given_up& a) {
  say(name(p) + " gives up the checkpoint of step "
      + std::to_string(a.checkpoint.step));
  check(p->given_up.insert(a.checkpoint).second, "given up twice");
  check(rotten_[key_of(a.checkpoint)] || !on_some_disk(a.checkpoint, true),
        "what is whole is given up");
  p->saved.erase(a.checkpoint);
  ++result_.given_up;
}

void job_world::on(const ptr& p, const act::checkpoint_awaited& a) {
  say(name(p) + " awaits the checkpoint of step "
      + std::to_string(a.checkpoint.step));
  check(a.last > a.otherwise + config_.checkpoint_every
          || a.otherwise == config_.origin_step,
        "waits to save less than an interval");
  ++result_.awaited;
}

void job_world::on(const ptr& p, const act::begin_anew& a) {
  result_.noticed +=
    differing_.contains(a.since) && anew_.insert(a.since).second;
  after(between(1 * ms, 300 * ms), [=, this] {
    if (done_ || !p->alive
        || marked(view_.jobs.front(), mark_kind::retried, 0) >= a.since)
      return;
    set_mark(view_.jobs.front(), {mark_kind::retried, 0, a.since, 0});
    new_view();
  });
}

/// Of shared parts, whether each is with its writer, or in a store.
bool job_world::within_reach(const act::keep_checkpoint& a) const {
  const auto at = checkpoints_.find(key_of(a.checkpoint));
  if (at == checkpoints_.end() || at->second.writers.empty())
    return true;
  return std::ranges::all_of(a.parts, [&](part_index part) {
    return std::ranges::any_of(up_, [&](const auto& n) {
      const ptr& q = n.second;
      const auto saved = q->saved.find(a.checkpoint);
      return q->alive
             && (q->id == at->second.writers.at(part)
                 || (saved != q->saved.end() && !saved->second.contains(part)));
    });
  });
}

void job_world::on(const ptr& p, const act::keep_checkpoint& a) {
  after(between(1 * ms, 1'000 * ms), [=, this] {
    if (!p->alive)
      return;
    if (!within_reach(a)) {
      if (p->saved.empty() || p->saved.rbegin()->first <= a.checkpoint)
        on(p, a); // asks again
      return;
    }
    if (rng_.chance(10)) { // its disk is full for a while
      input(p, ev::keep_refused{a.checkpoint});
      on(p, a);
      return;
    }
    save(p, a.checkpoint, a.parts);
    const auto at = p->saved.find(a.checkpoint);
    if (at == p->saved.end())
      return;
    result_.shared += !at->second.empty();
    input(p, ev::checkpoint_held{a.checkpoint,
                                 bug_ == job_mutant::share_passes_for_all
                                   ? part_set{}
                                   : at->second});
  });
}

void job_world::on(const ptr& p, const act::get_blobs& a) {
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

} // namespace shoal::sim
