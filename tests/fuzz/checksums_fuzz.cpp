// tests/fuzz/checksums_fuzz.cpp -- checksums that came with a model.
#include "runtime/core/assert.hpp"
#include "runtime/model/files/checksums.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shoal::model;
  const auto sums =
    parse_checksums({reinterpret_cast<const char*>(data), size}, "sums");
  if (!sums)
    return 0;
  for (const auto& [name, sum] : *sums)
    SHOAL_ASSERT(!name.empty() && name.find('/') == std::string::npos);
  const auto again = parse_checksums(to_json(*sums), "again");
  SHOAL_ASSERT(again && *again == *sums);
  return 0;
}
