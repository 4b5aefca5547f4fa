// apps/remote/status_text.hpp -- a shoal's status as tables.
//
// Each gives lines for a person, of what parse_status() gives.
#pragma once

#include "apps/remote/status_json.hpp"

#include <cstdint>
#include <string>

namespace shoal::apps {

/// Peers with their devices and work, pairs that cannot reach each other, jobs.
std::string status_table(const status_json& status);

/// One line for each fabric that has carried something, the one in use first.
std::string links_table(const status_json& status);

/// `shoal jobs`. @param now_ms Unix time, to which ages are relative
std::string jobs_table(const status_json& status, std::int64_t now_ms);

} // namespace shoal::apps
