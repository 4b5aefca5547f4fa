// actors/job_kinds.cpp -- the table of kinds.
#include "actors/job_kinds.hpp"

#include "actors/serving/serve_job.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/job_entry.hpp"

#include <map>

namespace shoal::actors {

island_starter starter_of(core::job_kind kind) {
  static const std::map<core::job_kind, island_starter> all{
    {core::job_kind::train, spawn_job},
    {core::job_kind::serve, spawn_serve_job},
  };
  const auto at = all.find(kind);
  SHOAL_ASSERT(at != all.end()); // the codec refuses other kinds
  return at->second;
}

} // namespace shoal::actors
