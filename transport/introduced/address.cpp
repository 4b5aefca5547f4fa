// transport/introduced/address.cpp -- node addresses as text.
//
// Little-endian, in this order: medium u8, boot id (length u8, bytes), uid u32,
// pid namespace u64, pid u32, peer id 32 bytes, role u8, instance u64,
// capabilities u64, token u64, way (length u16, bytes), XXH3-64 of all before
// it.

#include "transport/introduced/address.hpp"

#include <xxhash.h>

#include <concepts>
#include <cstring>
#include <span>

namespace shoal::transport::introduced {

namespace {

constexpr std::string_view prefix = "paired1.";
constexpr std::string_view digits = "0123456789abcdef";
constexpr std::size_t address_bytes_max = 1 + 1 + boot_id_bytes_max + 4 + 8 + 4
                                          + 32 + 1 + 8 + 8 + 8 + 2
                                          + way_bytes_max + 8;

using bytes = std::vector<std::byte>;

void put_bytes(bytes& out, const void* data, std::size_t n) {
  auto first = static_cast<const std::byte*>(data);
  out.insert(out.end(), first, first + n);
}

template <std::unsigned_integral Int>
void put(bytes& out, Int value) {
  for (std::size_t i = 0; i != sizeof(Int); ++i)
    out.push_back(std::byte(static_cast<std::uint8_t>(value >> (8 * i))));
}

/// Takes fields off the front; if one is missing, all later ones are missing.
class reader {
public:
  explicit reader(std::span<const std::byte> in) : in_(in) {}

  std::span<const std::byte> take(std::size_t n) {
    if (n > in_.size()) {
      failed_ = true;
      in_ = {};
      return {};
    }
    auto out = in_.first(n);
    in_ = in_.subspan(n);
    return out;
  }

  template <std::unsigned_integral Int>
  Int get() {
    Int value = 0;
    auto raw = take(sizeof(Int));
    for (std::size_t i = 0; i != raw.size(); ++i)
      value = static_cast<Int>(
        value | static_cast<Int>(static_cast<Int>(raw[i]) << (8 * i)));
    return value;
  }

  bool failed() const { return failed_; }
  std::size_t left() const { return in_.size(); }

private:
  std::span<const std::byte> in_;
  bool failed_ = false;
};

std::optional<bytes> from_hex(std::string_view text) {
  if (text.size() % 2 != 0 || text.size() / 2 > address_bytes_max)
    return std::nullopt;
  bytes out(text.size() / 2);
  for (std::size_t i = 0; i != out.size(); ++i) {
    auto high = digits.find(text[2 * i]);
    auto low = digits.find(text[2 * i + 1]);
    if (high == digits.npos || low == digits.npos)
      return std::nullopt;
    out[i] = std::byte(high << 4 | low);
  }
  return out;
}

} // namespace

std::string format_address(const node_address& a) {
  bytes out;
  put(out, static_cast<std::uint8_t>(a.over));
  put(out, static_cast<std::uint8_t>(a.host.boot_id.size()));
  put_bytes(out, a.host.boot_id.data(), a.host.boot_id.size());
  put(out, a.host.uid);
  put(out, a.host.pid_namespace);
  put(out, a.host.net_namespace);
  put(out, a.pid);
  put_bytes(out, a.peer.data(), a.peer.size());
  put(out, static_cast<std::uint8_t>(a.role));
  put(out, a.instance);
  put(out, a.capabilities);
  put(out, a.token);
  put(out, static_cast<std::uint16_t>(a.way.size()));
  put_bytes(out, a.way.data(), a.way.size());
  put(out, static_cast<std::uint64_t>(XXH3_64bits(out.data(), out.size())));
  std::string text(prefix);
  for (auto b : out) {
    text += digits[static_cast<std::size_t>(b >> 4)];
    text += digits[static_cast<std::size_t>(b & std::byte{15})];
  }
  return text;
}

std::optional<node_address> parse_address(std::string_view text) {
  if (!text.starts_with(prefix))
    return std::nullopt;
  auto raw = from_hex(text.substr(prefix.size()));
  if (!raw || raw->size() < 8)
    return std::nullopt;
  std::span<const std::byte> all(*raw);
  reader sum(all.last(8));
  auto body = all.first(all.size() - 8);
  if (sum.get<std::uint64_t>() != XXH3_64bits(body.data(), body.size()))
    return std::nullopt;
  reader in(body);
  node_address a;
  auto over = in.get<std::uint8_t>();
  a.over = static_cast<medium>(over);
  auto boot = in.take(in.get<std::uint8_t>());
  a.host.boot_id.assign(reinterpret_cast<const char*>(boot.data()),
                        boot.size());
  a.host.uid = in.get<std::uint32_t>();
  a.host.pid_namespace = in.get<std::uint64_t>();
  a.host.net_namespace = in.get<std::uint64_t>();
  a.pid = in.get<std::uint32_t>();
  auto peer = in.take(a.peer.size());
  if (!in.failed())
    std::memcpy(a.peer.data(), peer.data(), peer.size());
  auto role = in.get<std::uint8_t>();
  a.role = static_cast<peer_role>(role);
  a.instance = in.get<std::uint64_t>();
  a.capabilities = in.get<std::uint64_t>();
  a.token = in.get<std::uint64_t>();
  auto worker = in.take(in.get<std::uint16_t>());
  a.way.assign(worker.begin(), worker.end());
  if (in.failed() || in.left() != 0 || boot.size() > boot_id_bytes_max
      || over < 1 || over > 4 || (role != 1 && role != 2) || a.way.empty()
      || a.way.size() > way_bytes_max)
    return std::nullopt;
  return a;
}

} // namespace shoal::transport::introduced
