// runtime/model/jinja/lexer.cpp -- tags, white space control, strings, numbers.
#include "runtime/model/jinja/lexer.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/model/jinja/values/python_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace shoal::jinja {

void fail_at(int line, const std::string& what) {
  throw template_error("line " + std::to_string(line) + ": " + what);
}

namespace {

/// "\r\n" and "\r" as "\n"; without the last line end.
std::string normalized(std::string_view source) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n')
      ++i;
  }
  if (out.ends_with('\n'))
    out.pop_back();
  return out;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
         || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

class lexer {
public:
  explicit lexer(std::string_view source) : source_(normalized(source)) {}

  std::vector<token> run() {
    while (at_ < source_.size())
      outside();
    add(token_kind::end, "");
    return std::move(out_);
  }

private:
  [[noreturn]] void fail(const std::string& what) { fail_at(line_, what); }
  std::string_view rest() const {
    return std::string_view(source_).substr(at_);
  }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  void skip(std::size_t bytes) {
    line_ +=
      int(std::count(source_.begin() + std::ptrdiff_t(at_),
                     source_.begin() + std::ptrdiff_t(at_ + bytes), '\n'));
    if (bytes > 0)
      line_begins_ = source_[at_ + bytes - 1] == '\n';
    at_ += bytes;
  }
  void skip_space() { skip(strip(rest(), strip_side::left).first); }
  void add(token_kind kind, std::string text) {
    out_.push_back({kind, std::move(text), line_});
  }

  /// The text before a tag, as far as the tag leaves it.
  std::string before_tag(std::size_t end, char sign, bool output) const {
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-')
      return std::string(text.substr(0, strip(text, strip_side::right).last));
    const std::size_t line = text.rfind('\n') + 1; // 0: no line end
    if (sign != '+' && !output && (line > 0 || line_begins_)
        && strip(text.substr(line), strip_side::right).last == 0)
      text = text.substr(0, line);
    return std::string(text);
  }

  void add_data(std::string text) {
    if (!text.empty())
      add(token_kind::data, std::move(text));
  }

