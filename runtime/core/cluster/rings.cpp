// runtime/core/cluster/rings.cpp -- pseudo-random orders of the members.
#include "runtime/core/cluster/rings.hpp"

#include "runtime/core/random.hpp"

#include <algorithm>
#include <cstring>

namespace shoal::core::cluster {

std::uint32_t index_of(const view& v, const peer_id& id) {
  auto at = std::ranges::lower_bound(
    v.members, id, {}, [](const member& m) { return m.id.peer; }); // V-1
  bool found = at != v.members.end() && at->id.peer == id;
  return std::uint32_t(found ? at - v.members.begin()
                             : std::ptrdiff_t(v.members.size()));
}

rings::place rings::place_of(std::size_t ring, std::uint32_t index) const {
  std::uint64_t key = 0; // ids are hashes: any of their bytes will do
  std::memcpy(&key, view_->members[index].id.peer.data(), sizeof key);
  random mix(key ^ (std::uint64_t(ring + 1) << 56));
  return {mix.next(), index};
}

void rings::follow(const view& v, const peer_id& self) {
  view_ = &v;
  order_.clear();
  subjects_.clear();
  auto n = std::uint32_t(v.members.size());
  auto voters = std::size_t(std::ranges::count_if(v.members, votes));
  all_ = voters <= rings_max + 1;
  if (!all_)
    for (std::size_t r = 0; r < rings_max; ++r) {
      auto& order = order_.emplace_back(n);
      for (std::uint32_t i = 0; i < n; ++i)
        order[i] = place_of(r, i);
      std::ranges::sort(order);
    }
  std::uint32_t own = index_of(v, self);
  if (own < n)
    find_subjects(own);
}

std::vector<std::uint32_t> rings::watchers(std::uint32_t subject) const {
  std::vector<std::uint32_t> out;
  if (all_) {
    for (std::uint32_t i = 0; i < view_->members.size(); ++i)
      if (i != subject && votes(view_->members[i]))
        out.push_back(i);
    return out;
  }
  auto serves = [&](std::uint32_t i) {
    return i != subject && votes(view_->members[i])
           && std::ranges::find(out, i) == out.end();
  };
  for (std::size_t r = 0; r < order_.size(); ++r) {
    const auto& order = order_[r];
    auto at = std::size_t(std::ranges::lower_bound(order, place_of(r, subject))
                          - order.begin());
    do // there are more voters than rings
      at = (at + 1) % order.size();
    while (!serves(order[at].index));
    out.push_back(order[at].index);
  }
  std::ranges::sort(out);
  return out;
}

void rings::find_subjects(std::uint32_t self) {
  if (votes(view_->members[self]))
    for (std::uint32_t i = 0; i < view_->members.size(); ++i)
      if (i != self && std::ranges::binary_search(watchers(i), self))
        subjects_.push_back(i);
}

} // namespace shoal::core::cluster
