// runtime/core/training/job/state/digest_rounds.cpp -- the turn of each unit.
#include "runtime/core/training/job/state/digest_rounds.hpp"

#include <algorithm>
#include <map>

namespace shoal::core {

void digest_rounds::begin(const duty& d) {
  compared_.clear();
  part_set seen;
  for (const member_parts& m : d.holds.members())
    for (const part_index unit : m.held) {
      if (seen.contains(unit))
        compared_.insert(unit);
      seen.add(unit);
    }
}

std::vector<std::uint32_t>
digest_rounds::due(const duty& d, std::uint64_t step) const {
  std::vector<std::uint32_t> out;
  for (const std::uint32_t unit : d.units)
    if (every_ > 0 && compared_.contains(unit) && (step + unit) % every_ == 0)
      out.push_back(unit);
  return out;
}

bool digests_differ(const std::vector<const vote*>& votes) {
  std::map<std::uint32_t, std::uint64_t> first;
  return std::ranges::any_of(votes, [&](const vote* v) {
    return std::ranges::any_of(v->digests, [&](const unit_digest& d) {
      return first.try_emplace(d.unit, d.digest).first->second != d.digest;
    });
  });
}

} // namespace shoal::core
