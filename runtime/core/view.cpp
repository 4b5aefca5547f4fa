// runtime/core/view.cpp -- look-ups and the quorum rule.
#include "runtime/core/view.hpp"

#include <algorithm>

namespace shoal::core {

const member* find_member(const view& v, const peer_id& id) {
  auto at =
    std::ranges::find(v.members, id, [](const member& m) { return m.id.peer; });
  return at == v.members.end() ? nullptr : &*at;
}

const job_entry* find_job(const view& v, job_id id) {
  auto at = std::ranges::find(v.jobs, id, &job_entry::id);
  return at == v.jobs.end() ? nullptr : &*at;
}

bool is_cut(const view& v, const peer_id& a, const peer_id& b) {
  return std::ranges::any_of(v.cuts, [&](const cut_pair& c) {
    return (c.low.peer == a && c.high.peer == b)
           || (c.low.peer == b && c.high.peer == a);
  });
}

bool votes(const member& m) {
  return m.voter && m.state != member_state::joining;
}

bool is_quorum(const view& v, const std::vector<peer_id>& agreeing) {
  std::size_t voters = 0;
  std::size_t agreed = 0;
  bool lowest_agreed = false;
  for (const member& m : v.members) { // V-1: the first voter is the lowest
    if (!votes(m))
      continue;
    bool in = std::ranges::find(agreeing, m.id.peer) != agreeing.end();
    lowest_agreed = lowest_agreed || (voters == 0 && in);
    ++voters;
    agreed += in ? 1 : 0;
  }
  if (voters == 0)
    return false;
  return 2 * agreed > voters || (2 * agreed == voters && lowest_agreed);
}

} // namespace shoal::core
