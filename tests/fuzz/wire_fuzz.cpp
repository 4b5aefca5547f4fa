// tests/fuzz/wire_fuzz.cpp -- any bytes through the codec: accepted messages
// must be the same after another round.
#include "runtime/wire/codec.hpp"

#include <cstdlib>

using namespace shoal::runtime;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  envelope first;
  if (!codec::decode(bytes, first)) {
    auto again = codec::encode(first);
    envelope second;
    if (codec::decode(again, second) || codec::encode(second) != again)
      std::abort();
  }
  shoal::core::cluster::record record;
  if (!codec::decode_record(bytes, record)
      && codec::decode_record(codec::encode_record(record), record))
    std::abort();
  return 0;
}
