// tests/fuzz/config_file_fuzz.cpp -- any bytes as a shoal.toml.
//
// For all bytes, reading ends in tables or in a sentence that names the file.
#include "apps/common/toml_file.hpp"
#include "runtime/core/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

using namespace shoal::apps;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const toml_table table = toml_table::parse(text, "fuzz.toml");
    for (const char* command : {"node", "train", "status", ""})
      for (const auto& [key, values] : table.values(command))
        SHOAL_ASSERT(!key.empty() || values.size() < size);
  } catch (const toml_error& e) {
    SHOAL_ASSERT(e.text.starts_with("fuzz.toml:"));
  }
  return 0;
}
