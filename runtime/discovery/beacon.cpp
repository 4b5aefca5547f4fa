// runtime/discovery/beacon.cpp -- one datagram of discovery.
#include "runtime/discovery/beacon.hpp"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <cstring>
#include <vector>

namespace shoal::runtime {

static constexpr char beacon_magic[5] = "SHBN";
static constexpr std::uint8_t version = 2;
static constexpr std::uint8_t flag_alone = 1;

using proof = std::array<std::uint8_t, 32>;

static proof prove(const std::byte* head, const std::string& cluster,
                   const transport::tls::shared_key& key) {
  static constexpr std::string_view label = "shoal beacon";
  std::vector<std::uint8_t> text(label.begin(), label.end());
  auto bytes = reinterpret_cast<const std::uint8_t*>(head);
  text.insert(text.end(), bytes, bytes + beacon_head_bytes);
  text.insert(text.end(), cluster.begin(), cluster.end());
  proof out{};
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), text.data(),
       text.size(), out.data(), &size);
  return out;
}

std::array<std::byte, beacon_bytes>
encode_beacon(const beacon& b, const std::string& cluster,
              const transport::tls::shared_key& key) {
  std::array<std::byte, beacon_bytes> out{};
  std::memcpy(out.data(), beacon_magic, 4);
  out[4] = std::byte{version};
  out[5] = std::byte{b.alone ? flag_alone : std::uint8_t{0}};
  out[6] = static_cast<std::byte>(b.port & 255);
  out[7] = static_cast<std::byte>(b.port >> 8);
  std::memcpy(out.data() + 8, b.sender.data(), b.sender.size());
  for (unsigned i = 0; i < 8; ++i)
    out[16 + i] = static_cast<std::byte>(b.time >> (8 * i) & 255);
  std::memcpy(out.data() + 24, b.address.data(), b.address.size());
  proof p = prove(out.data(), cluster, key);
  std::memcpy(out.data() + beacon_head_bytes, p.data(), p.size());
  return out;
}

std::optional<beacon>
decode_beacon(std::span<const std::byte> bytes, const std::string& cluster,
              const transport::tls::shared_key& key) {
  if (bytes.size() != beacon_bytes
      || std::memcmp(bytes.data(), beacon_magic, 4) != 0
      || bytes[4] != std::byte{version}
      || (bytes[5] & ~std::byte{flag_alone}) != std::byte{0})
    return std::nullopt;
  proof p = prove(bytes.data(), cluster, key);
  if (CRYPTO_memcmp(bytes.data() + beacon_head_bytes, p.data(), p.size()) != 0)
    return std::nullopt;
  beacon b;
  b.alone = bytes[5] == std::byte{flag_alone};
  b.port =
    static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[6])
                               | std::to_integer<unsigned>(bytes[7]) << 8);
  std::memcpy(b.sender.data(), bytes.data() + 8, b.sender.size());
  for (unsigned i = 0; i < 8; ++i)
    b.time |= std::to_integer<std::uint64_t>(bytes[16 + i]) << (8 * i);
  std::memcpy(b.address.data(), bytes.data() + 24, b.address.size());
  if (b.port == 0 || is_any(b.address) || is_multicast(b.address))
    return std::nullopt;
  return b;
}

} // namespace shoal::runtime
