// tests/fuzz/gguf_fuzz.cpp -- any bytes as a GGUF file.
//
// Whatever is accepted must lie within the file, so every tensor is read, and
// the keys are made a configuration and a tokenizer.
#include "runtime/model/gguf/gguf_blocks.hpp"
#include "runtime/model/gguf/gguf_model.hpp"
#include "runtime/model/gguf/gguf_tokenizer.hpp"

using namespace shoal::model::gguf;

extern "C" int
LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto from = file::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!from)
    return 0;
  for (const auto& [name, t] : from->tensors()) {
    std::vector<float> values(t.count);
    to_floats(t.type, t.data, values);
  }
  if (const auto config = config_of(*from))
    static_cast<void>(tensors_of(*from, *config));
  static_cast<void>(tokenizer_json(*from));
  static_cast<void>(tokenizer_config_json(*from));
  return 0;
}
