// runtime/core/ids.cpp -- ids as text and back.
#include "runtime/core/ids.hpp"

#include "runtime/core/text/hex.hpp"

namespace shoal::core {

namespace {

/// The value of a hexadecimal digit, or -1.
int digit(char c) noexcept {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

} // namespace

bool from_hex(std::string_view text, std::span<std::uint8_t> out) noexcept {
  if (text.size() != 2 * out.size())
    return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0)
      return false;
    out[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

std::string job_text(job_id job) {
  std::array<std::uint8_t, sizeof job> bytes;
  for (std::uint8_t& byte : bytes) { // the highest digits first
    byte = static_cast<std::uint8_t>(job >> (8 * (sizeof job - 1)));
    job <<= 8;
  }
  return to_hex(bytes);
}

std::string short_name(const peer_id& id) {
  return to_hex(id).substr(0, 8);
}

} // namespace shoal::core
