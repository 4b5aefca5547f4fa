// runtime/core/training/job/state/known_checkpoints.cpp -- three bounded lists.
#include "runtime/core/training/job/state/known_checkpoints.hpp"

#include "runtime/core/training/resume.hpp"

#include <algorithm>
#include <iterator>

namespace shoal::core {

void known_checkpoints::hear(const checkpoint_ref& c,
                             const std::vector<peer_id>& holders) {
  if (c.manifest == blob_digest{} || is_given_up(c))
    return;
  heard_[c].insert(holders.begin(), holders.end());
  if (heard_.size() > heard_max)
    heard_.erase(heard_.begin());
}

void known_checkpoints::hold(const checkpoint_ref& c, const peer_id& self,
                             const part_set& lacks) {
  hear(c, {self});
  held_[c] = lacks;
  if (held_.size() > held_max)
    held_.erase(held_.begin());
}

void known_checkpoints::drop(const checkpoint_ref& c) {
  if (c != newest())
    held_.erase(c);
}

bool known_checkpoints::has(const checkpoint_ref& c,
                            const part_set& parts) const {
  const auto at = held_.find(c);
  return at != held_.end()
         && std::ranges::none_of(at->second.runs(), [&](const part_range& r) {
              return parts.overlaps(r);
            });
}

bool known_checkpoints::give_up(const checkpoint_ref& c) {
  if (is_given_up(c))
    return false;
  given_up_.push_back(c);
  if (given_up_.size() > given_up_max)
    given_up_.erase(given_up_.begin());
  std::erase_if(held_,
                [&](const auto& held) { return is_given_up(held.first); });
  std::erase_if(heard_,
                [&](const auto& told) { return is_given_up(told.first); });
  return true;
}

bool known_checkpoints::is_given_up(const checkpoint_ref& c) const {
  return core::is_given_up(c, given_up_);
}

std::vector<peer_id>
known_checkpoints::holders(const checkpoint_ref& c, const peer_id& self) const {
  std::vector<peer_id> out;
  if (const auto at = heard_.find(c); at != heard_.end())
    std::ranges::copy_if(at->second, std::back_inserter(out),
                         [&](const peer_id& p) { return p != self; });
  return out;
}

} // namespace shoal::core
