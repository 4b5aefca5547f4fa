// runtime/core/grammar/regex.cpp -- a parser by recursive descent.
#include "runtime/core/grammar/regex.hpp"

#include "runtime/core/grammar/grammar.hpp"
#include "runtime/core/grammar/pattern_reader.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace shoal::core::grammar {

namespace {

using ranges = std::vector<code_range>;

const ranges digits{{U'0', U'9'}};
const ranges word{{U'0', U'9'}, {U'A', U'Z'}, {U'_', U'_'}, {U'a', U'z'}};
const ranges space{{U'\t', U'\r'},   {U' ', U' '},     {0xa0, 0xa0},
                   {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029},
                   {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
                   {0xfeff, 0xfeff}};
const ranges line_ends{{U'\n', U'\n'}, {U'\r', U'\r'}, {0x2028, 0x2029}};

class regex_parser {
public:
  regex_parser(std::string_view text, regex_use use) : in_(text), use_(use) {}

  expression parse() {
    std::vector<expression> branches;
    do
      branches.push_back(take_branch());
    while (in_.take_if(U'|'));
    if (!in_.at_end())
      in_.fail("a ) without its (");
    return choice(std::move(branches));
  }

private:
  expression one_of(ranges of) const {
    return use_ == regex_use::json_string ? in_json_string(std::move(of))
                                          : characters(std::move(of));
  }
  expression anything() const {
    return repetition(one_of({{0, code_point_max}}), 0);
  }

  /// A branch of the whole expression, with ^ and $ at its ends.
  expression take_branch() {
    std::vector<expression> parts;
    const bool from_start = in_.take_if(U'^');
    if (!from_start && use_ == regex_use::json_string)
      parts.push_back(anything());
    parts.push_back(take_sequence(0));
    const bool to_end = in_.take_if(U'$');
    if (!in_.at_end() && in_.peek() != U'|' && in_.peek() != U')')
      in_.fail("$ is understood at the end of a branch only");
    if (!to_end && use_ == regex_use::json_string)
      parts.push_back(anything());
    return sequence(std::move(parts));
  }

  expression take_choice(std::size_t depth) {
    if (depth > expression_depth_max)
      in_.fail("it is nested too deeply");
    std::vector<expression> branches;
    do
      branches.push_back(take_sequence(depth));
    while (in_.take_if(U'|'));
    return choice(std::move(branches));
  }

  expression take_sequence(std::size_t depth) {
    std::vector<expression> parts;
    for (;;) {
      const char32_t c = in_.peek();
      if (in_.at_end() || c == U'|' || c == U')' || c == U'$')
        return sequence(std::move(parts));
      if (c == U'^')
        in_.fail("^ is understood at the start of a branch only");
      if (c == U'*' || c == U'+' || c == U'?')
        in_.fail("there is nothing to repeat");
      expression part = take_part(depth);
      if (const auto times = in_.take_repetition()) {
        part = repetition(std::move(part), times->first, times->second);
        in_.take_if(U'?'); // lazy: the same texts
        if (in_.peek() == U'+')
          in_.fail("possessive repetitions are not understood");
        if (in_.peek() == U'*' || in_.peek() == U'?')
          in_.fail("there is nothing to repeat");
      }
      parts.push_back(std::move(part));
    }
  }

  expression take_part(std::size_t depth) {
    const char32_t c = in_.take();
    if (c == U'(') {
      if (in_.take_if(U'?')) {
        const bool plain = in_.take_if(U':');
        if (!plain) {
          in_.take_if(U'P');
          if (!in_.take_if(U'<') || in_.peek() == U'=' || in_.peek() == U'!')
            in_.fail("of the groups that begin with (? only (?: and (?<name> "
                     "are understood");
          while (in_.take() != U'>') {
          }
        }
      }
      expression inner = take_choice(depth + 1);
      in_.expect(U')', ")");
      return inner;
    }
    if (c == U'.')
      return one_of(all_but(line_ends));
    if (c == U'[')
      return one_of(take_class());
    if (c == U'\\')
      return one_of(take_escape(false));
    return one_of({{c, c}});
  }

  ranges take_class() {
    const bool negated = in_.take_if(U'^');
    ranges out;
    while (!in_.take_if(U']')) {
      ranges first = take_member();
      if (in_.peek() == U'-' && in_.peek(1) != U']' && first.size() == 1
          && first.front().first == first.front().last) {
        in_.take();
        const ranges last = take_member();
        if (last.size() != 1 || last.front().first != last.front().last)
          in_.fail("a range needs a character at its end");
        first.front().last = last.front().first;
        if (first.front().last < first.front().first)
          in_.fail("a range from a later to an earlier character");
      }
      out.insert(out.end(), first.begin(), first.end());
    }
    return negated ? all_but(std::move(out)) : out;
  }

  ranges take_member() {
    const char32_t c = in_.take();
    return c == U'\\' ? take_escape(true) : ranges{{c, c}};
  }

  ranges take_escape(bool in_class) {
    const auto only = [](char32_t c) { return ranges{{c, c}}; };
    switch (const char32_t c = in_.take()) {
    case U'd':
      return digits;
    case U'D':
      return all_but(digits);
    case U'w':
      return word;
    case U'W':
      return all_but(word);
    case U's':
      return space;
    case U'S':
      return all_but(space);
    case U'n':
      return only(U'\n');
    case U'r':
      return only(U'\r');
    case U't':
      return only(U'\t');
    case U'f':
      return only(U'\f');
    case U'v':
      return only(U'\v');
    case U'x':
      return only(in_.take_hex(2));
    case U'u':
      return only(in_.take_hex(4));
    case U'0':
      if (in_.peek() < U'0' || in_.peek() > U'9')
        return only(0);
      break;
    case U'b':
      if (in_class)
        return only(U'\b');
      break;
    default:
      if (c < 0x80 && !(c >= U'0' && c <= U'9')
          && !((c | 0x20) >= U'a' && (c | 0x20) <= U'z'))
        return only(c);
    }
    in_.fail("an escape that is not understood");
  }

  pattern_reader in_;
  regex_use use_;
};

} // namespace

expression in_json_string(ranges of) {
  // The characters that must be escaped: by a letter of their own, or by number.
  static constexpr struct {
    char32_t code, letter;
  } short_escapes[] = {{U'"', U'"'},  {U'\\', U'\\'}, {U'\n', U'n'},
                       {U'\r', U'r'}, {U'\t', U't'},  {U'\b', U'b'},
                       {U'\f', U'f'}};
  const ranges never_plain{{0, 0x1f}, {U'"', U'"'}, {U'\\', U'\\'}};
  const auto has = [&](char32_t c) {
    return std::ranges::any_of(
      of, [&](const code_range& r) { return r.first <= c && c <= r.last; });
  };
  std::vector<expression> ways;
  if (ranges plain = without(of, never_plain); !plain.empty())
    ways.push_back(characters(std::move(plain)));
  ranges letters;
  for (const auto& e : short_escapes)
    if (has(e.code))
      letters.push_back({e.letter, e.letter});
  ranges digits_of[2]; // behind \u000 and \u001
  for (char32_t c = 0; c != 0x20; ++c)
    if (has(c) && std::ranges::none_of(short_escapes, [&](auto& e) {
          return e.code == c;
        })) {
      const char32_t digit =
        static_cast<unsigned char>("0123456789abcdef"[c % 16]);
      digits_of[c / 16].push_back({digit, digit});
    }
  std::vector<expression> escaped;
  if (!letters.empty())
    escaped.push_back(characters(std::move(letters)));
  for (int high = 0; high != 2; ++high)
    if (!digits_of[high].empty())
      escaped.push_back(sequence({literal(high == 0 ? "u000" : "u001"),
                                  characters(std::move(digits_of[high]))}));
  if (!escaped.empty())
    ways.push_back(sequence({literal("\\"), choice(std::move(escaped))}));
  return choice(std::move(ways));
}

model::result<expression> parse_regex(std::string_view pattern, regex_use use) {
  try {
    return regex_parser(pattern, use).parse();
  } catch (const bad_pattern& bad) {
    return model::failure{"character " + std::to_string(bad.at) + ": "
                          + bad.why};
  }
}

} // namespace shoal::core::grammar
