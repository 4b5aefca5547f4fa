// tests/sim/cluster_sim.cpp -- runs a simulated world, and checks its state
// after the last fault.
#include "cluster_world.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace shoal::sim {

namespace {

constexpr nanoseconds settle_time = 10 * second; // the promised time

} // namespace

cluster_world::cluster_world(const cluster_options& o)
  : options_(o), random_(o.seed), real_disks_(o.seed % 2 == 0),
    disk_random_(o.seed ^ 0x6469736b), remove_random_(o.seed ^ 0x72656d6f),
    lie_random_(o.seed ^ 0x6c696573), scale_random_(o.seed ^ 0x7363616c65),
    lies_(o.seed % 5 == 3 || o.bug >= mutant::lies_with_near_numbers),
    stalls_(o.seed % 5 == 4 && !lies_), force_random_(o.seed ^ 0x666f726365),
    forces_(o.seed % 6 == 1) {
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

void cluster_world::push(item i, nanoseconds delay) {
  i.at = now_ + delay;
  i.order = ++order_;
  queue_.push(std::move(i));
}

/// Whether peers of one shoal cannot go on: its newest view, or the newest that
/// they know, needs votes of peers that do not run or have lost them.
bool cluster_world::group_gone(const std::vector<int>& group) {
  std::vector<peer_id> ids;
  const view* known = nullptr;
  for (int i : group) {
    const machine& m = machines_[std::size_t(i)];
    ids.push_back(m.id);
    if (known == nullptr || m.core->current().number > known->number)
      known = &m.core->current();
  }
  const view* tip = checker_.tip(known->shoal);
  if (tip == nullptr)
    return false; // it is being stored
  return !is_quorum(*tip, ids) || !is_quorum(*known, ids);
}

bool cluster_world::settled(std::string* why) {
  std::map<shoal_id, std::vector<int>> groups;
  for (int i = 0; i < int(machines_.size()); ++i) {
    const machine& m = machines_[std::size_t(i)];
    if (!m.core || sent_away(m))
      continue;
    if (!m.core->seated()) {
      *why = "m" + std::to_string(i) + " is in no shoal";
      return false;
    }
    groups[m.core->current().shoal].push_back(i);
  }
  std::vector<const std::vector<int>*> live; // those with a quorum
  std::size_t busy = 0;
  std::vector<const std::vector<int>*> gone;
  for (const auto& [id, group] : groups) {
    if (group_gone(group)) {
      gone.push_back(&group);
      continue;
    }
    const view& v = machines_[std::size_t(group[0])].core->current();
    live.push_back(&group);
    busy += is_busy(v);
    for (int i : group) {
      const machine& m = machines_[std::size_t(i)];
      const member* e = find_member(v, m.id);
      if (!(m.core->current() == v) || v.members.size() != group.size()
          || e == nullptr || e->instance != m.instance
          || e->state != member_state::active || !v.cuts.empty()
          || m.core->phase() != phase::member
          || (v.key != key_digest{}
              && m.keys.current
                   != machines_[std::size_t(group[0])].keys.current)) {
        *why = "m" + std::to_string(i) + " is not in one view with its shoal";
        return false;
      }
    }
  }
  result_.quorum_gone = !gone.empty();
  for (const auto* waiting : gone)
    for (const auto* to : live)
      if (joins_by_force(*waiting, *to)) {
        *why = "peers wait for a shoal that another has taken the place of";
        return false;
      }
  for (job_id id : checker_.jobs()) {
    bool found = disk_lost_ || result_.quorum_gone
                 || (kept_by_force_ && !kept_by_force_->contains(id));
    for (const machine& m : machines_)
      found = found || m.stays_down
              || (m.core && find_job(m.core->current(), id) != nullptr);
    if (!found) {
      *why = "an acknowledged job is lost";
      return false;
    }
  }
  result_.apart_by_key = live.size() > 1 && busy < live.size();
  for (const auto* a : live)
    for (const auto* b : live)
      if (a != b && should_join(*a, *b)) {
        *why = "two shoals stay apart without a reason";
        return false;
      }
  return true;
}

cluster_result cluster_world::run() {
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
    item l;
    l.what = happening::lie;
    if (lies_ || stalls_)
      push(std::move(l), second);
  }
  bool healed = false;
  std::string why = "nothing ran";
  nanoseconds check_at = 0;
  while (!queue_.empty() && checker_.failure().empty()) {
    if (!healed && queue_.top().at >= chaos_end) {
      healed = true;
      now_ = healed_at_ = chaos_end;
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
  result_.scalings = checker_.scalings();
  return result_;
}

cluster_result run_cluster(const cluster_options& options) {
  return cluster_world(options).run();
}

} // namespace shoal::sim
