// tests/fuzz/api_keys_fuzz.cpp -- any bytes as a file of API keys.
//
// The text of a line is in no error: it might be a key.
#include "runtime/core/assert.hpp"
#include "runtime/http/keys/api_keys.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

using namespace shoal::runtime;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto keys = api_keys::parse(text, "f");
  if (!keys) {
    SHOAL_ASSERT(keys.message().starts_with("f: line "));
    SHOAL_ASSERT(keys.message().size() < 200);
    return 0;
  }
  SHOAL_ASSERT(keys->size() <= api_keys_max);
  if (const api_key* const found = keys->find(text)) {
    SHOAL_ASSERT(is_api_key_name(found->name));
    SHOAL_ASSERT(found->limits.requests_per_minute <= key_limit_max);
    SHOAL_ASSERT(found->limits.tokens_per_minute <= key_limit_max);
  }
  return 0;
}
