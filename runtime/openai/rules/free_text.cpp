// runtime/openai/rules/free_text.cpp -- one rule for each state.
#include "runtime/openai/rules/free_text.hpp"

#include "runtime/openai/rules/call_rule.hpp" // mark_bytes

#include <string>
#include <utility>

namespace shoal::openai {

namespace g = core::grammar;

namespace {

class states {
public:
  states(std::string_view mark, g::rule_id first,
         std::optional<g::rule_id> then)
    : mark_(mark), first_(first), then_(then) {}

  /// What follows when `read` characters of the mark have been read.
  std::vector<g::expression>
  ways(std::size_t read, std::string_view excluded) const {
    std::vector<g::expression> out;
    std::vector<g::code_range> known;
    for (const char c : excluded)
      known.push_back({code(c), code(c)});
    const auto way = [&](char c, std::size_t next) {
      known.push_back({code(c), code(c)});
      out.push_back(
        step(g::characters({{code(c), code(c)}}), next == mark_.size(), next));
    };
    if (excluded.find(mark_[read]) == excluded.npos)
      way(mark_[read], read + 1);
    for (std::size_t c = 0; c != mark_.size(); ++c) {
      if (mark_.find(mark_[c]) != c || mark_[c] == mark_[read]
          || excluded.find(mark_[c]) != excluded.npos)
        continue;
      // The longest part of the mark with which what has been read, and c, ends.
      const std::string all = std::string(mark_.substr(0, read)) + mark_[c];
      std::size_t next = read;
      while (next > 0 && !all.ends_with(mark_.substr(0, next)))
        --next;
      if (next > 0)
        way(mark_[c], next);
    }
    out.push_back(step(g::characters(g::all_but(std::move(known))), false, 0));
    out.push_back(step(g::literal(mark_bytes(mark_)), true, 0));
    return out;
  }

private:
  static char32_t code(char c) { return static_cast<unsigned char>(c); }

  g::expression step(g::expression taken, bool whole, std::size_t next) const {
    std::vector<g::expression> parts{std::move(taken)};
    if (!whole)
      parts.push_back(g::of_rule(first_ + static_cast<g::rule_id>(next)));
    else if (then_)
      parts.push_back(g::of_rule(*then_));
    return g::sequence(std::move(parts));
  }

  std::string_view mark_;
  g::rule_id first_;
  std::optional<g::rule_id> then_;
};

} // namespace

free_text text_up_to(g::rule_set& rules, std::string_view mark,
                     std::optional<g::rule_id> then, bool ends,
                     std::string_view no_start) {
  free_text out;
  out.first = static_cast<g::rule_id>(rules.names.size());
  const states all(mark, out.first, then);
  const auto body = [&](std::size_t read, std::string_view excluded) {
    g::expression e = g::choice(all.ways(read, excluded));
    return ends ? g::optional(std::move(e)) : e;
  };
  for (std::size_t read = 0; read != mark.size(); ++read)
    rules.add("a free text");
  for (std::size_t read = 0; read != mark.size(); ++read)
    rules.bodies[out.first + read] = body(read, {});
  out.start = body(0, no_start);
  return out;
}

} // namespace shoal::openai
