// runtime/core/text_rule.hpp -- what the text of an answer must be, as its client
// wrote it: a JSON schema, a regular expression, a grammar or calls of tools; and which
// tokens may be chosen for it.
//
// It goes from a gateway to the last stage of a pipeline, where tokens are chosen;
// runtime/openai/rules/rule_compiler.hpp makes a grammar of it.
//
// Threads: values.
// Errors:  the codec refuses what exceeds the limits; whether the text can be
//          compiled is for the compiler to say.
#pragma once

#include "runtime/core/fields.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shoal::core {

/// Of the text of a rule. A request whose prompt has serving::tokens_max tokens, of 4
/// bytes each, fits into one message of 2^20 bytes with it.
inline constexpr std::size_t rule_bytes_max = std::size_t{1} << 17;

enum class rule_kind : std::uint8_t {
  json_schema = 1,
  json_object, ///< any one; there is no text
  regex,       ///< of the whole text
  grammar,     ///< GBNF
  calls,       ///< of tools: runtime/openai/rules/call_rule.hpp
};

/// Whether a thought, up to </think>, comes before what the rule is about.
enum class rule_thought : std::uint8_t {
  none = 1,
  may_come, ///< the text may begin with <think>
  begun,    ///< the prompt ends with <think>
};

struct text_rule {
  rule_kind kind = rule_kind::json_object;
  std::vector<std::byte> text;
  rule_thought thought = rule_thought::none;
  friend auto operator<=>(const text_rule&, const text_rule&) = default;
};
void fields(auto& v, of<text_rule> auto& x) {
  v("kind", x.kind, up_to(rule_kind::calls));
  v("text", x.text, bytes_of(rule_bytes_max));
  v("thought", x.thought, up_to(rule_thought::begun));
}

} // namespace shoal::core
