// apps/cli/reference.hpp -- the program's reference, made from its own tables.
//
// Commands and options come from the command line's parser, keys of run files
// and view files from the tables that read them, fields of JSON and tags of
// TensorBoard from the tables that write them. So the reference cannot differ
// from the program's behaviour. apps/guide/reference.md is its output.
#pragma once

#include "apps/cli/reference_page.hpp"

#include <CLI/CLI.hpp>

namespace shoal::apps {

/// @pre app has all commands
page make_reference(const CLI::App& app);

/// `shoal reference`, and `shoal reference --man`.
int run_reference(const CLI::App& app, bool man);

} // namespace shoal::apps
