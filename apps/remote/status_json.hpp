// apps/remote/status_json.hpp -- what a node has answered to `shoal status`, checked.
//
// The node may be another version's, or one that lies: its answer is JSON from
// outside. parse_status() copies what the commands read into a value that has
// every key, of the right kind and within its limits, with texts that may be
// shown. What is missing or of another kind is as if the node knew nothing of
// it; other keys are left out. Whoever reads the result checks nothing again.
//
// Errors: a text that is no JSON object with peers and jobs is a failure.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/view.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace shoal::apps {

using status_json = nlohmann::ordered_json;

/// Texts that are longer are cut.
inline constexpr std::size_t status_text_bytes_max = 1024;

[[nodiscard]] model::result<status_json> parse_status(std::string_view text);

/// The view that a plan is made for. @pre status is from parse_status()
[[nodiscard]] core::view view_of(const status_json& status);

} // namespace shoal::apps
