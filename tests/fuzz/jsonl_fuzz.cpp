// tests/fuzz/jsonl_fuzz.cpp -- any bytes as a .jsonl file of `shoal eval`.
//
// Whatever the bytes are, reading ends in sequences of ids below vocab_size or
// in a failure that names the file and may be shown.
#include "runtime/core/assert.hpp"
#include "runtime/core/shown.hpp"
#include "runtime/model/sequences.hpp"

#include <cstddef>
#include <cstdint>

using namespace shoal::model;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  model_config config;
  config.vocab_size = 300;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const tokenizer bytes;
  text_encoder encoder(bytes);
  for (text_encoder* each : {&encoder, static_cast<text_encoder*>(nullptr)}) {
    std::vector<std::vector<token_id>> into;
    const auto read = read_jsonl("f.jsonl", file, config, each, into);
    SHOAL_ASSERT(read || read.message().starts_with("f.jsonl:"));
    SHOAL_ASSERT(read || shoal::core::is_shown(read.message()));
    for (const auto& sequence : into)
      for (const token_id id : sequence)
        SHOAL_ASSERT(id >= 0 && id < 300);
  }
  return 0;
}