  void outside() {
    std::size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == source_.npos) {
        add_data(std::string(rest()));
        return skip(rest().size());
      }
      const char second = tag + 1 < source_.size() ? source_[tag + 1] : '\0';
      if (second == '{' || second == '%' || second == '#')
        break;
    }
    const char second = source_[tag + 1];
    const char third = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const char sign = third == '-' || third == '+' ? third : '\0';
    add_data(before_tag(tag, sign, second == '{'));
    skip(tag - at_);
    const int line = line_;
    skip(sign ? 3 : 2);
    if (second == '#')
      comment(line);
    else if (second == '%' && begins_raw())
      raw(line);
    else
      inside(second == '{');
  }

  /// The end of a comment or of a block, at its '%' or '#'.
  void skip_end(std::size_t first) {
    const char sign = first > at_ ? source_[first - 1] : '\0';
    end_tag(first, sign);
  }
  void end_tag(std::size_t first, char sign) {
    skip(first + 2 - at_);
    if (sign == '-')
      skip_space();
    else if (sign != '+' && peek() == '\n')
      skip(1);
  }

  void comment(int line) {
    const std::size_t end = source_.find("#}", at_);
    if (end == source_.npos)
      fail_at(line, "the comment has no end");
    skip_end(end);
  }

  /// Whether a word stands between white space. @returns the offset behind the
  /// end of that tag, and its sign; npos if it is another tag
  std::size_t
  tag_of(std::size_t from, std::string_view word, char& sign) const {
    const std::string_view all = source_;
    std::size_t at = from + strip(all.substr(from), strip_side::left).first;
    if (all.substr(at, word.size()) != word)
      return all.npos;
    at += word.size();
    at += strip(all.substr(at), strip_side::left).first;
    sign =
      at < all.size() && (all[at] == '-' || all[at] == '+') ? all[at] : '\0';
    at += sign ? 1 : 0;
    return all.substr(at, 2) == "%}" ? at : all.npos;
  }

  bool begins_raw() const {
    char sign = 0;
    return tag_of(at_, "raw", sign) != source_.npos && sign != '+';
  }

  void raw(int line) {
    char sign = 0;
    const std::size_t first = tag_of(at_, "raw", sign);
    skip(first + 2 - at_);
    if (sign == '-')
      skip_space();
    for (std::size_t tag = at_; (tag = source_.find("{%", tag)) != source_.npos;
         tag += 2) {
      const char third = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      const char begin = third == '-' || third == '+' ? third : '\0';
      const std::size_t end = tag_of(tag + (begin ? 3 : 2), "endraw", sign);
      if (end == source_.npos)
        continue;
      add_data(before_tag(tag, begin, false));
      return end_tag(end, sign);
    }
    fail_at(line, "\"raw\" has no \"endraw\"");
  }

  bool ends(bool output) {
    const std::string_view mark = output ? "}}" : "%}";
    const char c = peek();
    const bool signed_ = c == '-' || (c == '+' && !output);
    if (rest().substr(signed_ ? 1 : 0, 2) != mark)
      return false;
    add(output ? token_kind::end_output : token_kind::end_block, "");
    if (!output)
      end_tag(at_ + (signed_ ? 1 : 0), signed_ ? c : '\0');
    else {
      skip(signed_ ? 3 : 2);
      if (signed_)
        skip_space();
    }
    return true;
  }

  void inside(bool output) {
    add(output ? token_kind::begin_output : token_kind::begin_block, "");
    std::string brackets;
    for (;;) {
      if (brackets.empty() && ends(output))
        return;
      if (at_ >= source_.size())
        fail("the tag has no end");
      if (const std::size_t space = strip(rest(), strip_side::left).first)
        skip(space);
      else if (is_digit(peek()))
        number();
      else if (is_word(peek()))
        name();
      else if (peek() == '"' || peek() == '\'')
        text();
      else
        sign(brackets);
    }
  }

  void name() {
    std::size_t bytes = 0;
    while (is_word(peek(bytes)))
      ++bytes;
    add(token_kind::name, std::string(rest().substr(0, bytes)));
    skip(bytes);
  }

  /// Digits with underscores between them.
  std::size_t digits(std::size_t from) const {
    std::size_t at = from;
    while (is_digit(peek(at))
           || (at > from && peek(at) == '_' && is_digit(peek(at + 1))))
      ++at;
    return at - from;
  }

  void number() {
    std::size_t bytes = digits(0);
    bool real = false;
    const bool follows_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (!follows_dot) {
      std::size_t more = bytes;
      if (peek(more) == '.' && digits(more + 1) > 0) {
        more += 1 + digits(more + 1);
        real = true;
      }
      if (peek(more) == 'e' || peek(more) == 'E') {
        const std::size_t sign =
          peek(more + 1) == '+' || peek(more + 1) == '-' ? 1 : 0;
        if (const std::size_t e = digits(more + 1 + sign); e > 0) {
          more += 1 + sign + e;
          real = true;
        }
      }
      bytes = real ? more : bytes;
    }
    std::string text(rest().substr(0, bytes));
    std::erase(text, '_');
    if (!real && text.size() > 1 && text[0] == '0'
        && text.find_first_not_of('0') != text.npos)
      fail("a number begins with 0");
    add(real ? token_kind::real : token_kind::integer, std::move(text));
    skip(bytes);
  }

  static int hex_digit(char c) {
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  }

  /// What follows a backslash in a string. @returns its bytes
  std::size_t escape(std::string_view from, std::string& into) {
    static constexpr std::string_view plain = "\\'\"abfnrtv";
    static constexpr std::string_view stands_for = "\\'\"\a\b\f\n\r\t\v";
    const char c = from[0];
    if (const std::size_t i = plain.find(c); i != plain.npos) {
      into += stands_for[i];
      return 1;
    }
    if (c == '\n')
      return 1;
    unsigned code = 0;
    if (c >= '0' && c <= '7') {
      std::size_t i = 0;
      for (; i < 3 && i < from.size() && from[i] >= '0' && from[i] <= '7'; ++i)
        code = code * 8 + unsigned(from[i] - '0');
      core::append_code(into, code);
      return i;
    }
    const std::size_t size = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (size == 0) {
      into += '\\';
      return 0;
    }
    for (std::size_t i = 1; i <= size; ++i) {
      const int digit = i < from.size() ? hex_digit(from[i]) : -1;
      if (digit < 0)
        fail("a string has an escape without all of its digits");
      code = code * 16 + unsigned(digit);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      fail("a string has an escape that is no character");
    core::append_code(into, code);
    return 1 + size;
  }

  void text() {
    const char quote = peek();
    std::size_t end = 1;
    while (at_ + end < source_.size() && peek(end) != quote)
      end += peek(end) == '\\' ? 2 : 1;
    if (at_ + end >= source_.size())
      fail("the string has no end");
    const std::string_view from = rest().substr(1, end - 1);
    std::string content;
    for (std::size_t i = 0; i < from.size();)
      if (from[i] == '\\' && i + 1 < from.size())
        i += 1 + escape(from.substr(i + 1), content);
      else
        content += from[i++];
    add(token_kind::text, std::move(content));
    skip(end + 1);
  }

  void sign(std::string& brackets) {
    static constexpr std::array two{"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view one = "+-/*%~[](){}><=.:|,;";
    std::string_view found;
    for (const std::string_view s : two)
      if (rest().starts_with(s))
        found = s;
    if (found.empty() && one.find(peek()) != one.npos)
      found = rest().substr(0, 1);
    if (found.empty())
      fail("unexpected character in a tag");
    const std::string text(found);
    static constexpr std::string_view open = "([{", close = ")]}";
    if (open.find(text[0]) != open.npos) {
      brackets += close[open.find(text[0])];
    } else if (close.find(text[0]) != close.npos) {
      if (brackets.empty() || brackets.back() != text[0])
        fail("unexpected '" + text + "'");
      brackets.pop_back();
    }
    add(token_kind::sign, text);
    skip(text.size());
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_begins_ = true;
  std::vector<token> out_;
};

} // namespace

std::vector<token> tokens_of(std::string_view source) {
  return lexer(source).run();
}

} // namespace shoal::jinja
