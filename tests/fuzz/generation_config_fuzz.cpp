// tests/fuzz/generation_config_fuzz.cpp -- any bytes as a
// generation_config.json. Accepted values must be usable.
#include "runtime/model/hf/generation_config.hpp"

#include <cstdlib>
#include <limits>

using namespace shoal::model;

extern "C" int
LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto said =
    parse_generation_config({reinterpret_cast<const char*>(data), size});
  if (!said)
    return 0;
  const auto in = [](auto value, auto low, auto high) {
    if (value && !(*value >= low && *value <= high))
      std::abort();
  };
  in(said->max_tokens, std::size_t{1}, std::size_t{1} << 24);
  in(said->temperature, 0.0f, std::numeric_limits<float>::max());
  in(said->top_p, 1e-45f, 1.0f);
  in(said->min_p, 0.0f, 1.0f);
  in(said->repetition_penalty, 1e-45f, std::numeric_limits<float>::max());
  if (said->eos_token_ids)
    for (const auto id : *said->eos_token_ids)
      if (id < 0)
        std::abort();
  return 0;
}
