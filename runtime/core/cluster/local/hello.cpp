// runtime/core/cluster/local/hello.cpp -- what a peer says about itself.
#include "runtime/core/cluster/local/hello.hpp"

#include <algorithm>
#include <tuple>

namespace shoal::core::cluster {

std::size_t running_jobs(const view& v) {
  return std::size_t(
    std::ranges::count(v.jobs, job_state::running, &job_entry::state));
}

hello describe(const view& v) {
  hello h;
  h.shoal = v.shoal;
  h.number = v.number;
  h.members = std::uint32_t(v.members.size());
  for (const bool runs : {true, false})
    for (const job_entry& j : v.jobs)
      if ((j.state == job_state::running) == runs)
        h.jobs.push_back(j.id);
  h.running = std::uint32_t(running_jobs(v));
  h.admissions = !v.invites.empty() || !v.revoked.empty();
  return h;
}

bool goes_before(const hello& a, const hello& b) {
  auto key = [](const hello& h) {
    return std::tuple(h.running == 0, h.jobs.empty(), !h.admissions, ~h.members,
                      h.shoal);
  };
  return key(a) < key(b);
}

} // namespace shoal::core::cluster
