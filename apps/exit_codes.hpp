// apps/exit_codes.hpp -- how the program ends: the one table of exit codes.
//
// Every command returns one of these. `shoal --help` and apps/README.md show
// the same table.
#pragma once

namespace shoal::apps {

inline constexpr int exit_done = 0;
/// The world failed: a file, a node, the network, the run itself.
inline constexpr int exit_failed = 1;
/// The command line, a variable or a file of settings is wrong.
inline constexpr int exit_usage = 2;
/// 128 + SIGINT, as shells count. SIGTERM ends a command with it, too: what was
/// asked for is not done, whichever signal said so.
inline constexpr int exit_interrupted = 130;

inline constexpr char exit_codes_text[] =
  "Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted (Ctrl-C, "
  "SIGTERM).\n"
  "`shoal node` that leaves its shoal in order is done.";

} // namespace shoal::apps
