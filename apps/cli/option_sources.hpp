// apps/cli/option_sources.hpp -- values of options that the command line leaves out.
//
// They come from variables (SHOAL_...), then from the command's table of the
// configuration file. What comes first also wins where two options do not go
// together: the later one is left out, and so is one without the other that it
// needs. A flag that is false stands in no other's way. Paths may begin with ~/.
//
// Threads: one at a time; the environment and a file are read.
// Errors:  usage_error for a value that the option does not accept, which names the
//          source; toml_error.
#pragma once

#include "apps/common/toml_file.hpp"

#include <CLI/CLI.hpp>

#include <filesystem>
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

/// Where an option has its value from.
struct option_source {
  std::string option; ///< its name, without dashes
  std::string source; ///< "SHOAL_LISTEN", "FILE: listen"
};

/// "SHOAL_MAX_TOKENS" for "max-tokens".
std::string variable_of(const std::string& flag);

/// What the library says of a value, without the flag: it was not given as one.
std::string refusal(const CLI::Option& option, const std::string& value,
                    const std::string& text);

/// @param named the file of --config; empty: that of SHOAL_CONFIG, or the user's own
configuration read_configuration(const std::filesystem::path& named);

/// Fills in what the command line has left out.
/// @pre the command line is parsed; its requirements are checked afterwards
/// @returns the options that were set, with their sources
std::vector<option_source>
fill_in(CLI::App& command, const configuration& file);

} // namespace shoal::apps
