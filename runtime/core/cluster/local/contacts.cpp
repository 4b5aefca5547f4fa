// runtime/core/cluster/local/contacts.cpp -- connected peers.
#include "runtime/core/cluster/local/contacts.hpp"

#include "runtime/core/random.hpp"

#include <algorithm>

namespace shoal::core::cluster {

bool contacts::add(const peer_id& peer, std::uint64_t instance) {
  if (by_peer_.size() >= contacts_max)
    return false;
  by_peer_[peer].instance = instance;
  return true;
}

std::vector<std::string> contacts::remove(const peer_id& peer) {
  std::vector<std::string> addresses;
  if (auto node = by_peer_.extract(peer); node && node.mapped().said)
    addresses = std::move(node.mapped().said->addresses);
  return addresses;
}

const contact* contacts::find(const peer_id& peer) const {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : &found->second;
}

std::vector<peer_id> contacts::peers() const {
  std::vector<peer_id> out;
  for (const auto& [id, c] : by_peer_)
    out.push_back(id);
  return out;
}

void contacts::hear(const peer_id& from, const hello& said, nanoseconds now) {
  contact& c = by_peer_.at(from);
  if (!c.said) // it may have come up before we could send it anything
    c.hello_at = std::min(c.hello_at, now);
  c.said = said;
  c.said_at = now;
}

void contacts::hear_of_view(const peer_id& from, const shoal_id& shoal,
                            epoch number) {
  contact& c = by_peer_.at(from);
  c.shoal = shoal;
  c.number = number;
}

void contacts::hear_of_decision(const peer_id& from, const view& decided) {
  contact& c = by_peer_.at(from);
  if (decided.shoal == c.shoal)
    c.number = std::max(c.number, decided.number);
}

void contacts::greet_all() {
  for (auto& [id, c] : by_peer_)
    c.hello_at = 0;
}

std::vector<peer_id>
contacts::take_to_greet(const view& current, nanoseconds now) {
  std::vector<peer_id> out;
  for (auto& [id, c] : by_peer_) {
    const bool stranger =
      c.shoal != current.shoal || find_member(current, id) == nullptr;
    if (now < c.hello_at || (!stranger && c.hello_at != 0))
      continue;
    c.hello_at = now + hello_interval;
    out.push_back(id);
  }
  return out;
}

nanoseconds contacts::greeting_due(nanoseconds now) const {
  nanoseconds due = time_max;
  for (const auto& [id, c] : by_peer_)
    if (c.hello_at > now)
      due = std::min(due, c.hello_at);
  return due;
}

bool contacts::includes_address(const std::string& address,
                                const view& current) const {
  auto has = [&](const std::vector<std::string>& all) {
    return std::ranges::find(all, address) != all.end();
  };
  for (const auto& [id, c] : by_peer_) {
    const member* m = find_member(current, id);
    if ((m != nullptr && has(m->addresses))
        || (c.said && has(c.said->addresses)))
      return true;
  }
  return false;
}

} // namespace shoal::core::cluster
