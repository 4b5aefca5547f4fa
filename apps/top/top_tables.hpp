// apps/top/top_tables.hpp -- a status and what is remembered of earlier ones, as
// the tables that `shoal top` shows.
//
// "-" stands for what the asked node does not know.
//
// Threads: pure functions.
#pragma once

#include "apps/top/table.hpp"
#include "apps/top/top_memory.hpp"

#include <cstdint>

namespace shoal::apps {

/// A status and when it was taken.
struct top_status {
  const status_json& is;    ///< from parse_status()
  const top_memory& memory; ///< which has it
  std::int64_t unix_ms = 0; ///< now
};

table peers_of(const top_status& s);
table links_of(const top_status& s);
table traffic_of(const top_status& s);
table training_of(const top_status& s);
table models_of(const top_status& s);

/// Sums over the shoal, each to be kept together: "3 up", "train 1.2k tok/s".
std::vector<span_of_text> totals_of(const top_status& s);

} // namespace shoal::apps
