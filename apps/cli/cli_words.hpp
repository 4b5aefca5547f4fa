// apps/cli/cli_words.hpp -- known and unknown words of a command line.
//
// For unknown input the error names the wrong word and the probable one: for
// commands, options, variables, tables and keys alike.
//
// Threads: pure functions, except that the environment is read.
#pragma once

#include "apps/cli/option_sources.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace shoal::apps {

/// Why `text` can be neither a node's address nor a member's name; "" if it can.
std::string wrong_peer(const std::string& text);

/// Why `app` has refused the words: the first one that is neither command nor
/// option. @returns "" if each is known, so that the mistake is elsewhere.
std::string
unknown_word(const CLI::App& app, int argc, const char* const* argv);

/// A word that the command did not use, with the option of the same name if
/// there is one (`jobs rm`). @returns "" if there is none. @pre the command
/// line has such a word, or no command
std::string stray_word(const CLI::App& app);

/// What the command lacks, and what may stand there: `error` says that an option
/// has no value, or that a word is missing. @returns "" if it says neither
std::string missing_word(const CLI::App& app, const CLI::ParseError& error);

/// What a value that cannot be read should be, or which two options do not go
/// together; empty: the error is another one.
[[nodiscard]] std::string
wrong_word(const CLI::App& app, const CLI::ParseError& error);

/// An empty value, of a variable of the user's shell that is not set, say: it would be
/// taken as if the option had not been given. @returns "" if there is none.
std::string empty_word(const CLI::App& command);

/// A variable that differs by one letter (two for a long word) from a known
/// one: a typing error. Other names with SHOAL_ are not ours: Kubernetes sets
/// some for a service of that name. @returns "" if there is none.
std::string mistyped_variable(const CLI::App& app);

/// Variables that begin with SHOAL_ and have no meaning for any command.
std::vector<std::string> unknown_variables(const CLI::App& app);

/// A table that belongs to no command, or a key that is no option of its
/// command. @returns "" if there is none.
std::string unknown_key(const CLI::App& app, const configuration& file);

} // namespace shoal::apps
