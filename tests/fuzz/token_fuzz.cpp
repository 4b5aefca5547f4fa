// tests/fuzz/token_fuzz.cpp -- join tokens: one text for each token.
#include "runtime/control/invite.hpp"

#include <cstdlib>

using namespace shoal::runtime;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string& t : {text, "shoal-" + text})
    if (auto token = parse_token(t))
      if (encode_token(*token) != t)
        std::abort();
  return 0;
}
