// runtime/model/text/byte_level.cpp -- bytes as printable characters, GPT-2's.
#include "runtime/model/text/byte_level.hpp"

#include "runtime/core/text/utf8.hpp"

namespace shoal::model::text {

namespace {

constexpr bool shows(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC)
         || byte >= 0xAE;
}

/// Characters end before this: 256 + the 68 bytes that Latin-1 does not show.
constexpr char32_t characters_end = 256 + 68;

struct tables {
  std::array<std::string, 256> text;
  std::array<int, characters_end> byte{};

  tables() {
    byte.fill(-1);
    char32_t next = 256;
    for (unsigned b = 0; b < 256; ++b) {
      const char32_t code = shows(b) ? static_cast<char32_t>(b) : next++;
      core::append_code(text[b], code);
      byte[code] = static_cast<int>(b);
    }
  }
};

const tables& both() {
  static const tables made;
  return made;
}

} // namespace

std::string to_byte_level(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  for (const char c : bytes)
    out += both().text[static_cast<unsigned char>(c)];
  return out;
}

void append_from_byte_level(std::string_view text, std::string& bytes) {
  const std::size_t before = bytes.size();
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = core::next_code(text, at);
    if (code >= characters_end || both().byte[code] < 0) {
      bytes.resize(before);
      bytes += text;
      return;
    }
    bytes.push_back(static_cast<char>(both().byte[code]));
  }
}

} // namespace shoal::model::text
