// tests/fuzz/paired_address_fuzz.cpp -- addresses that nodes send each other.
//
// The first byte chooses: the rest is the text itself, or the binary fields, to
// which a correct checksum is added so that the lengths are reached.
#include "transport/introduced/address.hpp"

#include <xxhash.h>

#include <cstdlib>

namespace introduced = shoal::transport::introduced;

namespace {

std::string with_checksum(const std::uint8_t* data, std::size_t size) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "paired1.";
  auto put = [&](std::uint8_t byte) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  };
  for (std::size_t i = 0; i != size; ++i)
    put(data[i]);
  auto sum = XXH3_64bits(data, size);
  for (int i = 0; i != 8; ++i)
    put(static_cast<std::uint8_t>(sum >> (8 * i)));
  return text;
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  auto text =
    data[0] % 2 == 0
      ? with_checksum(data + 1, size - 1)
      : std::string(reinterpret_cast<const char*>(data + 1), size - 1);
  // Only one text parses to each value.
  if (auto address = introduced::parse_address(text))
    if (introduced::format_address(*address) != text)
      std::abort();
  return 0;
}
