// runtime/core/cluster/seeds.cpp -- addresses that somebody has given us.
//
// While a peer is on its own it tries them until they answer. In company it
// tries them again now and then, since behind one may be a shoal that ours was
// parted from: what follows is decided as between any two that meet, so two
// that stay apart stay connected, and nothing is tried again and again.
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>

namespace shoal::core::cluster {

using impl = membership::impl;

bool impl::in_company() const {
  return phase_ != phase::homeless && view_.members.size() > 1;
}

/// Due or not, at most once in seed_pause, whatever comes of it.
void impl::try_seed(const std::string& address) {
  if (!seeds_.contains(address) && seeds_.size() >= seeds_max) {
    std::erase_if(seeds_, [&](const auto& s) {
      return s.second.next_at + seed_pause_max < now_;
    });
    if (seeds_.size() >= seeds_max)
      return;
  }
  seed& s = seeds_[address];
  if (now_ < s.next_at)
    return;
  if (connected_to(address)) {
    s = {now_ + seed_pause, seed_pause};
    return;
  }
  const auto spread = random_.below(std::uint64_t(s.pause) / 4);
  s.next_at = now_ + s.pause + nanoseconds(spread);
  s.pause = std::min(2 * s.pause, seed_pause_max);
  dial_now(address, true);
}

void impl::try_seeds() {
  if (in_company() && !config_.embedded)
    for (const std::string& a : config_.seeds)
      try_seed(a);
}

nanoseconds impl::seeds_due() const {
  nanoseconds at = time_max;
  if (in_company() && !config_.embedded)
    for (const std::string& a : config_.seeds)
      if (auto s = seeds_.find(a); s != seeds_.end())
        at = std::min(at, s->second.next_at);
  return at;
}

void impl::on(const discovered& e) {
  if (config_.embedded)
    return;
  if (e.listed && in_company())
    try_seed(e.address);
  else
    dial_now(e.address, true);
}

void impl::on(const reached& e) {
  if (!links_.contains(e.peer))
    return;
  if (auto d = dials_.find(e.address); d != dials_.end())
    d->second.pending_until = 0;
  std::erase_if(reached_,
                [&](const auto& r) { return !links_.contains(r.second); });
  if (reached_.size() < reached_max)
    reached_[e.address] = e.peer;
}

} // namespace shoal::core::cluster
