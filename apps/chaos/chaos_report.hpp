// apps/chaos/chaos_report.hpp -- the result of a harmed run, as text and as
// JSON.
#pragma once

#include "apps/chaos/chaos.hpp"
#include "runtime/files/field_text.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::apps {

struct chaos_figures {
  core::chaos::account account;
  core::chaos::capacity capacity;
  std::string state; ///< of the job: "done"
  std::uint64_t seed = 0;
  std::uint64_t forks = 0;
  core::epoch views = 0; ///< number of the newest view
  double loss = 0;       ///< at the last step

  /// The job completed, and no committed step was lost.
  bool good() const {
    return state == "done" && account.repeated == 0 && account.missing == 0
           && forks == 0;
  }
};

/// Prints to stdout: a few lines, or one line of JSON.
void print(const chaos_figures& f, bool as_json);
std::vector<runtime::field_text> chaos_report_fields(); ///< of that JSON

} // namespace shoal::apps
