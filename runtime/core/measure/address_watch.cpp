// runtime/core/measure/address_watch.cpp -- delays for appearing and vanishing
// addresses.
#include "runtime/core/measure/address_watch.hpp"

#include <algorithm>

namespace shoal::core {

address_watch::address_watch(std::vector<std::string> told)
  : order_(std::move(told)) {
  for (const std::string& a : order_)
    entries_[a] = {true, true, 0};
}

void address_watch::observe(nanoseconds now,
                            const std::vector<std::string>& there) {
  order_ = there;
  order_.resize(std::min(order_.size(), addresses_max));
  for (auto& [address, e] : entries_)
    if (e.there && std::ranges::find(order_, address) == order_.end()) {
      e.there = false;
      e.since = now;
    }
  for (const std::string& a : order_) {
    entry& e = entries_[a];
    if (!e.there)
      e.since = now;
    e.there = true;
  }
  std::erase_if(
    entries_, [](const auto& i) { return !i.second.there && !i.second.told; });
}

/// Whether some published address is present.
bool address_watch::may_vanish() const {
  return std::ranges::any_of(
    entries_, [](const auto& i) { return i.second.there && i.second.told; });
}

std::optional<std::vector<std::string>> address_watch::take(nanoseconds now) {
  bool changed = false;
  for (auto& [address, e] : entries_)
    if (e.there && !e.told && now - e.since >= appear_after)
      e.told = changed = true;
  if (may_vanish())
    changed = std::erase_if(entries_,
                            [&](const auto& i) {
                              return !i.second.there
                                     && now - i.second.since >= vanish_after;
                            })
                != 0
              || changed;
  if (!changed)
    return {};
  std::vector<std::string> out;
  for (const std::string& a : order_)
    if (entries_[a].told)
      out.push_back(a);
  for (const auto& [address, e] : entries_)
    if (e.told && !e.there)
      out.push_back(address);
  return out;
}

std::optional<nanoseconds> address_watch::due() const {
  std::optional<nanoseconds> out;
  const bool vanish = may_vanish();
  for (const auto& [address, e] : entries_) {
    if (e.told == e.there || (e.told && !vanish))
      continue;
    const nanoseconds at = e.since + (e.there ? appear_after : vanish_after);
    out = std::min(out.value_or(at), at);
  }
  return out;
}

} // namespace shoal::core
