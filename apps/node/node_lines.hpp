// apps/node/node_lines.hpp -- the last lines of a node, as another program gives them.
//
// The node may be another version's, or one that lies: its answer is JSON from
// outside (runtime/observe/recent_lines.hpp). What parse_lines() gives may be shown.
//
// Errors: a text that is no JSON object with a list of lines is a failure.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

struct node_line {
  std::uint64_t number = 0; ///< in the life of the node's process
  std::int64_t unix_ms = 0;
  std::string text;
};

struct node_lines {
  std::string node; ///< its name
  std::vector<node_line> lines;
};

[[nodiscard]] model::result<node_lines> parse_lines(std::string_view text);

} // namespace shoal::apps
