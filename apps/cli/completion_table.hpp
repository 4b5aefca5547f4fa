// apps/cli/completion_table.hpp -- what a shell can complete, by command.
//
// Made from the command line's own parser, as `--help` and the reference are.
// What completes a value follows from its placeholder: FILE, PATH and DIR are
// paths, JOB, PEER and MODEL are names that the local node knows, a|b is a
// choice; nothing completes other values.
//
// Threads: pure functions.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace shoal::apps {

/// Completes a value.
enum class value_kind {
  none, ///< a flag: it has no value
  free, ///< nobody can guess it
  words,
  path,   ///< a file or a folder
  folder, ///< only a folder
  jobs,
  peers,
  models, ///< a served model, or a path
};

struct completed_value {
  value_kind kind = value_kind::none;
  std::vector<std::string> words; ///< of value_kind::words
  bool many = false;              ///< several words in a row
  std::string placeholder;        ///< "FILE"
};

struct completed_option {
  std::vector<std::string> flags; ///< with their dashes: "-h", "--help"
  std::string meaning;            ///< one short line
  completed_value value;
};

struct completed_command {
  std::string name;
  std::string meaning;
  std::vector<completed_option> options;
  std::vector<completed_value> places; ///< of words without a flag, in order
};

struct completion_table {
  std::vector<completed_option> options; ///< before the command
  std::vector<completed_command> commands;
};

/// @pre app has all commands
completion_table completions_of(const CLI::App& app);

/// The scripts. Each asks `shoal completion jobs` (or peers, models) for names.
std::string bash_completion(const completion_table& t);
std::string zsh_completion(const completion_table& t);
std::string fish_completion(const completion_table& t);

} // namespace shoal::apps
