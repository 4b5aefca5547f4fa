// runtime/core/training/job/state/held_units.cpp -- what is here, and what is spare.
#include "runtime/core/training/job/state/held_units.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core {

bool held_units::is_at(std::uint32_t unit, const state_version& v) const {
  const auto at = held_.find(unit);
  return at != held_.end() && at->second == v;
}

void held_units::forget(std::uint32_t unit) {
  held_.erase(unit);
  digests_.erase(unit);
}

std::vector<std::uint32_t> held_units::take_spare(const part_set& needed) {
  std::set<std::uint32_t> here = std::exchange(broken_off_, {});
  for (const auto& [unit, version] : held_)
    here.insert(unit);
  std::vector<std::uint32_t> spare;
  for (const std::uint32_t unit : here)
    if (!needed.contains(unit))
      spare.push_back(unit);
  for (const std::uint32_t unit : spare)
    forget(unit);
  return spare;
}

void held_units::load(std::uint32_t unit, const state_version& v) {
  forget(unit);
  loading_[unit] = v;
}

bool held_units::loaded(std::uint64_t digest, std::uint32_t unit) {
  const auto at = loading_.find(unit);
  if (at == loading_.end() || digest != loading_under_)
    return false;
  held_[unit] = at->second;
  loading_.erase(at);
  return true;
}

void held_units::break_off() {
  for (const auto& [unit, version] : std::exchange(loading_, {}))
    broken_off_.insert(unit);
}

void held_units::hashed(const std::vector<unit_digest>& digests) {
  for (const unit_digest& d : digests)
    if (const auto at = held_.find(d.unit); at != held_.end())
      digests_[d.unit] = {at->second, d.digest};
}

std::vector<held_unit>
held_units::sealed(const std::vector<std::uint32_t>& prepared) const {
  std::vector<held_unit> out;
  for (const auto& [unit, version] : held_) {
    out.push_back({unit, version, std::ranges::binary_search(prepared, unit)});
    if (const auto at = digests_.find(unit); at != digests_.end()) {
      out.back().hashed = at->second.version;
      out.back().digest = at->second.digest;
    }
  }
  return out;
}

} // namespace shoal::core
