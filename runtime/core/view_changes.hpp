// runtime/core/view_changes.hpp -- what is new in a view, in words.
//
// A plan is a function of the view, so what has changed in the view is why the
// plan is another one: "c joined", "b got slower (6.0 GFLOP/s, was 12.0)".
// Compared are two views that one peer has adopted one after the other; some
// between them may have passed it by.
//
// Threads: pure functions. Cost: linear in members and jobs, but for cuts.
#pragma once

#include "runtime/core/view.hpp"

#include <cstddef>
#include <string>

namespace shoal::core {

/// A line names this many changes and counts the rest: it is to be read, and
/// an event's text is bounded (wire/messages.hpp).
inline constexpr std::size_t changes_named_max = 4;

/// Changes by which a plan may differ, as clauses between commas: members,
/// what was measured of them, cut pairs, jobs. "" if there is none.
[[nodiscard]] std::string changes_text(const view& before, const view& now);

/// The same for one job: its own submission and end are left out.
[[nodiscard]] std::string
changes_text(const view& before, const view& now, job_id job);

/// The line of a node for a view.
struct view_news {
  const view* before = nullptr; ///< null: it is the first
  const view& now;
  bool member = false; ///< whether this peer is one
  bool looks = false;  ///< for other peers: it was told to, or how
};
[[nodiscard]] std::string view_line(const view_news& news);

} // namespace shoal::core
