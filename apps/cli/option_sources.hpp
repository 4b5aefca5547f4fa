// apps/cli/option_sources.hpp -- values of options that the command line leaves out.
//
// They come from variables (SHOAL_...), then from the command's table of the
// configuration file. Each becomes a word of the command line, so that the same
// checks apply to it: required options, and those that do not go together. What the
// command line has comes first: an option that does not go with one there is left
// out, and so is one without the other that it needs.
//
// Threads: pure functions, except that the environment and a file are read.
// Errors:  usage_error for a value that the option does not accept, which names the
//          source; toml_error.
#pragma once

#include "apps/common/toml_file.hpp"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace shoal::apps {

/// A wrong flag, variable or key; the text names it.
struct usage_error {
  std::string text;
};

struct configuration {
  toml_table table;
  std::string file; ///< its name; "": there is none
};

struct filled_line {
  std::vector<std::string> words; ///< after the program's name
  std::string sources;            ///< "SHOAL_LISTEN (--listen), ..."
};

/// "SHOAL_MAX_TOKENS" for "max-tokens".
std::string variable_of(const std::string& flag);

/// What the library says of a value, without the flag: it was not given as one.
std::string refusal(const CLI::Option& option, const std::string& value,
                    const std::string& text);

/// The file of --config before the command, of SHOAL_CONFIG, or the user's own;
/// empty if the words ask for help, or name a file that does not exist.
configuration read_configuration(const std::vector<std::string>& words);

/// @param words of the command line, after the program's name; unchanged if they name
/// no command, or ask for help
filled_line fill_in(CLI::App& app, std::vector<std::string> words,
                    const configuration& file);

} // namespace shoal::apps
