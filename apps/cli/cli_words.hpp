// apps/cli/cli_words.hpp -- words of a command line, known or not.
//
// Options have values also from variables (SHOAL_...) and the configuration
// file. Of what the program does not know it says which word is wrong, and what
// was meant: commands, options, variables, tables and keys alike.
//
// Threads: pure functions, but for the environment that is read.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace shoal::apps {

class toml_table;

/// A wrong flag, variable or key; the text says which.
struct usage_error {
  std::string text;
};

/// Variables first, then the file, for what the command line left out. Throws
/// usage_error for a value that the option does not take.
void fill_in(CLI::App& command, const toml_table& file,
             const std::string& file_name);

/// "SHOAL_MAX_TOKENS" for "max-tokens".
std::string variable_of(const std::string& flag);

/// Why `app` has not taken the words: the first one that is no command and no
/// option. @returns "" if each is known, so that something else is wrong.
std::string
unknown_word(const CLI::App& app, int argc, const char* const* argv);

/// What the command took no part of: a word that stands for nothing, with the
/// option that was meant if one is called so (`jobs rm`). @returns "" if there
/// is none. @pre the command line has such a word, or no command
std::string stray_word(const CLI::App& app);

/// A variable that is one letter (two of a long word) off a known one: a typing
/// error. Others that begin with SHOAL_ are not ours: Kubernetes sets some for
/// a service of that name. @returns "" if there is none.
std::string mistyped_variable(const CLI::App& app);

/// Variables that begin with SHOAL_ and mean nothing to any command.
std::vector<std::string> unknown_variables(const CLI::App& app);

/// A table that is no command's, or a key that is no option of its command.
/// @returns "" if there is none.
std::string unknown_key(const CLI::App& app, const toml_table& file,
                        const std::string& file_name);

} // namespace shoal::apps
