// apps/plan/plan_table.hpp -- the output of `shoal plan`: as JSON, and as a
// table.
//
// The table fits 80 columns and stays short: peers with the same work are one
// row, whatever their number.
//
// JSON: according to plan_fields(). First and last of a range are both
//       included.
#pragma once

#include "apps/plan/planned_text.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/files/field_text.hpp"
#include "runtime/files/json.hpp"
#include "runtime/jobs/run_config.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::apps {

struct planned_run {
  const core::view& view;
  const core::assignment& place; ///< of the run, which does not wait
  const runtime::run_config& run;
  std::uint64_t parameters = 0;
  std::string where;                     ///< the name of the shoal
  std::optional<planned_text> text = {}; ///< if it was examined

  /// Run files ask for one island.
  const core::island_place& island() const { return place.islands.front(); }
};

[[nodiscard]] nlohmann::ordered_json plan_json(const planned_run& p);
std::vector<runtime::field_text> plan_fields();

/// The table for the result of plan_json(); ends with a newline.
[[nodiscard]] std::string plan_table(const planned_run& p);

} // namespace shoal::apps
