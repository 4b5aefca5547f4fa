// tests/fuzz/safetensors_fuzz.cpp -- any bytes as a file of weights.
//
// Whatever parse_safetensors() accepts must lie within the file, so every
// tensor that it describes is read.
#include "runtime/model/files/safetensors.hpp"

#include <cstdlib>

using namespace shoal::model;

extern "C" int
LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  const auto tensors = parse_safetensors(file, "fuzz");
  if (!tensors)
    return 0;
  for (const stored_tensor& t : *tensors) {
    if (t.first > t.last || t.last > size)
      std::abort();
    if (t.type == stored_type::other)
      continue;
    std::vector<float> values(t.count);
    widen(t.type, file.data() + t.first, values);
  }
  return 0;
}
