// runtime/core/text/shown.cpp -- foreign text made safe for a terminal or a
// log.
#include "runtime/core/text/shown.hpp"

#include "runtime/core/text/utf8.hpp"

#include <algorithm>
#include <cstdio>

namespace shoal::core {
namespace {

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x61C
         || code == 0x200E || code == 0x200F
         || (code >= 0x2028 && code <= 0x202E)
         || (code >= 0x2066 && code <= 0x2069);
}

bool is_kept(char32_t code, line_ends ends) {
  return !is_control(code)
         || (ends == line_ends::kept && (code == '\n' || code == '\t'));
}

/// A byte that shown() never changes, whatever is around it.
bool is_plain(char byte) {
  return byte >= 0x20 && byte < 0x7F;
}

} // namespace

bool is_shown(std::string_view text, line_ends ends) {
  while (!text.empty()) {
    const character c = first_character(text);
    std::size_t at = 0;
    if (c.is != character::kind::whole || !is_kept(next_code(text, at), ends))
      return false;
    text.remove_prefix(c.bytes);
  }
  return true;
}

std::string shown(std::string_view text, line_ends ends) {
  return shown(text, std::string::npos, ends);
}

std::string
shown(std::string_view text, std::size_t bytes_max, line_ends ends) {
  std::string out;
  out.reserve(std::min(text.size(), bytes_max));
  while (!text.empty()) {
    std::string_view put = text.substr(0, 1);
    std::size_t taken = 1;
    if (!is_plain(text.front())) {
      const character c = first_character(text);
      std::size_t at = 0;
      taken = c.bytes;
      put = text.substr(0, taken);
      if (c.is != character::kind::whole)
        put = replacement_character;
      else if (!is_kept(next_code(text, at), ends))
        put = " ";
    }
    if (put.size() > bytes_max - out.size())
      break;
    out += put;
    text.remove_prefix(taken);
  }
  return out;
}

std::string escape_controls(std::string json) {
  if (std::ranges::all_of(json, is_plain))
    return json;
  std::string out;
  out.reserve(json.size());
  for (std::string_view rest = json; !rest.empty();) {
    const character c = first_character(rest);
    std::size_t at = 0;
    const char32_t code =
      c.is == character::kind::whole ? next_code(rest, at) : U'\0';
    if (code >= 0x7F && is_control(code)) {
      char text[16];
      std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(code));
      out += text;
    } else {
      out += rest.substr(0, c.bytes);
    }
    rest.remove_prefix(c.bytes);
  }
  return out;
}

} // namespace shoal::core
