// tests/fuzz/config_fuzz.cpp -- any bytes as a config.json.
//
// An accepted configuration must be consistent, and equal when written and read
// again.
#include "runtime/model/config/config.hpp"

#include <cstdlib>

using namespace shoal::model;

extern "C" int
LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto config = parse_config({reinterpret_cast<const char*>(data), size});
  if (!config)
    return 0;
  if (!check_config(*config))
    std::abort();
  auto again = parse_config(to_json(*config));
  if (!again)
    std::abort();
  again->torch_dtype = config->torch_dtype;
  again->wants_dropout = config->wants_dropout;
  if (*again != *config)
    std::abort();
  return 0;
}
