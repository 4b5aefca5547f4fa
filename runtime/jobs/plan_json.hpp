// runtime/jobs/plan_json.hpp -- a plan, and its differences from the wishes, as JSON.
//
// Both `shoal status --json` and `shoal plan --json` have these lists.
#pragma once

#include "runtime/files/field_text.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace shoal::core {
struct assignment; // runtime/core/assignment.hpp
struct view;       // runtime/core/view.hpp
} // namespace shoal::core

namespace shoal::runtime {

/// Wishes of the run file that the plan does not meet.
nlohmann::ordered_json
unheld_json(const core::view& v, const core::assignment& a);
std::vector<field_text> unheld_fields();

/// Members that compute nothing for the job.
nlohmann::ordered_json
idle_json(const core::view& v, const core::assignment& a);
std::vector<field_text> idle_fields();

/// For each replica its stages.
nlohmann::ordered_json
places_json(const core::view& v, const core::assignment& a);
std::vector<field_text> places_fields();

} // namespace shoal::runtime
