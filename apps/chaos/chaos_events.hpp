// apps/chaos/chaos_events.hpp -- the lines of `shoal chaos --json`, but for the last.
//
// That one is the report (chaos_report.hpp).
#pragma once

#include "apps/chaos/chaos.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace shoal::apps {

/// What a line has beside its text; both null: nothing.
struct chaos_more {
  const core::chaos::fault* fault = nullptr; ///< of "fault"
  const double* figure = nullptr;            ///< of "capacity" and "whole"
};

/// @pre event is one of chaos_events(), and `more` what it has
nlohmann::ordered_json
chaos_line(const std::string& event, double seconds, const std::string& text,
           const chaos_more& more);

} // namespace shoal::apps
