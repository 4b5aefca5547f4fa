// tests/fuzz/beacon_fuzz.cpp -- any datagram; also with a valid proof, so that
// the fields after the proof, and the filter, are reached.
#include "runtime/discovery/beacon_filter.hpp"

#include <openssl/hmac.h>

#include <cstdlib>
#include <cstring>
#include <vector>

using namespace shoal::runtime;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shoal::transport::tls::shared_key key{1, 2, 3};
  (void)decode_beacon(std::as_bytes(std::span(data, size)), "c", key);
  if (size < beacon_head_bytes)
    return 0;
  std::string text = "shoal beacon";
  text.append(reinterpret_cast<const char*>(data), beacon_head_bytes);
  text += "c";
  std::vector<std::uint8_t> signed_bytes(data, data + beacon_head_bytes);
  signed_bytes.resize(beacon_bytes);
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
       signed_bytes.data() + beacon_head_bytes, &length);
  auto b = decode_beacon(std::as_bytes(std::span(signed_bytes)), "c", key);
  if (b) {
    auto again = encode_beacon(*b, "c", key);
    using verdict = beacon_filter::verdict;
    beacon_filter filter;
    const beacon_filter::origin from{b->address, is_loopback(b->address)};
    const std::chrono::seconds now{size};
    if (filter.judge(*b, from, false, now) != verdict::dial
        || filter.judge(*b, from, false, now) != verdict::old)
      std::abort();
    if (std::memcmp(again.data(), signed_bytes.data(), again.size()) != 0)
      std::abort();
  }
  return 0;
}
