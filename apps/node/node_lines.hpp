// apps/node/node_lines.hpp -- the last lines of a node, as sent by another
// program.
//
// The node may have another version, or lie: its answer is foreign JSON
// (runtime/observe/recent_lines.hpp). The result of parse_lines() is safe to
// show.
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
  std::uint64_t number = 0; ///< since the start of the node's process
  std::int64_t unix_ms = 0;
  std::string text;
};

struct node_lines {
  std::string node; ///< its name
  std::vector<node_line> lines;
};

[[nodiscard]] model::result<node_lines> parse_lines(std::string_view text);

} // namespace shoal::apps
