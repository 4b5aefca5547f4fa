// runtime/http/deadlines.hpp -- when something is due, for many owners.
//
// Threads: one. Cost: O(log n).
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace shoal::runtime {

/// At most one time for each owner.
template <class Owner>
class deadlines {
public:
  using time_point = std::chrono::steady_clock::time_point;

  void set(Owner* owner, time_point at) {
    remove(owner);
    at_[owner] = at;
    order_.emplace(at, owner);
  }
  void remove(Owner* owner) {
    const auto found = at_.find(owner);
    if (found == at_.end())
      return;
    order_.erase({found->second, owner});
    at_.erase(found);
  }
  /// The earliest time.
  std::optional<time_point> next() const {
    if (order_.empty())
      return std::nullopt;
    return order_.begin()->first;
  }
  /// Removes one that is due, and returns its owner; nullptr: none is.
  Owner* take_due(time_point now) {
    if (order_.empty() || order_.begin()->first > now)
      return nullptr;
    Owner* const owner = order_.begin()->second;
    remove(owner);
    return owner;
  }

private:
  std::map<Owner*, time_point> at_;
  std::set<std::pair<time_point, Owner*>> order_;
};

} // namespace shoal::runtime
