// runtime/openai/rules/call_rule.hpp -- answers that call tools, in the form of the
// model's family (openai/answer_parser.hpp), with arguments that a schema allows.
//
//   must   calls and nothing else; one, or several one behind the other
//   may    any text; where it begins a call, that goes on as a call of one of the tools
//
// Keys come in the order that the families write: the name, then the arguments. In the
// form of llama an answer that begins with "{" is a call.
//
// A token that is a mark and no text, as [TOOL_CALLS] often is, has the bytes of
// mark_bytes() for a grammar: no text that a client describes has these.
//
// Threads: any.
// Errors:  the name of the tool, and what is wrong with its schema.
#pragma once

#include "runtime/core/grammar/expression.hpp"
#include "runtime/core/result.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::openai {

/// Texts around calls and thoughts that are special tokens in some models.
inline constexpr std::array<const char*, 7> special_marks{
  "<think>",        "</think>",     "<tool_call>", "</tool_call>",
  "<|python_tag|>", "[TOOL_CALLS]", "[ARGS]"};

/// What a grammar takes for a special token with this text: no UTF-8.
std::string mark_bytes(std::string_view mark);
/// The mark, as text or as a special token.
core::grammar::expression mark_of(std::string_view mark);

enum class call_form : std::uint8_t {
  hermes = 1,
  llama,
  mistral_list,  ///< [TOOL_CALLS][{...}, ...]
  mistral_named, ///< [TOOL_CALLS]f[ARGS]{...}
};

struct call_rule {
  struct tool {
    std::string name;
    /// Of the arguments; nothing: any object.
    std::optional<std::string> schema;
    friend bool operator==(const tool&, const tool&) = default;
  };
  call_form form = call_form::hermes;
  bool must = false;
  bool many = true; ///< several calls are allowed
  std::vector<tool> tools;
};

/// The text of a core::text_rule of kind `calls`.
std::string text_of(const call_rule& rule);
/// @param text from text_of()
model::result<core::grammar::rule_set> call_rules(std::string_view text);

} // namespace shoal::openai
