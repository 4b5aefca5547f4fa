// apps/top/top_options.hpp -- the options of `shoal top`, and its function.
//
// As those of other commands in common/commands.hpp.
#pragma once

#include "apps/common/commands.hpp" // node_address

namespace shoal::apps {

struct top_options {
  node_address at;
  double interval_s = 1; ///< seconds between two answers
};
int run_top(const top_options& o);

} // namespace shoal::apps
