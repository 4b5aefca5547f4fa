// actors/serving/version_header.hpp -- under which header the messages about one
// version of a served model go.
//
// Each version has pipelines and caches of its own, in the same places. Its header
// is that of the place, with another digest; so messages and transfers of two
// versions never meet, nor do their prefix trees.
//
// Threads: pure.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/job_entry.hpp"

#include <cstring>

namespace shoal::actors {

[[nodiscard]] inline core::job_header
version_header(const core::job_entry& job, std::uint32_t island,
               const core::island_place& at,
               const core::model_version& version) {
  core::job_header out{job.id, core::digest({job.id, island}, at), at.since,
                       island};
  if (version.manifest != job.origin) {
    std::uint64_t mix = 0;
    std::memcpy(&mix, version.manifest.data(), sizeof mix);
    out.digest ^= mix;
  }
  return out;
}

} // namespace shoal::actors
