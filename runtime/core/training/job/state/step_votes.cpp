// runtime/core/training/job/state/step_votes.cpp -- votes by step.
#include "runtime/core/training/job/state/step_votes.hpp"

namespace shoal::core {

void step_votes::begin(std::uint64_t step) {
  votes_.erase(votes_.begin(), votes_.lower_bound(step - 1));
}

void step_votes::take(const peer_id& from, const vote& v,
                      std::uint64_t current) {
  const bool wanted = current > 0
                        ? v.step + 1 >= current && v.step <= current + 1
                        : votes_.size() < 2 || votes_.contains(v.step);
  if (wanted)
    votes_[v.step].try_emplace(from, v);
}

const std::map<peer_id, vote>& step_votes::of(std::uint64_t step) const {
  static const std::map<peer_id, vote> none;
  const auto at = votes_.find(step);
  return at == votes_.end() ? none : at->second;
}

const vote* step_votes::find(std::uint64_t step, const peer_id& peer) const {
  const auto& votes = of(step);
  const auto at = votes.find(peer);
  return at == votes.end() ? nullptr : &at->second;
}

} // namespace shoal::core
