// tests/fuzz/serve_config_fuzz.cpp -- any text as the description of a served
// model: what is accepted is written and read again as the same.
#include "runtime/core/assert.hpp"
#include "runtime/jobs/serve_config.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

using namespace shoal;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = runtime::parse_serve(
    std::string_view(reinterpret_cast<const char*>(data), size));
  if (!read) {
    SHOAL_ASSERT(!read.message().empty());
    return 0;
  }
  const std::string text = runtime::to_json(*read);
  const auto again = runtime::parse_serve(text);
  SHOAL_ASSERT(again && runtime::to_json(*again) == text);
  return 0;
}
