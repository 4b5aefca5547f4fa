// tests/fuzz/node_lines_fuzz.cpp -- any bytes as the last lines of a node.
//
// Accepted text is safe to show.
#include "apps/node/node_lines.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/text/shown.hpp"

#include <cstddef>
#include <cstdint>

using namespace shoal;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto said =
    apps::parse_lines({reinterpret_cast<const char*>(data), size});
  if (!said)
    return 0;
  SHOAL_ASSERT(core::is_shown(said->node));
  for (const apps::node_line& line : said->lines) {
    SHOAL_ASSERT(core::is_shown(line.text));
    SHOAL_ASSERT(line.unix_ms >= 0);
  }
  return 0;
}
