// tests/fuzz/index_fuzz.cpp -- indexes of models in several files.
#include "runtime/core/assert.hpp"
#include "runtime/model/files/safetensors.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shoal::model;
  auto index =
    parse_index({reinterpret_cast<const char*>(data), size}, "index");
  if (!index)
    return 0;
  for (const std::string& file : index->files())
    SHOAL_ASSERT(!file.empty() && file.find('/') == std::string::npos);
  auto again = parse_index(to_json(*index, 7), "again");
  SHOAL_ASSERT(again && again->weights == index->weights);
  return 0;
}
