// tests/fuzz/status_fuzz.cpp -- any bytes as the answer of a node to `status`.
//
// Accepted answers give tables, and a view with members in order.
#include "apps/remote/status_text.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/core/view.hpp"

#include <cstddef>
#include <cstdint>

using namespace shoal;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto status =
    apps::parse_status({reinterpret_cast<const char*>(data), size});
  if (!status)
    return 0;
  SHOAL_ASSERT(core::is_utf8(apps::status_table(*status)));
  SHOAL_ASSERT(core::is_utf8(apps::links_table(*status)));
  SHOAL_ASSERT(core::is_utf8(apps::jobs_table(*status, 1000)));
  const core::view v = apps::view_of(*status);
  for (std::size_t i = 1; i < v.members.size(); ++i)
    SHOAL_ASSERT(v.members[i - 1].id.peer < v.members[i].id.peer);
  return 0;
}
