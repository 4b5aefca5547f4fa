// apps/chat/chat_answer.hpp -- the events of a stream of
// /v1/chat/completions, as an answer.
//
// The events are foreign: what has another form than it should is left out. The
// counts of tokens are the server's, or, if it does not say, those of the events
// that had text.
//
// Threads: one. Time: an argument.
#pragma once

#include "runtime/jobs/event_json.hpp" // event_text

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

class chat_answer {
public:
  using clock = std::chrono::steady_clock;
  /// Takes a piece of text, of the model's thoughts or of its answer.
  using taker = std::function<void(const std::string& text, bool thought)>;

  explicit chat_answer(clock::time_point asked) : asked_(asked) {}

  /// Takes the data of an event. @returns false if the stream is complete
  bool put(std::string_view data, clock::time_point now, const taker& take);

  const std::string& text() const noexcept { return text_; }
  const std::string& thoughts() const noexcept { return thoughts_; }
  /// "stop", "length" or what the server says; empty: it has not said.
  const std::string& finish() const noexcept { return finish_; }
  /// What went wrong while it was made; empty: nothing.
  const std::string& error() const noexcept { return error_; }
  bool complete() const noexcept { return complete_; }
  std::uint64_t prompt_tokens() const noexcept { return prompt_tokens_; }
  std::uint64_t tokens() const noexcept;
  double first_s() const noexcept; ///< to the first token; 0: none came
  /// From the first token on; 0: there are too few to tell.
  double tokens_per_s() const noexcept;

private:
  void put_choice(const nlohmann::ordered_json& choice, clock::time_point now,
                  const taker& take);

  clock::time_point asked_;
  std::optional<clock::time_point> first_, last_;
  std::string text_, thoughts_, finish_, error_;
  std::uint64_t prompt_tokens_ = 0, said_tokens_ = 0, pieces_ = 0;
  bool complete_ = false;
};

/// "12 tokens, 34.5 tokens/s; the first after 120 ms"
[[nodiscard]] std::string speed_text(const chat_answer& a);

/// Why an error or an error's answer came: the server's words in its JSON, or
/// the beginning of what it is.
struct server_error {
  std::string text;
  bool context_full = false;  ///< the conversation is too long for the model
  bool asks_too_much = false; ///< or only with the answer's max_tokens
};
[[nodiscard]] server_error error_in(std::string_view body);

/// Events of `shoal chat --json`, by field.
std::vector<runtime::event_text> chat_events();
[[nodiscard]] nlohmann::ordered_json
chat_piece(const std::string& text, bool thought);
[[nodiscard]] nlohmann::ordered_json
chat_done(const chat_answer& a, const std::string& model);

} // namespace shoal::apps
