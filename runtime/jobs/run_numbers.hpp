// runtime/jobs/run_numbers.hpp -- numbers of a run file in readable form.
#pragma once

#include "runtime/jobs/run_config.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace shoal::runtime {

/// Limit of the whole numbers in a run file: a double holds each of them
/// exactly.
inline constexpr double most_whole_number = 1e15;

/// Readable form: whole numbers in full, others with as many digits as needed
/// to distinguish them.
inline std::string number(double value) {
  char text[32];
  if (value == std::floor(value) && std::abs(value) <= most_whole_number) {
    std::snprintf(text, sizeof text, "%.0f", value);
    return text;
  }
  std::snprintf(text, sizeof text, "%.17g", value);
  for (int digits = 1; digits < 17; ++digits) {
    char shorter[32];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, value);
    if (std::strtod(shorter, nullptr) == value)
      return shorter;
  }
  return text;
}

/// Whether -1 means "choose": where it is the default.
inline bool may_choose(const run_key& key) {
  const auto* i = std::get_if<std::int64_t run_config::*>(&key.where);
  return i && key.low > -1 && run_config{}.*(*i) == -1;
}

} // namespace shoal::runtime
