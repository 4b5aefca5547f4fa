// runtime/control/invite_text.cpp -- tokens as text.
#include "runtime/control/invite.hpp"
#include "runtime/core/text/shown.hpp"

#include <array>
#include <cstring>
#include <string_view>

namespace shoal::runtime {

static constexpr std::string_view prefix = "shoal-";
static constexpr std::string_view digits =
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static constexpr char version = 2;

static std::string to_base64url(const std::string& bytes) {
  std::string out;
  unsigned held = 0;
  int bits = 0;
  for (unsigned char c : bytes) {
    held = held << 8 | c;
    for (bits += 8; bits >= 6; bits -= 6)
      out += digits[held >> (bits - 6) & 63];
    held &= 63;
  }
  if (bits > 0)
    out += digits[held << (6 - bits) & 63];
  return out;
}

static std::optional<std::string> from_base64url(std::string_view text) {
  std::string out;
  unsigned held = 0;
  int bits = 0;
  for (char c : text) {
    const auto at = digits.find(c);
    if (at == std::string_view::npos)
      return std::nullopt;
    held = (held << 6 | static_cast<unsigned>(at)) & 0x3fff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += static_cast<char>(held >> bits & 255);
    }
  }
  if (bits >= 6 || (held & ((1u << bits) - 1)) != 0)
    return std::nullopt; // only one text is valid for each token
  return out;
}

std::string encode_token(const invite_token& token) {
  std::string bytes(1, version);
  for (int shift = 0; shift < 64; shift += 8)
    bytes +=
      static_cast<char>(static_cast<std::uint64_t>(token.expires_s) >> shift);
  bytes.append(token.inviter.begin(), token.inviter.end());
  bytes.append(token.key.begin(), token.key.end());
  const auto add = [&bytes](const std::string& text) {
    bytes += static_cast<char>(text.size());
    bytes += text;
  };
  add(token.cluster);
  for (const std::string& a : token.addresses)
    add(a);
  return std::string(prefix) + to_base64url(bytes);
}

/// The bytes of a token-like text, of any version.
static std::optional<std::string> bytes_of(const std::string& text) {
  if (text.size() > token_text_max || !text.starts_with(prefix))
    return std::nullopt;
  auto bytes = from_base64url(std::string_view(text).substr(prefix.size()));
  return bytes && !bytes->empty() ? bytes : std::nullopt;
}

/// Reads a text after a byte for its length. @returns whether there is one.
static bool
take_text(const std::string& bytes, std::size_t& offset, std::string& out) {
  if (offset >= bytes.size())
    return false;
  const auto size = static_cast<unsigned char>(bytes[offset++]);
  if (size == 0 || size > bytes.size() - offset)
    return false;
  out = bytes.substr(offset, size);
  offset += size;
  return true;
}

std::optional<invite_token> parse_token(const std::string& text) {
  constexpr std::size_t head = 1 + 8 + 32 + 32;
  const auto bytes = bytes_of(text);
  if (!bytes || bytes->size() < head || (*bytes)[0] != version)
    return std::nullopt;
  invite_token out;
  std::uint64_t expires = 0;
  for (std::size_t i = 8; i > 0; --i)
    expires = expires << 8 | static_cast<unsigned char>((*bytes)[i]);
  out.expires_s = static_cast<std::int64_t>(expires);
  std::memcpy(out.inviter.data(), bytes->data() + 9, 32);
  std::memcpy(out.key.data(), bytes->data() + 41, 32);
  std::size_t offset = head;
  if (!take_text(*bytes, offset, out.cluster) || !core::is_shown(out.cluster))
    return std::nullopt;
  while (offset < bytes->size()) {
    std::string address;
    if (out.addresses.size() >= token_addresses_max
        || !take_text(*bytes, offset, address))
      return std::nullopt;
    for (unsigned char c : address)
      if (c <= 32 || c >= 127)
        return std::nullopt;
    out.addresses.push_back(std::move(address));
  }
  if (out.addresses.empty())
    return std::nullopt;
  return out;
}

bool is_token_of_another_version(const std::string& text) {
  const auto bytes = bytes_of(text);
  return bytes && (*bytes)[0] != version;
}

} // namespace shoal::runtime
