// runtime/model/jinja/values/value_json.hpp -- values from JSON, and JSON from values.
//
// Errors: template_error from to_json(), of values that have no JSON.
#pragma once

#include "runtime/model/jinja/values/value.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace shoal::jinja {

/// Numbers beyond 64 bits become floats.
/// @param foreign  whether its texts come from a client
/// @param chosen  but these
/// @pre nests less than value_depth_max levels, as parse_json() sees to
value from_json(const nlohmann::ordered_json& json, bool foreign,
                const choice& chosen = {});

/// As Python's json.dumps().
struct json_style {
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  std::string indent; ///< of each level; with `lines`
  bool lines = false; ///< each item on a line of its own
  bool ascii = false;
  bool sorted = false;
};
marked_text to_json(budget& from, const value& v, const json_style& style);

} // namespace shoal::jinja
