// runtime/core/cluster/local/key_ring.cpp -- the cluster keys that a peer knows.
#include "runtime/core/cluster/local/key_ring.hpp"

#include "runtime/core/cluster/local/limits.hpp"

#include <algorithm>

namespace shoal::core::cluster {

bool key_ring::hold(const cluster_key& key) {
  auto& pending = keys_.pending;
  if (key == keys_.current || std::ranges::find(pending, key) != pending.end())
    return false;
  pending.push_back(key);
  if (pending.size() > keys_pending_max)
    pending.erase(pending.begin());
  return true;
}

bool key_ring::fits(const view& v) const {
  return digest_ == nullptr || v.key == key_digest{}
         || v.key == digest_(keys_.current);
}

bool key_ring::take_into_use(const view& v) {
  const auto held = std::ranges::find(keys_.pending, v.key, digest_);
  if (held == keys_.pending.end())
    return false;
  keys_.replaced.push_back(keys_.current);
  if (keys_.replaced.size() > keys_replaced_max)
    keys_.replaced.erase(keys_.replaced.begin());
  keys_.current = *held;
  keys_.pending.erase(held);
  return true;
}

key_digest key_ring::to_found_with(const view& v) const {
  if (digest_ == nullptr || v.key == key_digest{})
    return v.key;
  return digest_(keys_.current);
}

key_age key_ring::age_of(const hello& said) const {
  if (digest_ == nullptr || said.key == key_digest{})
    return key_age::same;
  const key_digest own = digest_(keys_.current);
  if (said.key == own)
    return key_age::same;
  if (std::ranges::find(said.replaced, own) != said.replaced.end())
    return key_age::newer;
  const bool older = std::ranges::find(keys_.replaced, said.key, digest_)
                     != keys_.replaced.end();
  return older ? key_age::older : key_age::unrelated;
}

void key_ring::describe(hello& own) const {
  if (digest_ == nullptr)
    return;
  own.key = digest_(keys_.current);
  for (const cluster_key& key : keys_.replaced)
    own.replaced.push_back(digest_(key));
}

} // namespace shoal::core::cluster
