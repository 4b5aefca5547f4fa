// tests/fuzz/beacon_fuzz.cpp -- any datagram; a valid proof is put under it as
// well, so that the fields behind the proof are reached.
#include "runtime/discovery.hpp"

#include <openssl/hmac.h>

#include <cstdlib>
#include <cstring>
#include <vector>

using namespace shoal::runtime;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shoal::transport::tls::shared_key key{1, 2, 3};
  (void)decode_beacon(std::as_bytes(std::span(data, size)), "c", key);
  if (size < 32)
    return 0;
  std::string text = "shoal beacon";
  text.append(reinterpret_cast<const char*>(data), 32);
  text += "c";
  std::vector<std::uint8_t> signed_bytes(data, data + 32);
  signed_bytes.resize(beacon_bytes);
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
       signed_bytes.data() + 32, &length);
  auto b = decode_beacon(std::as_bytes(std::span(signed_bytes)), "c", key);
  if (b) {
    auto again = encode_beacon(*b, "c", key);
    if (std::memcmp(again.data(), signed_bytes.data(), again.size()) != 0)
      std::abort();
  }
  return 0;
}
