// apps/terminal/confirm.hpp -- asks before an action that cannot be undone.
//
// On a terminal the user is asked. Elsewhere there is no one to ask: a script
// must state its intent, so the command is refused with the command line that
// does it.
#pragma once

#include <string>

namespace shoal::apps {

/// An action that cannot be undone.
struct irrevocable {
  std::string action;  ///< as on the command line: "recover --force"
  std::string what;    ///< sentences about its effects
  std::string command; ///< the command line that does it without a question
};

/// Asks on stderr, and reads the answer from stdin.
/// @returns exit_done if the user said yes; else an exit code, with the reason
/// on stderr
int confirm(const irrevocable& act);

/// The command line of this process, as a user would type it: "shoal train DIR".
std::string this_command();

/// A word in shell syntax: quoted if necessary.
std::string shell_word(const std::string& word);

/// A file or folder as an argument: no option, whatever its name.
std::string shell_path(const std::string& path);

} // namespace shoal::apps
