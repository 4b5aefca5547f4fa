// runtime/core/view.cpp -- look-ups and the quorum rule.
#include "runtime/core/view.hpp"

#include <algorithm>
#include <functional>

namespace shoal::core {

const member* find_member(const view& v, const peer_id& id) {
  auto at = std::ranges::lower_bound(
    v.members, id, {},
    [](const member& m) -> const peer_id& { return m.id.peer; }); // V-1
  return at == v.members.end() || at->id.peer != id ? nullptr : &*at;
}

const job_entry* find_job(const view& v, job_id id) {
  auto at = std::ranges::find(v.jobs, id, &job_entry::id);
  return at == v.jobs.end() ? nullptr : &*at;
}

bool has_ended(const view& v, job_id id) {
  const job_entry* job = find_job(v, id);
  return job != nullptr ? job->state != job_state::running
                        : std::ranges::find(v.removed, id) != v.removed.end();
}

bool is_cut(const view& v, const peer_id& a, const peer_id& b) {
  return std::ranges::any_of(v.cuts, [&](const cut_pair& c) {
    return (c.low.peer == a && c.high.peer == b)
           || (c.low.peer == b && c.high.peer == a);
  });
}

bool is_revoked(const view& v, const peer_id& id) {
  return std::ranges::find(v.revoked, id) != v.revoked.end();
}

bool is_in_order(const view& v) {
  const auto rises = [](const auto& list, auto key) {
    return std::ranges::adjacent_find(list, std::ranges::greater_equal{}, key)
           == list.end();
  };
  const auto is_member = [&](const member_id& id) {
    const member* m = find_member(v, id.peer);
    return m != nullptr && m->id == id;
  };
  return rises(v.members, [](const member& m) { return m.id.peer; }) // V-1
         && rises(v.jobs, &job_entry::id)                            // V-2
         && rises(v.cuts, std::identity{})                           // V-4
         && std::ranges::all_of(v.cuts, [&](const cut_pair& c) {
              return c.low.peer < c.high.peer && is_member(c.low)
                     && is_member(c.high);
            });
}

bool votes(const member& m) {
  return m.voter && m.state != member_state::joining;
}

bool is_quorum(const view& v, const std::vector<peer_id>& agreeing) {
  const std::vector<peer_id>* in_order = &agreeing;
  std::vector<peer_id> sorted;
  if (!std::ranges::is_sorted(agreeing)) {
    sorted = agreeing;
    std::ranges::sort(sorted);
    in_order = &sorted;
  }
  std::size_t voters = 0;
  std::size_t agreed = 0;
  bool lowest_agreed = false;
  for (const member& m : v.members) { // V-1: the first voter is the lowest
    if (!votes(m))
      continue;
    bool in = std::ranges::binary_search(*in_order, m.id.peer);
    lowest_agreed = lowest_agreed || (voters == 0 && in);
    ++voters;
    agreed += in ? 1 : 0;
  }
  if (voters == 0)
    return false;
  return 2 * agreed > voters || (2 * agreed == voters && lowest_agreed);
}

} // namespace shoal::core
