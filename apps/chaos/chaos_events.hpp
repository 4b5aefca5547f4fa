// apps/chaos/chaos_events.hpp -- the lines of `shoal chaos --json`, except the
// last.
//
// The last one is the report (chaos_report.hpp).
#pragma once

#include "apps/chaos/chaos.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace shoal::apps {

/// Fields of a line besides its text; both null: none.
struct chaos_more {
  const core::chaos::fault* fault = nullptr; ///< for "fault"
  const double* figure = nullptr;            ///< for "capacity" and "whole"
};

/// @pre event is one of chaos_events(), and `more` has its fields
nlohmann::ordered_json
chaos_line(const std::string& event, double seconds, const std::string& text,
           const chaos_more& more);

} // namespace shoal::apps
