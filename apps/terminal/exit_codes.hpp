// apps/terminal/exit_codes.hpp -- the one table of exit codes.
//
// Every command returns one of these. `shoal --help` and `shoal reference`
// print the table; apps/README.md has it, too.
#pragma once

#include <string>

namespace shoal::apps {

inline constexpr int exit_done = 0;
/// An error of the environment: a file, a node, the network, the run itself.
inline constexpr int exit_failed = 1;
/// A mistake in the command line, a variable or a settings file.
inline constexpr int exit_usage = 2;
/// 128 + SIGINT, the shells' convention. Also used when SIGTERM ends a command:
/// its work is not done, whichever signal ended it.
inline constexpr int exit_interrupted = 130;

struct exit_code {
  int code;
  const char* name;
  const char* meaning;
};
inline constexpr exit_code exit_code_table[] = {
  {exit_done, "done", "what was asked for is done"},
  {exit_failed, "failed", "a file, a node, the network or the run failed"},
  {exit_usage, "wrong use",
   "the command line, a variable or a file of settings is wrong"},
  {exit_interrupted, "interrupted", "Ctrl-C or SIGTERM ended it before that"},
};
/// An exception to the table.
inline constexpr char exit_codes_note[] =
  "`shoal node` that leaves its shoal in order is done.";

/// For `shoal --help`.
inline std::string exit_codes_text() {
  std::string out;
  for (const exit_code& e : exit_code_table)
    out += (out.empty() ? "Exit codes: " : ", ") + std::to_string(e.code) + " "
           + e.name;
  return out + " (Ctrl-C, SIGTERM).\n" + exit_codes_note;
}

} // namespace shoal::apps
