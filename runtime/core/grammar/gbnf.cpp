// runtime/core/grammar/gbnf.cpp -- a parser by recursive descent.
#include "runtime/core/grammar/gbnf.hpp"

#include "runtime/core/grammar/grammar.hpp"
#include "runtime/core/grammar/pattern_reader.hpp"
#include "runtime/core/text/utf8.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace shoal::core::grammar {

namespace {

bool is_name(char32_t c) {
  return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z')
         || (c >= U'0' && c <= U'9') || c == U'-' || c == U'_';
}

class gbnf_parser {
public:
  explicit gbnf_parser(std::string_view text) : in_(text) { rule_of("root"); }

  rule_set parse() {
    for (skip(true); !in_.at_end(); skip(true)) {
      const std::size_t begin = in_.at();
      const std::string name = take_name();
      skip(false);
      if (!in_.take_if("::="))
        in_.fail("expected ::= after the name of a rule");
      skip(true);
      const rule_id rule = rule_of(name);
      if (defined_[rule]) {
        in_.go_back_to(begin);
        in_.fail("rule " + name + " is here a second time");
      }
      defined_[rule] = true;
      expression body = take_choice(0);
      out_.bodies[rule] = std::move(body);
      if (!in_.at_end() && !in_.take_if(U'\n') && !in_.take_if("\r\n"))
        in_.fail("expected the end of the line");
    }
    for (rule_id r = 0; r != defined_.size(); ++r)
      if (!defined_[r]) {
        in_.go_back_to(first_use_[r]);
        in_.fail("there is no rule " + out_.names[r]);
      }
    return std::move(out_);
  }

  std::string place(std::size_t at) const {
    return "line " + std::to_string(in_.line_of(at));
  }

private:
  rule_id rule_of(const std::string& name) {
    const auto [at, added] =
      rules_.try_emplace(name, static_cast<rule_id>(out_.names.size()));
    if (added) {
      out_.add(name);
      defined_.push_back(false);
      first_use_.push_back(in_.at());
    }
    return at->second;
  }

  std::string take_name() {
    std::string name;
    while (is_name(in_.peek()))
      append_code(name, in_.take());
    if (name.empty())
      in_.fail("expected the name of a rule");
    return name;
  }

  /// Spaces and comments; line ends, too, if they mean nothing.
  void skip(bool lines) {
    for (;;) {
      const char32_t c = in_.peek();
      if (c == U'#') {
        while (!in_.at_end() && in_.peek() != U'\n')
          in_.take();
      } else if (c == U' ' || c == U'\t'
                 || (lines && (c == U'\n' || c == U'\r'))) {
        in_.take();
      } else {
        return;
      }
    }
  }

  /// Whether a branch follows: on this line, or first on the next.
  bool take_bar(bool inside) {
    skip(inside);
    const std::size_t begin = in_.at();
    skip(true);
    if (in_.take_if(U'|')) {
      skip(true);
      return true;
    }
    in_.go_back_to(begin);
    return false;
  }

  expression take_choice(std::size_t depth) {
    if (depth > expression_depth_max)
      in_.fail("it is nested too deeply");
    std::vector<expression> branches{take_sequence(depth)};
    while (take_bar(depth != 0))
      branches.push_back(take_sequence(depth));
    return branches.size() == 1 ? std::move(branches.front())
                                : choice(std::move(branches));
  }

  expression take_sequence(std::size_t depth) {
    std::vector<expression> parts;
    for (;;) {
      skip(depth != 0);
      const char32_t c = in_.peek();
      if (c == U'"')
        parts.push_back(take_text());
      else if (c == U'[')
        parts.push_back(take_set());
      else if (c == U'.')
        in_.take(), parts.push_back(characters({{0, code_point_max}}));
      else if (c == U'(')
        parts.push_back(take_group(depth));
      else if (is_name(c))
        parts.push_back(of_rule(rule_of(take_name())));
      else
        return sequence(std::move(parts));
      skip(depth != 0);
      while (const auto times = in_.take_repetition()) {
        parts.back() =
          repetition(std::move(parts.back()), times->first, times->second);
        skip(depth != 0);
        if (++repeated_ > expression_depth_max)
          in_.fail("it is nested too deeply");
      }
      repeated_ = 0;
    }
  }

  expression take_group(std::size_t depth) {
    in_.take();
    expression inner = take_choice(depth + 1);
    skip(true);
    in_.expect(U')', ")");
    return inner;
  }

  expression take_text() {
    in_.take();
    std::string text;
    while (!in_.take_if(U'"')) {
      if (in_.peek() == U'\n')
        in_.fail("a text without its end");
      append_code(text, take_character());
    }
    return literal(std::move(text));
  }

  expression take_set() {
    in_.take();
    const bool negated = in_.take_if(U'^');
    std::vector<code_range> ranges;
    while (!in_.take_if(U']')) {
      const char32_t first = take_character();
      char32_t last = first;
      if (in_.peek() == U'-' && in_.peek(1) != U']') {
        in_.take();
        last = take_character();
      }
      if (last < first)
        in_.fail("a range from a later to an earlier character");
      ranges.push_back({first, last});
    }
    return characters(negated ? all_but(std::move(ranges)) : std::move(ranges));
  }

  char32_t take_character() {
    const char32_t c = in_.take();
    if (c != U'\\')
      return c;
    switch (const char32_t escaped = in_.take()) {
    case U'n':
      return U'\n';
    case U'r':
      return U'\r';
    case U't':
      return U'\t';
    case U'x':
      return in_.take_hex(2);
    case U'u':
      return in_.take_hex(4);
    case U'U':
      return in_.take_hex(8);
    case U'\\':
    case U'"':
    case U'[':
    case U']':
    case U'-':
    case U'^':
      return escaped;
    default:
      in_.fail("an unknown escape");
    }
  }

  pattern_reader in_;
  rule_set out_;
  std::map<std::string, rule_id> rules_;
  std::vector<bool> defined_;
  std::vector<std::size_t> first_use_;
  std::size_t repeated_ = 0; ///< repetition signs in a row
};

} // namespace

model::result<rule_set> parse_gbnf(std::string_view text) {
  std::optional<gbnf_parser> parser;
  try {
    parser.emplace(text);
    return parser->parse();
  } catch (const bad_pattern& bad) {
    return model::failure{(parser ? parser->place(bad.at) + ": " : "")
                          + bad.why};
  }
}

} // namespace shoal::core::grammar
