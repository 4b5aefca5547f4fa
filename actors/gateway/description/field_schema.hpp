// actors/gateway/description/field_schema.hpp -- JSON schemas of fields that tables
// of the program tell.
//
// Threads: pure functions.
#pragma once

#include "runtime/files/field_text.hpp"
#include "runtime/openai/field_log.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace shoal::actors {

/// Of a field of a request; null is allowed, since it counts as left out.
nlohmann::ordered_json schema_of(const openai::read_field& field);

/// Of an object that a json_table writes.
nlohmann::ordered_json
schema_of(const std::vector<runtime::field_text>& fields);

} // namespace shoal::actors
