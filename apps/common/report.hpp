// apps/common/report.hpp -- how commands report errors, and the time of day.
#pragma once

#include "apps/terminal/exit_codes.hpp"

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

namespace shoal::apps {

/// Writes an error line to stderr. @returns the exit code
inline int fail(const std::string& text, int code = exit_failed) {
  std::cerr << "shoal: " << text << "\n";
  return code;
}

/// Now, in Unix time.
inline std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

} // namespace shoal::apps
