// runtime/model/text/patterns/regex_translate.cpp -- translates Oniguruma to PCRE2.
//
// One pass over the pattern that knows whether it is inside a class. It refuses
// constructs that it does not know.
#include "runtime/model/text/patterns/regex.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace shoal::model::text {

namespace {

// White_Space; PCRE2's \s would add U+180E, which has not been a space since
// Unicode 6.3.
constexpr std::string_view space =
  "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}"
  "\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr std::string_view no_space =
  "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"
  "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-"
  "\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}";
// PCRE2 10.42 leaves marks, connectors other than _ and the letters in circles
// and squares (Other_Alphabetic) out of \w. Oniguruma's \w also has the
// superscripts and fractions of Latin-1, but no others.
constexpr std::string_view word =
  "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}"
  "\\x{bc}-\\x{be}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}"
  "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";

class translator {
public:
  explicit translator(std::string_view pattern) : in_(pattern) {}

  result<std::string> run() {
    while (at_ < in_.size() && wrong_.empty()) {
      const char c = in_[at_];
      if (c == '\\')
        escape();
      else if (in_class_)
        inside(c);
      else
        outside(c);
    }
    if (wrong_.empty() && in_class_)
      wrong_ = "a class is not closed";
    if (!wrong_.empty())
      return failure{wrong_};
    return std::move(out_);
  }

private:
  void copy(std::size_t count = 1) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }

  void put(std::string_view text, std::size_t consumed) {
    out_ += text;
    at_ += consumed;
  }

  void refuse(std::string_view what) {
    wrong_ = "'" + std::string(what) + "' is not supported";
  }

  bool next_is(std::string_view text) const {
    return in_.substr(at_, text.size()) == text;
  }

  void inside(char c) {
    if (c == '[')
      return refuse("[ within a class");
    if (next_is("&&"))
      return refuse("&&");
    if (c == ']')
      in_class_ = false;
    copy();
  }

  void outside(char c) {
    if (c == '[') {
      in_class_ = true;
      copy();
      if (next_is("^"))
        copy();
      if (next_is("]"))
        refuse("] as the first of a class");
    } else if (c == '(') {
      group();
    } else if (c == '{') {
      counted();
    } else {
      copy();
    }
  }

  void group() {
    if (next_is("(*"))
      return refuse("(*");
    if (!next_is("(?"))
      return copy();
    for (const std::string_view known :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)"}) {
      if (next_is(known))
        return copy(known.size());
    }
    refuse(in_.substr(at_, 3));
  }

  /// {n}, {n,}, {,m}, {n,m}: PCRE2 10.42 takes {,m} literally, and Oniguruma
  /// does not take a + behind one as possessive.
  void counted() {
    const std::size_t end = in_.find('}', at_);
    std::string_view body;
    if (end != std::string_view::npos)
      body = in_.substr(at_ + 1, end - at_ - 1);
    if (body.empty() || body.size() > 11 || body[0] == ','
        || body.find_first_not_of("0123456789,") != std::string_view::npos)
      return refuse(
        in_.substr(at_, std::min<std::size_t>(body.size() + 2, 16)));
    copy(body.size() + 2);
    if (next_is("+"))
      refuse("+ behind {}");
  }

  /// Letters in braces behind \p or \P.
  void property() {
    const std::size_t end = in_.find('}', at_);
    if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{'
        || end == std::string_view::npos || end - at_ > 40)
      return refuse("\\p without {}");
    copy(end - at_ + 1);
  }

  /// \xHH; PCRE2 reads the other forms differently.
  void hexadecimal() {
    std::size_t digits = 0;
    while (digits < 2 && at_ + 2 + digits < in_.size()
           && std::strchr("0123456789abcdefABCDEF", in_[at_ + 2 + digits]))
      ++digits;
    if (digits == 2)
      return copy(4);
    const std::size_t end = in_.find('}', at_);
    if (at_ + 2 < in_.size() && in_[at_ + 2] == '{'
        && end != std::string_view::npos && end - at_ <= 11)
      return copy(end - at_ + 1);
    refuse("\\x without two digits");
  }

  void unicode() {
    const std::string_view digits =
      in_.substr(std::min(at_ + 2, in_.size()), 4);
    if (digits.size() != 4
        || digits.find_first_not_of("0123456789abcdefABCDEF")
             != std::string_view::npos)
      return refuse("\\u without four digits");
    put("\\x{" + std::string(digits) + "}", 6);
  }

  void escape() {
    if (at_ + 1 == in_.size()) {
      wrong_ = "it ends in a backslash";
      return;
    }
    const char c = in_[at_ + 1];
    auto as_class = [&](std::string_view set, bool negated) {
      if (in_class_ && negated)
        return refuse(in_.substr(at_, 2));
      if (in_class_)
        return put(set, 2);
      put((negated ? "[^" : "[") + std::string(set) + "]", 2);
    };
    switch (c) {
    case 's':
      return as_class(space, false);
    case 'S':
      if (in_class_)
        return put(no_space, 2);
      return as_class(space, true);
    case 'w':
      return as_class(word, false);
    case 'W':
      return as_class(word, true);
    case 'd':
      return put("\\p{Nd}", 2);
    case 'D':
      return put("\\P{Nd}", 2);
    case 'p':
    case 'P':
      return property();
    case 'x':
      return hexadecimal();
    case 'u':
      return unicode();
    case 'r':
    case 'n':
    case 't':
    case 'f':
      return copy(2);
    case 'v':
      return put("\\x0b", 2);
    case 'A':
    case 'z':
    case 'Z':
      if (in_class_)
        return refuse(in_.substr(at_, 2));
      return copy(2);
    default:
      break;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0)
      return refuse(in_.substr(at_, 2));
    copy(2);
  }

  std::string_view in_;
  std::size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
  std::string wrong_;
};

} // namespace

result<std::string> to_pcre2(std::string_view pattern) {
  return translator(pattern).run();
}

} // namespace shoal::model::text
