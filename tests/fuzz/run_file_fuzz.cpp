// tests/fuzz/run_file_fuzz.cpp -- run files: TOML, then the table of keys.
//
// For all bytes, reading ends in a run or in a sentence; a run that was read
// must be the same after conversion to JSON and back.
#include "apps/common/toml_file.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/jobs/run_config.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::string json = text; // first byte '{': directly to the parser
  if (text.empty() || text[0] != '{') {
    try {
      json = shoal::apps::toml_text_to_json(text, "fuzz.toml");
    } catch (const shoal::apps::toml_error& e) {
      SHOAL_ASSERT(!e.text.empty());
      return 0;
    }
  }
  auto run = shoal::runtime::parse_run(json, "fuzz.toml");
  if (!run) {
    SHOAL_ASSERT(!run.message().empty());
    return 0;
  }
  const std::string once = shoal::runtime::to_json(*run);
  auto again = shoal::runtime::parse_run(once, "again");
  SHOAL_ASSERT(again && shoal::runtime::to_json(*again) == once);
  return 0;
}
