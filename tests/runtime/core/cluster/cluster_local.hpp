// tests/runtime/core/cluster/cluster_local.hpp -- peers, views and a situation for
// tests of the parts of membership.
#pragma once

#include "runtime/core/cluster/local/situation.hpp"
#include "runtime/core/random.hpp"

namespace shoal::tests {

using namespace shoal::core;
using namespace shoal::core::cluster;

inline constexpr nanoseconds ms = 1'000'000;

inline peer_id peer(std::uint8_t n) {
  peer_id id{};
  id[0] = n;
  return id;
}

inline shoal_id shoal_of(std::uint8_t n) {
  shoal_id id{};
  id[0] = n;
  return id;
}

/// The member `n` of start 1 with the address "n:1".
inline member member_of(std::uint8_t n) {
  member m;
  m.id.peer = peer(n);
  m.id.incarnation = 1;
  m.instance = 1;
  m.addresses = {std::to_string(n) + ":1"};
  return m;
}

/// What peer 1 knows: it is seated in shoal 1 with `members`.
struct standing {
  member self = member_of(1);
  view current;
  contacts connected;
  cluster::phase phase = phase::member;
  bool seated = true;
  nanoseconds now = 0;

  explicit standing(std::initializer_list<std::uint8_t> members) {
    current.shoal = shoal_of(1);
    current.number = 10;
    for (std::uint8_t n : members)
      current.members.push_back(member_of(n));
  }

  situation here() const {
    return {self, current, connected, phase, seated, now};
  }
};

} // namespace shoal::tests
