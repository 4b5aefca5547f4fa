// apps/common/exit_codes.hpp -- how the program ends: the one table of exit codes.
//
// Every command returns one of these. `shoal --help` and `shoal reference`
// print the table; apps/README.md has it, too.
#pragma once

#include <string>

namespace shoal::apps {

inline constexpr int exit_done = 0;
/// The world failed: a file, a node, the network, the run itself.
inline constexpr int exit_failed = 1;
/// The command line, a variable or a file of settings is wrong.
inline constexpr int exit_usage = 2;
/// 128 + SIGINT, as shells count. SIGTERM ends a command with it, too: what was
/// asked for is not done, whichever signal said so.
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
/// An exception that is none.
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
