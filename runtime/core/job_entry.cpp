// runtime/core/job_entry.cpp -- marks, versions and islands of a job.
#include "runtime/core/job_entry.hpp"

#include <algorithm>

namespace shoal::core {

epoch marked(const job_entry& job, mark_kind kind, std::uint32_t island) {
  for (const island_mark& m : job.marks)
    if (m.kind == kind && m.island == island)
      return m.since;
  return 0;
}

std::vector<model_version> served_versions(const job_entry& job) {
  if (!job.versions.empty())
    return job.versions;
  return {{job.origin_step, job.origin}};
}

std::uint32_t islands_of(const job_entry& job) {
  std::uint64_t islands = job.want_islands;
  for (const island_mark& m : job.marks)
    if (m.kind == mark_kind::scaled)
      islands = m.step;
  return std::uint32_t(
    std::clamp<std::uint64_t>(islands, 1, limits::islands_max));
}

bool is_draining(const job_entry& job) {
  return job.state == job_state::running
         && marked(job, mark_kind::draining, 0) != 0;
}

std::string island_text(const job_entry& job, std::uint32_t island) {
  return islands_of(job) > 1 ? ", island " + std::to_string(island) : "";
}

void set_mark(job_entry& job, const island_mark& mark) {
  const auto at = std::ranges::find_if(job.marks, [&](const island_mark& m) {
    return m.kind == mark.kind && m.island == mark.island;
  });
  if (at == job.marks.end())
    job.marks.push_back(mark);
  else if (at->since < mark.since)
    *at = mark;
}

const char* to_text(job_state s) {
  switch (s) {
  case job_state::running:
    return "running";
  case job_state::done:
    return "done";
  case job_state::cancelled:
    return "cancelled";
  case job_state::failed:
    return "failed";
  }
  return "unknown";
}

} // namespace shoal::core
