// apps/cli/help_format.hpp -- formats the options in `--help`.
//
// Each option is shown with its value, bounds and default, in lines that fit a
// terminal. The defaults come from the variables to which the options are
// bound, or from the table of a run file's keys, so they cannot differ from the
// program's behaviour. An option without a description is one of many alike: a
// group lists these by name, in one paragraph.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace shoal::apps {

/// For the program and, by inheritance, its subcommands.
std::shared_ptr<CLI::FormatterBase> make_help_format();

/// "N" for INT and UINT, "X" for FLOAT, "a|b" for a choice, "N|auto" for a number
/// or a word.
std::string value_of(const CLI::Option& o);

/// "0 to 1024" for "INT:INT in [0 - 1024]"; "" without bounds.
std::string bounds_of(const CLI::Option& o);

/// The value of the bound variable, as typed on a command line.
std::string default_of(const CLI::Option& o);

} // namespace shoal::apps
