// runtime/core/planning/placer.hpp -- how jobs of one kind are placed.
//
// make_plan (plan.hpp) does what all kinds share: the order of the jobs, the
// members of each island, the memory of each device, keepers, sealers and the
// numbers of places. It asks the job's placer for the rest, in two passes over
// all islands: first for what computes, then for what uses only memory that no
// island's layout needs. A new kind is a new placer in the table of placers.cpp.
//
// Threads: pure functions.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/planning/layout/cost.hpp"

namespace shoal::core {

struct view; // runtime/core/view.hpp

/// An island while its place is made.
struct island_draft {
  layout_problem p;
  island_place at;
  bool kept = false; ///< what arrives under p.previous goes on arriving
};

struct placer {
  const char* name;    ///< of the kind, in JSON: "train"
  const char* replica; ///< what a replica is called in a plan: "replica"
  bool has_schedule;   ///< plans name it
  /// Sets replicas and schedule, or why_waiting.
  void (*lay_out)(island_draft&, const view&);
  /// Sets followers and arriving; may hold back parts of the layout. Memory in
  /// `p` is now what all layouts leave, and that of this one.
  void (*complete)(island_draft&, const view&);
};

extern const placer training_placer;
extern const placer serving_placer;

[[nodiscard]] const placer& placer_of(job_kind kind);

} // namespace shoal::core
