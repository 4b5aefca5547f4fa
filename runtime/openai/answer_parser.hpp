// runtime/openai/answer_parser.hpp -- a model's text cut into thoughts, content and
// calls of tools, while it comes.
//
// Formats of calls, as models of these families write them:
//
//   hermes   <tool_call>{"name": "f", "arguments": {...}}</tool_call>  (qwen, too)
//   llama    {"name": "f", "parameters": {...}}   the whole answer, or behind
//            <|python_tag|>; more of them behind ';'
//   mistral  [TOOL_CALLS][{"name": "f", "arguments": {...}}, ...]
//            or [TOOL_CALLS]f{...} or [TOOL_CALLS]f[ARGS]{...}, one or more
//
// Thoughts are what stands between <think> and </think>, at the beginning alone.
// Arguments are passed on as the model writes them, piece by piece. What looks like
// a call but is none stays content.
//
// The result does not depend on how the text is cut into pieces, but for where
// pieces end.
//
// Threads: one. Cost: linear in the text.
#pragma once

#include "runtime/openai/completion_response.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::openai {

enum class call_format : std::uint8_t { none, hermes, llama, mistral };

struct answer_format {
  call_format calls = call_format::none;
  bool args_mark = false;       ///< mistral's calls are written as f[ARGS]{...}
  bool thinks = false;          ///< <think> may begin the answer
  bool begins_thinking = false; ///< the prompt ends within a thought
};

/// Bytes before the arguments of a call; what is longer is no call.
inline constexpr std::size_t call_head_bytes_max = 4096;

class answer_parser {
public:
  /// What is new.
  struct piece {
    std::string reasoning, content;
    std::vector<tool_call> calls;
    bool empty() const {
      return reasoning.empty() && content.empty() && calls.empty();
    }
  };

  /// @param seed  by which ids of calls are made: the same gives the same
  answer_parser(answer_format format, std::uint64_t seed);

  piece push(std::string_view text);
  /// The text has ended.
  piece finish();
  /// Whether there was a call.
  bool called() const noexcept { return calls_ > 0; }
  /// Whether a call is complete, with the mark that closes it, or another one begins:
  /// what follows is none of the first call's.
  bool first_call_over() const noexcept;
  /// Whether the text so far ends within a thought.
  bool thinking() const noexcept { return state_ == state::thinking; }

private:
  enum class state {
    begin,     ///< nothing but white space yet
    thinking,  ///< until </think>
    content,   ///< until a call
    head,      ///< of a call: up to its arguments
    arguments, ///< until their braces close
    behind,    ///< of a call: until it ends
  };

  /// Each takes of text_ what it can. @returns whether there is more to do
  bool step(bool last);
  bool begin(bool last);
  bool think(bool last);
  bool read_content(bool last);
  bool read_head(bool last);
  bool read_arguments();
  std::size_t to_closing_brace(bool& found);
  bool end_call(bool last);

  void tell_content(std::string text);
  void no_call();
  void begin_call(std::string name);
  std::string id_of(std::size_t call) const;
  std::string take(std::size_t bytes);
  std::string_view marker() const;

  answer_format format_;
  std::uint64_t seed_;
  state state_ = state::begin;
  std::string text_;  ///< not yet told
  std::string taken_; ///< of a call's head, in case it is none
  piece out_;
  std::size_t calls_ = 0;
  std::size_t depth_ = 0;   ///< of braces in arguments
  bool quoted_ = false;     ///< within a string there
  bool escaped_ = false;    ///< behind a backslash there
  bool in_list_ = false;    ///< mistral's list of calls
  bool in_call_ = false;    ///< the object around the arguments is open
  std::string held_spaces_; ///< at the end of thoughts or of content
  bool told_thought_ = false;
};

} // namespace shoal::openai
