// tests/fuzz/event_line_fuzz.cpp -- lines of metrics.jsonl and of a journal.
//
// A parsed line must be the same event after it has been written and parsed
// again, and the written line is safe to show.
#include "runtime/core/assert.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/jobs/event_json.hpp"

#include <cstddef>
#include <cstdint>

using namespace shoal::runtime;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  job_event event;
  if (!from_json_line({reinterpret_cast<const char*>(data), size}, event))
    return 0;
  const std::string once = to_json_line(event);
  SHOAL_ASSERT(shoal::core::is_shown(once));
  job_event again;
  SHOAL_ASSERT(from_json_line(once, again));
  SHOAL_ASSERT(to_json_line(again) == once);
  return 0;
}
