// tests/sim/job/job_rot.cpp -- state that is corrupted at one of its holders,
// and its required repair.
//
// Corruption ("rot") changes the hash of a state; all that is computed from it
// is corrupted too. If it has reached all holders before a digest was due, it
// is the state.
#include "tests/sim/job/job_world.hpp"

namespace shoal::sim {

void job_world::schedule_rot() {
  if (!rot_rng_.chance(25))
    return;
  after(static_cast<nanoseconds>(rot_rng_.below(1'500)) * ms,
        [this] { rot_soon(); });
}

/// As soon as there is state that can be corrupted.
void job_world::rot_soon() {
  if (!done_ && !rot() && now_ < 3'000 * ms)
    after(50 * ms, [this] { rot_soon(); });
}

bool job_world::rotten(const ptr& p, std::uint32_t unit) const {
  return rotten_hashes_.contains(p->state.at(unit));
}

/// Corrupts a unit of a peer that computes a step.
bool job_world::rot() {
  for (auto& [n, p] : up_) {
    if (!p->alive || p->over || p->core.now_in() != job_core::phase::running
        || rot_rng_.chance(50))
      continue;
    for (auto& [unit, version] : p->core.held()) {
      if (!p->state.contains(unit) || rot_rng_.chance(70))
        continue;
      say(name(p) + ": unit " + std::to_string(unit) + " ROTS");
      rotten_hashes_.insert(p->state[unit] ^= 1);
      ++result_.rots;
      return true;
    }
  }
  return false;
}

/// Answers requested digests; remembers the correct ones.
void job_world::note_hashes(const ptr& p, const act::run_step& a,
                            ev::prepared& e) {
  const epoch since = assignment_of(a.digest)->since;
  for (const std::uint32_t u : a.digests) {
    const std::uint64_t hash = p->state.at(u);
    due_[{since, a.step}][u].insert(hash);
    e.digests.push_back({u, bug_ == job_mutant::state_not_hashed ? 1 : hash});
  }
}

/// For a step that votes have committed. If seals have committed it, the peer
/// that differed may be dead; otherwise its own seal shows it.
void job_world::look_for_differences(const step_record& r) {
  const auto at = due_.find({r.version.made, r.version.step});
  if (at == due_.end() || rolled_.contains(r.version) || r.bad > 0)
    return; // digests of a bad step are not compared
  for (auto& [unit, hashes] : at->second)
    if (hashes.size() > 1)
      differing_.insert(r.version.made);
}

void job_world::on(const ptr& p, const act::state_differs& a) {
  for (const differing_unit& d : a.units)
    say(name(p) + " hears that unit " + std::to_string(d.unit) + " of p"
        + std::to_string(d.at[0]) + " differs");
  check(result_.rots > 0, "states differ, and none has rotted");
}

/// State is corrupted only once. A limited number of sub-plans may begin before
/// it is repaired: the correct holder may die while it serves.
void job_world::check_rot() const {
  constexpr std::size_t begun_anew_max = 4;
  for (const epoch since : differing_)
    if (!anew_.contains(since))
      throw std::runtime_error("states that differ are not noticed");
  if (differing_.size() > begun_anew_max)
    throw std::runtime_error("a state that has rotted is not mended");
}

} // namespace shoal::sim
