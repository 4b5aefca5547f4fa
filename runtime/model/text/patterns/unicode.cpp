// runtime/model/text/patterns/unicode.cpp -- properties of characters, normal forms.
#include "runtime/model/text/patterns/unicode.hpp"

#include "runtime/core/text/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

namespace shoal::model::text {

namespace {

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(
    text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

} // namespace

result<std::string> normalise(std::string_view text, normal_form form) {
  if (is_ascii(text))
    return std::string(text);
  int options = UTF8PROC_STABLE;
  options |= form == normal_form::nfc || form == normal_form::nfkc
               ? UTF8PROC_COMPOSE
               : UTF8PROC_DECOMPOSE;
  if (form == normal_form::nfkc || form == normal_form::nfkd)
    options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t size =
    utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                 static_cast<utf8proc_ssize_t>(text.size()), &out,
                 static_cast<utf8proc_option_t>(options));
  if (size < 0)
    return failure{std::string("normalising a text of ")
                   + std::to_string(text.size())
                   + " bytes: " + utf8proc_errmsg(size)};
  std::string normal(reinterpret_cast<const char*>(out),
                     static_cast<std::size_t>(size));
  std::free(out); // utf8proc allocates with malloc
  return normal;
}

std::string lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = core::next_code(text, at);
    core::append_code(out, code == 0x130
                             ? U'i' // the only one that becomes two
                             : static_cast<char32_t>(utf8proc_tolower(
                               static_cast<utf8proc_int32_t>(code))));
    if (code == 0x130)
      core::append_code(out, 0x307);
  }
  return out;
}

std::string without_marks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = core::next_code(text, at);
    if (!is_mark(code))
      core::append_code(out, code);
  }
  return out;
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85
         || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A)
         || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F
         || code == 0x3000;
}

bool is_word(char32_t code) {
  const auto c = category(code);
  return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL)
         || c == UTF8PROC_CATEGORY_PC || code == 0x200C
         || code == 0x200D
         // Other_Alphabetic beyond the marks: letters in circles and squares.
         || (code >= 0x24B6 && code <= 0x24E9)
         || (code >= 0x1F130 && code <= 0x1F149)
         || (code >= 0x1F150 && code <= 0x1F169)
         || (code >= 0x1F170 && code <= 0x1F189);
}

bool is_numeric(char32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool is_decimal(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_ND;
}

bool is_letter(char32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_cased(char32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LT;
}

bool is_mark(char32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

std::size_t grapheme_end(std::string_view text, std::size_t first) {
  std::size_t end = first;
  char32_t last = core::next_code(text, end);
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    std::size_t next_end = end;
    const char32_t next = core::next_code(text, next_end);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last),
                                         static_cast<utf8proc_int32_t>(next),
                                         &state))
      break;
    last = next;
    end = next_end;
  }
  return end;
}

bool is_printable(char32_t code) {
  const auto c = category(code);
  return code == U' '
         || (c != UTF8PROC_CATEGORY_CN && c < UTF8PROC_CATEGORY_ZS);
}

char32_t to_upper(char32_t code) {
  return static_cast<char32_t>(
    utf8proc_toupper(static_cast<utf8proc_int32_t>(code)));
}

char32_t to_title(char32_t code) {
  return static_cast<char32_t>(
    utf8proc_totitle(static_cast<utf8proc_int32_t>(code)));
}

} // namespace shoal::model::text
