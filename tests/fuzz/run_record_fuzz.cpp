// tests/fuzz/run_record_fuzz.cpp -- run.json of a folder from another user.
//
// For all bytes, reading ends in a record or in a sentence. A record is the
// same after it was written, and a run that is resumed unchanged has no
// differences. The input is used as the whole file, as its run, and as all
// except that.
#include "apps/train/run_changes.hpp"
#include "apps/train/run_record.hpp"
#include "runtime/core/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

using namespace shoal::apps;

namespace {

void read(const std::string& text) {
  auto record = parse_record(text, "run.json");
  if (!record) {
    SHOAL_ASSERT(!record.message().empty());
    return;
  }
  SHOAL_ASSERT(record->jobs.size() <= record_jobs_max);
  SHOAL_ASSERT(record->steps_max >= record->run.steps);
  const std::string once = to_json(*record);
  const auto again = parse_record(once, "again");
  SHOAL_ASSERT(again && to_json(*again) == once);
  SHOAL_ASSERT(changes(record->run, again->run).empty());
  const auto all = changes(record->run, {});
  for (const change_kind kind : {change_kind::refused, change_kind::text,
                                 change_kind::told, change_kind::free})
    SHOAL_ASSERT(to_text(all, kind).size() < 10000);
  record->add("0123456789abcdef");
  SHOAL_ASSERT(record->has("0123456789abcdef"));
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read(text);
  const std::string begin = R"({"format":"shoal-run-1",)";
  read(begin + R"("jobs":[],"text":"","steps_max":1000000000000,"run":)" + text
       + "}");
  read(begin + text + R"(,"run":{}})");
  return 0;
}
