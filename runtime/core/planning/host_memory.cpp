// runtime/core/planning/host_memory.cpp -- divides each host's memory.
#include "runtime/core/planning/host_memory.hpp"

#include "runtime/core/planning/detours.hpp"     // is_sound
#include "runtime/core/planning/layout/cost.hpp" // muldiv
#include "runtime/core/planning/placement.hpp"
#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <string>

namespace shoal::core {
namespace {

using group = std::vector<const member*>;

/// Divides `pool` among members, of which each may have at most memory_bytes.
void divide(const group& members, std::uint64_t pool,
            const memory_by_peer& needs, memory_by_peer& out) {
  std::uint64_t promised = 0;
  for (const member* m : members)
    promised = std::min(promised + m->device.memory_bytes, cost_never);
  if (promised <= pool) {
    for (const member* m : members)
      out[m->id.peer] = m->device.memory_bytes;
    return;
  }
  std::uint64_t left = pool;
  for (const member* m : members) { // what is already needed
    const auto need = needs.find(m->id.peer);
    const std::uint64_t own =
      need == needs.end()
        ? 0
        : std::min({need->second, m->device.memory_bytes, left});
    out[m->id.peer] = own;
    left -= own;
  }
  for (const member* m : members) {
    std::uint64_t& own = out[m->id.peer];
    own = std::min(m->device.memory_bytes,
                   own + muldiv(left, m->device.memory_bytes, promised));
  }
}

void divide_host(const group& members, const memory_by_peer& needs,
                 memory_by_peer& out) {
  group chosen, shares;
  std::uint64_t host = 0, share = 0, promised = 0;
  for (const member* m : members) {
    host = std::max(host, m->device.host_memory_bytes);
    if (m->device.memory_is_share) {
      shares.push_back(m);
      share = std::max(share, m->device.memory_bytes);
    } else {
      chosen.push_back(m);
      promised = std::min(promised + m->device.memory_bytes, cost_never);
    }
  }
  if (host == 0)
    host = cost_never; // unknown: no amount is too much
  divide(chosen, host, needs, out);
  divide(shares, std::min(share, host - std::min(host, promised)), needs, out);
}

} // namespace

memory_by_peer
memory_for_jobs(const view& v, const std::vector<assignment>& placed) {
  const member_state state = working_state(v);
  memory_by_peer needs, out;
  for (const assignment& a : placed) {
    const job_entry* job = find_job(v, a.job);
    if (!job || job->state != job_state::running || !is_sound(*job, a))
      continue;
    for (const island_place& at : a.islands)
      for (const auto& [who, kinds] : memory_of(*job, at)) {
        std::uint64_t& sum = needs[who.peer];
        sum = std::min(sum + std::min(kinds.sum(), cost_never), cost_never);
      }
  }
  std::map<std::string, group> hosts;
  for (const member& m : v.members) {
    if (!usable(m, state))
      continue;
    if (m.host.empty())
      out[m.id.peer] = m.device.memory_bytes;
    else
      hosts[m.host].push_back(&m);
  }
  for (const auto& [name, members] : hosts)
    divide_host(members, needs, out);
  return out;
}

} // namespace shoal::core
