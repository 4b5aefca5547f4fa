// apps/cli/completion.hpp -- `shoal completion`: scripts for shells, and the
// names that they ask for.
//
// `shoal completion bash` (zsh, fish) prints a script. `shoal completion jobs`
// (peers, models) prints names that the local node knows, one a line; none if
// no node runs here. A name that a shell could take for more than a word is
// left out.
#pragma once

#include "apps/common/commands.hpp"

#include <CLI/CLI.hpp>

namespace shoal::apps {

/// @pre app has all commands
int run_completion(const CLI::App& app, const completion_options& o);

} // namespace shoal::apps
