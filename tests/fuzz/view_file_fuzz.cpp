// tests/fuzz/view_file_fuzz.cpp -- described shoals: TOML, then the keys.
//
// For all bytes, reading ends in a view that satisfies the invariants, or in a
// sentence.
#include "apps/common/toml_file.hpp"
#include "apps/plan/view_file.hpp"
#include "runtime/core/assert.hpp"

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
  auto v = shoal::apps::parse_view(json, "fuzz.toml");
  if (!v) {
    SHOAL_ASSERT(v.message().starts_with("fuzz.toml: "));
    return 0;
  }
  SHOAL_ASSERT(!v->members.empty()
               && v->members.size() <= shoal::apps::view_members_max);
  for (std::size_t i = 0; i < v->members.size(); ++i) {
    SHOAL_ASSERT(i == 0
                 || v->members[i - 1].id.peer < v->members[i].id.peer); // V-1
    SHOAL_ASSERT(v->members[i].device.mflops > 0);
    SHOAL_ASSERT(v->members[i].networks.size() <= shoal::core::networks_max);
  }
  return 0;
}
