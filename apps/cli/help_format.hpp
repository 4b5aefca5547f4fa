// apps/cli/help_format.hpp -- how `--help` shows options.
//
// Each option is told with its value, its bounds and its default, in lines that
// fit a terminal. The defaults come from the variables that the options are
// bound to, or from the table of a run file's keys, so they cannot differ from
// what the program does. An option without a description is one of many alike:
// a group lists these by name, in one paragraph.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace shoal::apps {

/// For the program and, by inheritance, its subcommands.
std::shared_ptr<CLI::FormatterBase> make_help_format();

/// "N" for INT and UINT, "X" for FLOAT, "a|b" for a choice.
std::string value_of(const CLI::Option& o);

/// "0 to 1024" for "INT:INT in [0 - 1024]"; "" without bounds.
std::string bounds_of(const CLI::Option& o);

/// What the bound variable holds, as a person would type it.
std::string default_of(const CLI::Option& o);

} // namespace shoal::apps
