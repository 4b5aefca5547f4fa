// runtime/core/planning/placers.cpp -- the placer of each kind of job.
#include "runtime/core/assert.hpp"
#include "runtime/core/job_entry.hpp"
#include "runtime/core/planning/placer.hpp"

#include <map>

namespace shoal::core {

const placer& placer_of(job_kind kind) {
  static const std::map<job_kind, const placer*> all{
    {job_kind::train, &training_placer},
    {job_kind::serve, &serving_placer},
  };
  const auto at = all.find(kind);
  SHOAL_ASSERT(at != all.end()); // the codec refuses other kinds
  return *at->second;
}

} // namespace shoal::core
