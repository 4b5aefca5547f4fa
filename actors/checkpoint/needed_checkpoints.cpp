// actors/checkpoint/needed_checkpoints.cpp -- what islands have said, else what
// their jobs' logs name.
#include "actors/checkpoint/needed_checkpoints.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/checkpoint/shard_list.hpp"
#include "runtime/context.hpp"
#include "runtime/core/view.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/store/store.hpp"

#include <algorithm>

namespace shoal::actors {
namespace {

/// The checkpoints that a job's log names, oldest first.
std::vector<runtime::job_event>
logged(runtime::context& node, core::job_id job) {
  std::vector<runtime::job_event> out = node.log().read_all(job);
  std::erase_if(out, [](const runtime::job_event& e) {
    return e.kind != runtime::job_event_kind::checkpoint;
  });
  return out;
}

} // namespace

void needed_checkpoints::say(const core::island_id& by,
                             std::set<core::blob_digest> manifests) {
  const std::lock_guard lock(mutex_);
  said_[by] = std::move(manifests);
}

std::set<core::blob_digest>
needed_checkpoints::manifests(runtime::context& node,
                              const core::job_entry& job,
                              const core::island_id& self) {
  digests out;
  if (job.kind == core::job_kind::serve) {
    if (job.state != core::job_state::running)
      return out;
    out.insert(job.origin); // has the files of its text
    for (const core::model_version& v : core::served_versions(job))
      out.insert(v.manifest);
    return out;
  }
  std::set<std::uint32_t> silent; // islands
  {
    const std::lock_guard lock(mutex_);
    if (job.state != core::job_state::running) {
      if (const auto at = results_.find(job.id); at != results_.end())
        return at->second;
    } else {
      for (std::uint32_t i = 0; i < job.want_islands; ++i)
        if (const auto at = said_.find({job.id, i}); at == said_.end())
          silent.insert(i);
        else if (at->first != self)
          out.insert(at->second.begin(), at->second.end());
      silent.erase(self.job == job.id ? self.index : job.want_islands);
      if (silent.empty())
        return out;
    }
  }
  const auto log = logged(node, job.id);
  if (job.state == core::job_state::running) {
    for (const runtime::job_event& e : log)
      if (silent.contains(e.island))
        out.insert(e.digest);
    return out;
  }
  if (!log.empty())
    out.insert(log.back().digest);
  const std::lock_guard lock(mutex_);
  results_[job.id] = out;
  return out;
}

std::set<core::blob_digest>
needed_checkpoints::of_others(runtime::context& node, const core::view& v,
                              const core::island_id& self) {
  digests out;
  for (const core::job_entry& job : v.jobs) {
    for (const core::blob_digest& m : manifests(node, job, self)) {
      out.insert(m);
      if (node.blobs().contains(m))
        if (const auto read = read_manifest(m, node.blobs()))
          for (const manifest_file& f : read->files)
            if (job.kind != core::job_kind::serve || !of_optimizer(f.name))
              out.insert(f.digest);
    }
    if (job.state != core::job_state::running)
      continue;
    for (std::uint32_t i = 0; i < job.want_islands; ++i)
      if (core::island_id{job.id, i} != self)
        for (const listed_shard& s :
             read_shards(shard_list_of(job_folder(node, job.id), i)))
          out.insert(s.digest);
  }
  return out;
}

} // namespace shoal::actors
