// apps/common/confirm.hpp -- asks before what cannot be undone.
//
// On a terminal the user is asked. Elsewhere nobody can be: a script must say
// that it means it, so the command is refused with the line that does.
#pragma once

#include <string>

namespace shoal::apps {

/// Something that cannot be undone.
struct irrevocable {
  std::string action;  ///< as the user called it: "recover --force"
  std::string what;    ///< sentences: what it will do
  std::string command; ///< the command line that does it without a question
};

/// Asks on stderr, and reads the answer from stdin. @returns exit_done if the
/// user has said yes; else an exit code, with the reason on stderr
int confirm(const irrevocable& act);

/// A word as a shell reads it: quoted where it must be.
std::string shell_word(const std::string& word);

} // namespace shoal::apps
