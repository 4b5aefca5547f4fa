// runtime/core/view_changes.hpp -- the changes between two views, in words.
//
// A plan is a function of the view, so changes of the view are the reason for
// another plan: "c joined", "b got slower (6.0 GFLOP/s, was 12.0)". The two
// views are ones that a peer has adopted in sequence; it may have missed some
// between them.
//
// Threads: pure functions. Cost: linear in members and jobs, except for cuts.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstddef>
#include <string>

namespace shoal::core {

struct view; // runtime/core/view.hpp

/// A line names at most this many changes and counts the rest: it has to be
/// readable, and an event's text is bounded (jobs/job_log.hpp).
inline constexpr std::size_t changes_named_max = 4;

/// Changes that may affect a plan, as clauses separated by commas: members,
/// their measurements, cut pairs, jobs. "" if there is none.
[[nodiscard]] std::string changes_text(const view& before, const view& now);

/// The same for one job: its own submission and end are left out.
[[nodiscard]] std::string
changes_text(const view& before, const view& now, job_id job);

/// The line that a node logs for a view.
struct view_news {
  const view* before = nullptr; ///< null: this view is the first
  const view& now;
  bool member = false; ///< whether this peer is a member
  bool looks = false;  ///< searches for others: was asked to, or told where
};
[[nodiscard]] std::string view_line(const view_news& news);

} // namespace shoal::core
