// runtime/core/cluster/local/former_shoals.cpp -- what became of other shoals.
#include "runtime/core/cluster/local/former_shoals.hpp"

#include "runtime/core/cluster/local/limits.hpp"

#include <algorithm>

namespace shoal::core::cluster {

void former_shoals::remember(const view& last) {
  std::erase_if(views_, [&](const view& v) { return v.shoal == last.shoal; });
  views_.push_back(last);
  if (views_.size() > former_max)
    views_.erase(views_.begin());
}

const view* former_shoals::newer(const shoal_id& shoal, epoch number) const {
  for (const view& v : views_)
    if (v.shoal == shoal && v.number > number)
      return &v;
  return nullptr;
}

const view* former_shoals::dissolved(const shoal_id& shoal) const {
  for (const view& v : views_)
    if (v.shoal == shoal && v.dissolved_into)
      return &v;
  return nullptr;
}

bool former_shoals::only_we_know(const view& former, const view& ours) const {
  if (!former.dissolved_into)
    return false; // it goes on without us: its members can be asked
  const bool same = former.shoal == ours.shoal; // we have no other yet
  auto here = [&](const peer_id& id) {
    return id == self_ || (!same && find_member(ours, id) != nullptr);
  };
  std::size_t know = 0;
  bool late = !std::ranges::all_of(former.lapsed, here);
  for (const member& m : former.members) {
    late = late || !here(m.id.peer);
    know += m.id.peer != self_ && here(m.id.peer);
  }
  return late && know < former_known_min;
}

bool former_shoals::others_depend_on_us(const view& ours) const {
  return std::ranges::any_of(
    views_, [&](const view& v) { return only_we_know(v, ours); });
}

std::vector<const view*>
former_shoals::known_to_us_alone(const view& ours, bool all) const {
  std::vector<const view*> out;
  for (const view& v : views_)
    if (only_we_know(v, ours) && (all || find_member(v, self_) != nullptr))
      out.push_back(&v);
  return out;
}

std::vector<superseded_shoal>
former_shoals::superseded(const view& ours) const {
  std::vector<superseded_shoal> out;
  for (const view& v : views_)
    for (const superseded_shoal& s : v.superseded)
      if (v.dissolved_into && *v.dissolved_into != s.shoal)
        out.push_back(s);
  out.insert(out.end(), ours.superseded.begin(), ours.superseded.end());
  std::erase_if(out, [&](const auto& s) { return s.shoal == ours.shoal; });
  if (out.size() > superseded_max)
    out.erase(out.begin(), out.end() - superseded_max);
  return out;
}

void former_shoals::joined_another(nanoseconds now) {
  if (!views_.empty())
    due_ = now + former_patience;
}

} // namespace shoal::core::cluster
