// apps/remote/status_json.hpp -- a node's answer to `shoal status`, checked.
//
// The node may have another version, or lie: its answer is foreign JSON.
// parse_status() copies what the commands read into a value that has every key,
// with the right type and within its limits, and with texts that are safe to
// show. A member that is missing or has another type gets the default for
// "unknown"; other keys are left out. Readers of the result need no further
// checks.
//
// Errors: a text that is no JSON object with peers and jobs is a failure, and so is
//         one of more than status_values_max values.
#pragma once

#include "runtime/core/result.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace shoal::core {
struct view; // runtime/core/view.hpp
}

namespace shoal::apps {

using status_json = nlohmann::ordered_json;

/// Longer texts are cut.
inline constexpr std::size_t status_text_bytes_max = 1024;

/// Values, lists and objects of a status. A value with all keys has 10 or more bytes
/// of text, so no true status of runtime::status_bytes_max bytes has that many. One
/// that lies may be made of "{}", each of which gets all keys here: 100 times its size.
inline constexpr std::size_t status_values_max = std::size_t{1} << 17;

[[nodiscard]] model::result<status_json> parse_status(std::string_view text);

/// A text of the status or of an object in it. @pre it has that key
[[nodiscard]] const std::string&
text_of(const status_json& from, const char* key);

/// The view for a plan. @pre status comes from parse_status()
[[nodiscard]] core::view view_of(const status_json& status);

} // namespace shoal::apps
