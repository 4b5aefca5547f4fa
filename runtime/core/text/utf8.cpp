// runtime/core/text/utf8.cpp -- characters of a text, one by one.
#include "runtime/core/text/utf8.hpp"

namespace shoal::core {

character first_character(std::string_view text) {
  auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned lead = byte(0);
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF; // range of the second byte
  if (lead < 0x80)
    return {1, character::kind::whole};
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    low = lead == 0xE0 ? 0xA0 : 0x80;
    high = lead == 0xED ? 0x9F : 0xBF;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    low = lead == 0xF0 ? 0x90 : 0x80;
    high = lead == 0xF4 ? 0x8F : 0xBF;
  } else {
    return {1, character::kind::broken};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size())
      return {i, character::kind::cut_off};
    if (byte(i) < low || byte(i) > high)
      return {i, character::kind::broken};
    low = 0x80;
    high = 0xBF;
  }
  return {length, character::kind::whole};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const character c = first_character(text);
    if (c.is != character::kind::whole)
      return false;
    text.remove_prefix(c.bytes);
  }
  return true;
}

std::string replace_broken(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const character c = first_character(text);
    out += c.is == character::kind::whole ? text.substr(0, c.bytes)
                                          : replacement_character;
    text.remove_prefix(c.bytes);
  }
  return out;
}

char32_t next_code(std::string_view text, std::size_t& at) {
  auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t lead = byte(0);
  char32_t code = lead;
  std::size_t length = 1;
  if (lead >= 0xF0) {
    code = (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6
           | (byte(3) & 0x3F);
    length = 4;
  } else if (lead >= 0xE0) {
    code = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    length = 3;
  } else if (lead >= 0xC0) {
    code = (lead & 0x1F) << 6 | (byte(1) & 0x3F);
    length = 2;
  }
  at += length;
  return code;
}

char32_t previous_code(std::string_view text, std::size_t& at) {
  do
    --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  std::size_t from = at;
  return next_code(text, from);
}

void append_code(std::string& text, char32_t code) {
  auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

} // namespace shoal::core
