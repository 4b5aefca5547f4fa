// tests/runtime/core/serving/serving_ailments.cpp -- peers that ail while they answer,
// and who looks after them.
#include "tests/runtime/core/serving/serving_world.hpp"

namespace shoal::core::serving_sim {

/// Value 0 is right.
world::hidden
world::input_of(const place& p, std::size_t index, std::uint64_t pass) const {
  const auto at = sent_.find({p.header.digest, index, pass});
  return at == sent_.end() ? hidden{} : at->second;
}

bool world::may_begin(const peer_id& at, std::uint32_t island,
                      std::size_t index, stage& s) {
  if (ails_ == ailment::none)
    return true;
  const place& p = places_[island];
  const std::uint64_t pass = s.next->pass.number;
  if (index > 0 && !sent_.contains({p.header.digest, index, pass}))
    return false;
  const hidden in = input_of(p, index, pass);
  if (in.value != in.digest && bug_ != planted::digest_unchecked) {
    s.over = true;
    const peer_id by = p.stages[index - 1];
    const bool enough = ++damaged_[by] >= 3;
    verdicts_.push_back(
      {island, p.header.since, enough ? std::optional(by) : std::nullopt});
    return false;
  }
  if (ails_ == ailment::hangs && at == ill_ && !hung_ && below(12) == 0)
    hung_ = now_;
  return !(hung_ && at == ill_);
}

void world::pass_on(const peer_id& at, std::uint32_t island, std::size_t index,
                    std::uint64_t pass, bool good) {
  const place& p = places_[island];
  if (ails_ == ailment::none)
    return;
  const bool ill = at == ill_ && below(2) == 0;
  if (ill && ails_ == ailment::loses)
    return;
  const std::uint64_t value = good ? 0 : 1;
  sent_[{p.header.digest, index + 1, pass}] =
    ill && ails_ == ailment::changes ? hidden{1, value} : hidden{value, value};
  compute(p.stages[index + 1], island);
}

world::watcher& world::watcher_of(const peer_id& at, std::uint32_t island) {
  return watchers_.try_emplace({at, island}, at).first->second;
}

/// As serve_job and serve_stalls see it.
stall_watch::sight world::sight(const peer_id& at, std::uint32_t island) {
  node& n = nodes_.at(at);
  const place& p = places_.at(island);
  watcher& w = watcher_of(at, island);
  if (w.stalled_at != 0 && now_ - w.stalled_at >= 120'000'000'000) {
    w.stalled_at = 0;
    ++w.period;
  }
  stall_watch::sight s;
  s.header = headers_[{at, island}];
  for (std::size_t i = 1; i <= p.stages.size(); ++i)
    s.sealers.push_back(p.stages[i % p.stages.size()]);
  s.chain = true;
  s.period = w.period;
  s.mark = w.moved;
  s.predicted = 1'000'000'000;
  if (const auto own = n.stages.find(island); own != n.stages.end()) {
    s.active = own->second.next.has_value();
    const auto index = std::ranges::find(p.stages, at) - p.stages.begin();
    if (hung_ && at == ill_)
      s.computing = now_ - *hung_;
    else if (s.active && index > 0)
      s.sending_to = {p.stages[std::size_t(index) - 1]};
  }
  if (const auto own = n.pipelines.find(island); own != n.pipelines.end()) {
    s.mark += own->second.passes_done();
    if (own->second.waits_for_pass() != 0 && !s.active)
      s.sending_to = {p.stages.back()};
    s.active = s.active || own->second.waits_for_pass() != 0;
  }
  return s;
}

void world::watch_stalls() {
  if (ails_ == ailment::none || bug_ == planted::stall_unwatched)
    return;
  const auto reports = std::exchange(reports_, {});
  for (const sent_report& r : reports) {
    const std::uint32_t island = r.report.header.island;
    if (alive_.contains(r.from) && alive_.contains(r.to)
        && (calm_ || below(10) != 0))
      carry(r.to, island,
            watcher_of(r.to, island)
              .watch.received(r.from, r.report, sight(r.to, island), now_));
  }
  for (const auto& [island, p] : places_)
    for (const peer_id& at : p.stages)
      if (alive_.contains(at))
        carry(at, island,
              watcher_of(at, island).watch.tick(sight(at, island), now_));
  carry_out();
}

void world::carry(const peer_id& at, std::uint32_t island,
                  const stall_watch::actions& actions) {
  for (const auto& a : actions) {
    if (const auto* x = std::get_if<stall_watch::send>(&a)) {
      reports_.push_back({at, x->to, x->report});
    } else if (const auto* x = std::get_if<stall_watch::retry>(&a)) {
      watcher_of(at, island).stalled_at = now_;
      verdicts_.push_back({island, x->since, {}});
    } else if (const auto* x = std::get_if<stall_watch::expel>(&a)) {
      watcher_of(at, island).stalled_at = now_;
      verdicts_.push_back({island, headers_[{at, island}].since, x->peer});
    }
  }
}

/// What was proposed, as views would have it.
void world::carry_out() {
  for (const verdict& v : std::exchange(verdicts_, {})) {
    place& p = places_.at(v.island);
    if (p.header.since != v.since)
      continue;
    if (v.expel) {
      if (!alive_.contains(*v.expel) || alive_.size() <= 1)
        continue;
      ++expelled;
      kill(*v.expel);
      if (*v.expel != ill_)
        continue;
      ++ill_expelled; // another process would be well
      ill_ = peer(peers);
      hung_.reset();
    } else {
      ++retries;
      p.header = {1, random_.next(), ++epoch_, v.island};
      place_islands();
    }
  }
}

} // namespace shoal::core::serving_sim
