// runtime/model/jinja/values/python_text.cpp -- strip, split, letter case, repr.
#include "runtime/model/jinja/values/python_text.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/patterns/unicode.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>

namespace shoal::jinja {

using core::append_code;
using core::next_code;
using core::previous_code;

bool is_python_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85
         || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a)
         || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f
         || c == 0x3000;
}

std::size_t code_points(std::string_view text) {
  return std::size_t(std::ranges::count_if(text, [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::size_t offset_of(std::string_view text, std::size_t position) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80
        && position-- == 0)
      break;
  return at;
}

text_range strip(std::string_view text, strip_side side,
                 const std::string_view* characters) {
  const auto goes = [&](char32_t c) {
    if (!characters)
      return is_python_space(c);
    for (std::size_t at = 0; at < characters->size();)
      if (next_code(*characters, at) == c)
        return true;
    return false;
  };
  text_range out{0, text.size()};
  if (side != strip_side::right)
    for (std::size_t at = 0; at < out.last; out.first = at)
      if (!goes(next_code(text, at)))
        break;
  if (side != strip_side::left)
    for (std::size_t at = out.last; at > out.first; out.last = at)
      if (!goes(previous_code(text, at)))
        break;
  return out;
}

namespace {

void append_upper(std::string& to, char32_t c) {
  if (c == 0xdf)
    to += "SS";
  else
    append_code(to, model::text::to_upper(c));
}

/// A first letter: the sharp s is "Ss" there.
void append_title(std::string& to, char32_t c) {
  if (c == 0xdf)
    to += "Ss";
  else
    append_code(to, model::text::to_title(c));
}

bool is_line_end(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85
         || c == 0x2028 || c == 0x2029;
}

} // namespace

std::string upper(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();)
    append_upper(out, next_code(text, at));
  return out;
}

std::string lower(std::string_view text) {
  return model::text::lower_case(text);
}

std::string capitalize(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  if (!text.empty())
    append_title(out, next_code(text, at));
  return out + lower(text.substr(at));
}

std::string title(std::string_view text) {
  std::string out;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = at;
    const char32_t c = next_code(text, at);
    if (inside)
      out += lower(text.substr(first, at - first));
    else
      append_title(out, c);
    inside = model::text::is_cased(c);
  }
  return out;
}

namespace {

std::vector<text_range> split_at(std::string_view text, std::string_view by,
                                 std::size_t most, bool from_right) {
  std::vector<text_range> out;
  if (!from_right) {
    std::size_t first = 0;
    for (std::size_t at;
         out.size() < most && (at = text.find(by, first)) != text.npos;
         first = at + by.size())
      out.push_back({first, at});
    out.push_back({first, text.size()});
    return out;
  }
  std::size_t last = text.size();
  for (std::size_t at; out.size() < most && last >= by.size()
                       && (at = text.substr(0, last).rfind(by)) != text.npos;
       last = at)
    out.push_back({at + by.size(), last});
  out.push_back({0, last});
  std::ranges::reverse(out);
  return out;
}

/// Words between white space. The rest behind the last cut keeps its own.
std::vector<text_range>
words(std::string_view text, std::size_t most, bool from_right) {
  std::vector<text_range> out;
  text_range rest{0, text.size()};
  for (;;) {
    const std::string_view left =
      text.substr(rest.first, rest.last - rest.first);
    const text_range inner =
      strip(left, from_right ? strip_side::right : strip_side::left);
    rest = {rest.first + inner.first, rest.first + inner.last};
    if (rest.first == rest.last)
      break;
    if (out.size() == most) {
      out.push_back(rest);
      break;
    }
    std::size_t at = from_right ? rest.last : rest.first;
    std::size_t end = at;
    if (from_right) {
      for (; at > rest.first; end = at)
        if (is_python_space(previous_code(text, at)))
          break;
      out.push_back({end, rest.last});
      rest.last = end;
    } else {
      for (; at < rest.last; end = at)
        if (is_python_space(next_code(text, at)))
          break;
      out.push_back({rest.first, end});
      rest.first = end;
    }
  }
  if (from_right)
    std::ranges::reverse(out);
  return out;
}

} // namespace

std::vector<text_range>
split(std::string_view text, const std::string_view* separator,
      std::optional<std::size_t> most, bool from_right) {
  const std::size_t cuts = most.value_or(text.size() + 1);
  if (separator)
    return split_at(text, *separator, cuts, from_right);
  return words(text, cuts, from_right);
}

std::vector<text_range> split_lines(std::string_view text) {
  std::vector<text_range> out;
  std::size_t first = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t before = at;
    const char32_t c = next_code(text, at);
    if (!is_line_end(c))
      continue;
    if (c == '\r' && at < text.size() && text[at] == '\n')
      ++at;
    out.push_back({first, before});
    first = at;
  }
  if (first < text.size())
    out.push_back({first, text.size()});
  return out;
}

std::string repr(double number) {
  if (std::isnan(number))
    return "nan";
  if (std::isinf(number))
    return number < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), number,
                                 std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  const std::size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16)
    return text; // two digits of exponent at least, as Python writes it
  std::string digits;
  for (const char c : text.substr(0, e))
    if (c >= '0' && c <= '9')
      digits += c;
  std::string out = text[0] == '-' ? "-" : "";
  if (exponent < 0)
    return out + "0." + std::string(std::size_t(-exponent - 1), '0') + digits;
  const std::size_t whole = std::size_t(exponent) + 1;
  if (digits.size() <= whole)
    return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string repr(std::string_view text) {
  const char quote =
    text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code(text, at);
    char escape[16];
    if (c == char32_t(quote) || c == '\\')
      (out += '\\') += char(c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (c == ' ' || model::text::is_printable(c))
      append_code(out, c);
    else {
      std::snprintf(escape, sizeof escape,
                    c < 0x100     ? "\\x%02x"
                    : c < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                    unsigned(c));
      out += escape;
    }
  }
  return out + quote;
}

} // namespace shoal::jinja
