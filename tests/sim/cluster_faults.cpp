// tests/sim/cluster_faults.cpp -- draws faults, and ends them.
#include "cluster_world.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

namespace shoal::sim {

void cluster_world::fault() {
  int n = int(machines_.size());
  int i = int(random_.below(std::uint64_t(n)));
  machine& m = machines_[std::size_t(i)];
  switch (random_.below(14)) {
  case 0:
  case 1:
  case 2: { // kill, and restart
    crash(i, chance(0.3));
    if (chance(0.04)) { // and it loses its disk
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
  case 3: // all at once, like a power failure
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
    else if (m.core) {
      update_profile e;
      e.device.mflops = random_.below(9);
      e.addresses = {m.address};
      e.networks = {{"tls", 1, random_.below(9)}};
      give(i, std::move(e));
    }
    break;
  case 11:
    if (m.core) {
      m.leaving = true;
      give(i, cluster::leave{});
      if (m.core)
        give(i, leave_now{});
    }
    break;
  case 12:
    if (chance(0.6))
      revoke();
    break;
  case 13:
    invite();
    break;
  }
  if (real_disks_ && disk_random_.below(4) == 0) {
    constexpr nanoseconds times[] = {0, 20 * millisecond, 400 * millisecond,
                                     2 * second};
    write_max_ = times[disk_random_.below(std::size(times))];
    write_fails_ = disk_random_.below(2) == 0 ? 0 : 0.5;
  }
  if (forces_ && force_random_.below(2) == 0)
    force();
  if (remove_random_.below(3) == 0)
    remove_job();
  item f;
  f.what = happening::fault;
  push(std::move(f), between(20 * millisecond, 1500 * millisecond));
}

void cluster_world::revoke() {
  std::size_t n = machines_.size();
  if (result_.revocations >= n / 3)
    return; // some have to stay
  int i = int(random_.below(n));
  const machine& other = machines_[random_.below(n)];
  if (!machines_[std::size_t(i)].core)
    return;
  ++result_.revocations;
  cluster_key key{2};
  for (std::size_t k = 1; k < key.size(); ++k)
    key[k] = std::uint8_t(random_.next());
  made_against_[key] = other.id;
  if (options_.print)
    std::printf("%9.3f m%d is asked to revoke %s\n", double(now_) / 1e9, i,
                other.address.c_str());
  give(i, revoke_peer{other.id, key, random_.next()});
}

/// Makes a token, or has a random machine use one of the latest, or take it back.
void cluster_world::invite() {
  const int i = int(random_.below(machines_.size()));
  if (!machines_[std::size_t(i)].core)
    return;
  if (tokens_.empty() || chance(0.4)) {
    cluster_key token{3};
    for (std::size_t k = 1; k < token.size(); ++k)
      token[k] = std::uint8_t(random_.next());
    tokens_.push_back(token);
    return give(i, add_invite{{token, 1, {}}});
  }
  peer_id who{};
  who[0] = std::uint8_t(1 + random_.below(4));
  const std::size_t back =
    random_.below(std::min<std::size_t>(tokens_.size(), 3));
  const cluster_key& token = tokens_[tokens_.size() - 1 - back];
  if (who[0] == 4)
    return give(i, withdraw_invite{token});
  give(i, redeem_invite{token, who});
}

void cluster_world::cut(int kind) {
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

void cluster_world::submit() {
  int i = int(random_.below(machines_.size()));
  if (!machines_[std::size_t(i)].core || !chance(0.6))
    return;
  job_entry j;
  j.id = random_.next();
  j.name = "job";
  if (options_.scales && scale_random_.below(2) == 0)
    j.kind = job_kind::serve;
  ++result_.jobs;
  give(i, submit_job{j});
  if (options_.scales)
    for (int n = 0; n < 4; ++n)
      scale();
}

/// A peer proposes a number of pipelines: for the number that it knows, or for
/// one of a view that was not decided.
void cluster_world::scale() {
  const int i = int(scale_random_.below(machines_.size()));
  machine& m = machines_[std::size_t(i)];
  if (!m.core)
    return;
  const view now = m.core->current();
  for (const job_entry& j : now.jobs)
    if (j.kind == job_kind::serve && scale_random_.below(2) == 0)
      give(i, scale_job{j.id, std::uint32_t(1 + scale_random_.below(4)),
                        scale_random_.below(4) == 0
                          ? scale_random_.below(now.number + 9)
                          : marked(j, mark_kind::scaled, 0)});
}

void cluster_world::end_job() {
  if (options_.scales)
    scale();
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

/// A peer gives up the others of its shoal.
void cluster_world::force() {
  const int i = int(force_random_.below(machines_.size()));
  machine& m = machines_[std::size_t(i)];
  if (!m.core || now_ < m.paused_until || m.core->phase() != phase::waiting)
    return;
  const view& v = m.core->current();
  std::set<job_id> kept;
  for (const job_entry& j : v.jobs)
    if (!kept_by_force_ || kept_by_force_->contains(j.id))
      kept.insert(j.id);
  const shoal_id before = v.shoal;
  give(i, recover_force{});
  if (m.core && m.core->current().shoal != before) {
    kept_by_force_ = std::move(kept);
    ++result_.forces;
  }
}

/// Removes any job that a peer knows; one that is running has to stay.
void cluster_world::remove_job() {
  const int i = int(remove_random_.below(machines_.size()));
  machine& m = machines_[std::size_t(i)];
  if (!m.core || m.core->current().jobs.empty())
    return;
  const auto& jobs = m.core->current().jobs;
  const job_id id = jobs[remove_random_.below(jobs.size())].id;
  ++result_.removals;
  give(i, cluster::remove_job{id});
}

void cluster_world::heal() {
  faults_ = false; // also those of disks
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

} // namespace shoal::sim
