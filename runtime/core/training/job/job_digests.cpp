// runtime/core/training/job/job_digests.cpp -- digests of units: when they are
// taken, and what happens when two holders differ.
#include "runtime/core/training/job/job_core.hpp"

#include <algorithm>

namespace shoal::core {

/// A unit with a single holder cannot be compared.
void job_core::find_compared() {
  compared_.clear();
  std::set<std::uint32_t> seen;
  for (const peer_id& p : duty_.participants)
    for (const std::uint32_t unit : units_of(*duty_.place, p))
      if (!seen.insert(unit).second)
        compared_.insert(unit);
}

/// Digests of the state that current_ begins with. The same steps on all
/// holders of a unit; different steps for different units, so that no step
/// takes long.
std::vector<std::uint32_t> job_core::digests_due() const {
  std::vector<std::uint32_t> out;
  for (const std::uint32_t unit : duty_.units)
    if (config_.digest_every > 0 && compared_.contains(unit)
        && (current_ - 1 + unit) % config_.digest_every == 0)
      out.push_back(unit);
  return out;
}

void job_core::note_digests(const std::vector<unit_digest>& digests) {
  for (const unit_digest& d : digests)
    if (const auto at = held_.find(d.unit); at != held_.end())
      digests_[d.unit] = {at->second, d.digest};
}

/// All have these votes, and so all ask for the same.
void job_core::compare_digests(const std::vector<const vote*>& votes) {
  std::map<std::uint32_t, std::uint64_t> first;
  const bool differ = std::ranges::any_of(votes, [&](const vote* v) {
    return std::ranges::any_of(v->digests, [&](const unit_digest& d) {
      return first.try_emplace(d.unit, d.digest).first->second != d.digest;
    });
  });
  if (differ)
    act(job_action::begin_anew{duty_.on.since});
}

/// The state of the unit here is void.
void job_core::forget(std::uint32_t unit) {
  held_.erase(unit);
  digests_.erase(unit);
}

} // namespace shoal::core
