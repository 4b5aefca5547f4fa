// runtime/node/beacon.cpp -- one datagram of discovery.
#include "runtime/discovery.hpp"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <cstring>
#include <vector>

namespace shoal::runtime {

static constexpr char magic[5] = "SHBN";
static constexpr std::uint8_t version = 1;
static constexpr std::size_t head_bytes = 32;
static constexpr std::uint8_t flag_alone = 1;

using proof = std::array<std::uint8_t, 32>;

static proof prove(const std::byte* head, const std::string& cluster,
                   const transport::tls::shared_key& key) {
  static constexpr std::string_view label = "shoal beacon";
  std::vector<std::uint8_t> text(label.begin(), label.end());
  auto bytes = reinterpret_cast<const std::uint8_t*>(head);
  text.insert(text.end(), bytes, bytes + head_bytes);
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
  std::memcpy(out.data(), magic, 4);
  out[4] = std::byte{version};
  out[5] = std::byte{b.alone ? flag_alone : std::uint8_t{0}};
  out[6] = static_cast<std::byte>(b.port & 255);
  out[7] = static_cast<std::byte>(b.port >> 8);
  std::memcpy(out.data() + 8, b.sender.data(), 8);
  std::memcpy(out.data() + 16, b.nonce.data(), 16);
  proof p = prove(out.data(), cluster, key);
  std::memcpy(out.data() + head_bytes, p.data(), p.size());
  return out;
}

std::optional<beacon>
decode_beacon(std::span<const std::byte> bytes, const std::string& cluster,
              const transport::tls::shared_key& key) {
  if (bytes.size() != beacon_bytes || std::memcmp(bytes.data(), magic, 4) != 0
      || bytes[4] != std::byte{version}
      || (bytes[5] & ~std::byte{flag_alone}) != std::byte{0})
    return std::nullopt;
  proof p = prove(bytes.data(), cluster, key);
  if (CRYPTO_memcmp(bytes.data() + head_bytes, p.data(), p.size()) != 0)
    return std::nullopt;
  beacon b;
  b.alone = bytes[5] == std::byte{flag_alone};
  b.port =
    static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[6])
                               | std::to_integer<unsigned>(bytes[7]) << 8);
  if (b.port == 0)
    return std::nullopt;
  std::memcpy(b.sender.data(), bytes.data() + 8, 8);
  std::memcpy(b.nonce.data(), bytes.data() + 16, 16);
  return b;
}

} // namespace shoal::runtime
