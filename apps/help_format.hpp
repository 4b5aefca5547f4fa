// apps/help_format.hpp -- how `--help` shows options.
//
// Each option is told with its value, its bounds and its default, in lines that
// fit a terminal. The defaults come from the variables that the options are
// bound to, or from the table of a run file's keys, so they cannot differ from
// what the program does. An option without a description is one of many alike:
// a group lists these by name, in one paragraph.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>

namespace shoal::apps {

/// For the program and, by inheritance, its subcommands.
std::shared_ptr<CLI::FormatterBase> make_help_format();

} // namespace shoal::apps
