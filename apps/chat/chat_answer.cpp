// apps/chat/chat_answer.cpp -- JSON of events, field by field.
#include "apps/chat/chat_answer.hpp"

#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"

#include <algorithm>
#include <cstdio>

namespace shoal::apps {

using json = nlohmann::ordered_json;

namespace {

constexpr std::string_view stream_end = "[DONE]";
/// Of an answer that is no JSON, such as a proxy's page.
constexpr std::size_t error_bytes_max = 400;

const json* member(const json& object, const char* key) {
  if (!object.is_object())
    return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string text_in(const json& object, const char* key) {
  const json* found = member(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>()
                                                : std::string();
}

std::uint64_t count_in(const json& object, const char* key) {
  const json* found = member(object, key);
  return found != nullptr && found->is_number_unsigned()
           ? found->get<std::uint64_t>()
           : 0;
}

server_error error_of(const json& error) {
  server_error out;
  if (error.is_string())
    out.text = error.get<std::string>();
  else
    out.text = text_in(error, "message");
  // OpenAI's code; others say it only in words.
  out.context_full = text_in(error, "code") == "context_length_exceeded"
                     || out.text.find("context length") != std::string::npos
                     || out.text.find("context size") != std::string::npos;
  out.asks_too_much =
    out.context_full && text_in(error, "param") == "max_tokens";
  out.text = core::shown(out.text, error_bytes_max);
  return out;
}

struct piece {
  const std::string& text;
  bool thought;
};

const runtime::json_table<piece>& piece_table() {
  using p = const piece&;
  static const runtime::json_table<piece> table{
    {"event", "text", "", "`text`", [](p) { return json("text"); }},
    {"text", "text", "", "more of the answer",
     [](p v) { return json(v.text); }},
    {"thought", "true or false", "",
     "whether it belongs to what the model thinks first",
     [](p v) { return json(v.thought); }}};
  return table;
}

struct ended {
  const chat_answer& is;
  const std::string& model;
};

const runtime::json_table<ended>& done_table() {
  using e = const ended&;
  static const runtime::json_table<ended> table{
    {"event", "text", "", "`done`", [](e) { return json("done"); }},
    {"model", "text", "", "that answered", [](e v) { return json(v.model); }},
    {"finish_reason", "text", "",
     "`stop`, `length` or what the server says; empty: it was stopped here",
     [](e v) { return json(v.is.finish()); }},
    {"prompt_tokens", "whole number", "tokens", "of the whole conversation",
     [](e v) { return json(v.is.prompt_tokens()); }},
    {"tokens", "whole number", "tokens", "of the answer, with thoughts",
     [](e v) { return json(v.is.tokens()); }},
    {"first_token_seconds", "number", "s", "until the first token",
     [](e v) { return json(v.is.first_s()); }},
    {"tokens_per_s", "number", "tokens/s",
     "from the first token on; 0 for fewer than 10 tokens, and where all come "
     "within 20 ms",
     [](e v) { return json(v.is.tokens_per_s()); }},
    {"text", "text", "", "all of the answer",
     [](e v) { return json(v.is.text()); }},
    {"thoughts", "text", "", "all of the thoughts",
     [](e v) { return json(v.is.thoughts()); }}};
  return table;
}

} // namespace

std::vector<runtime::event_text> chat_events() {
  return {{"text", "a piece of the answer", runtime::texts_of(piece_table())},
          {"done", "no piece follows", runtime::texts_of(done_table())}};
}

json chat_piece(const std::string& text, bool thought) {
  return runtime::written<piece>(piece_table(), {text, thought});
}

json chat_done(const chat_answer& a, const std::string& model) {
  return runtime::written<ended>(done_table(), {a, model});
}

void chat_answer::put_choice(const json& choice, clock::time_point now,
                             const taker& take) {
  if (const std::string reason = text_in(choice, "finish_reason");
      !reason.empty())
    finish_ = core::shown(reason, error_bytes_max);
  const json* const delta = member(choice, "delta");
  if (delta == nullptr)
    return;
  std::string thought = text_in(*delta, "reasoning_content");
  if (thought.empty())
    thought = text_in(*delta, "reasoning");
  const std::string text = text_in(*delta, "content");
  if (thought.empty() && text.empty())
    return;
  ++pieces_;
  if (!first_)
    first_ = now;
  last_ = now;
  thoughts_ += thought;
  text_ += text;
  if (!thought.empty())
    take(thought, true);
  if (!text.empty())
    take(text, false);
}

bool chat_answer::put(std::string_view data, clock::time_point now,
                      const taker& take) {
  if (data == stream_end) {
    complete_ = true;
    return false;
  }
  const auto event = model::parse_json_object<json>(data, "the event");
  if (!event)
    return true;
  if (const json* error = member(*event, "error");
      error != nullptr && !error->is_null()) {
    error_ = error_of(*error).text;
    return false;
  }
  if (const json* usage = member(*event, "usage")) {
    prompt_tokens_ =
      std::max(prompt_tokens_, count_in(*usage, "prompt_tokens"));
    said_tokens_ =
      std::max(said_tokens_, count_in(*usage, "completion_tokens"));
  }
  if (const json* choices = member(*event, "choices");
      choices != nullptr && choices->is_array() && !choices->empty())
    put_choice(choices->front(), now, take);
  return true;
}

std::uint64_t chat_answer::tokens() const noexcept {
  return said_tokens_ > 0 ? said_tokens_ : pieces_;
}

double chat_answer::first_s() const noexcept {
  return first_ ? std::chrono::duration<double>(*first_ - asked_).count() : 0;
}

/// Answers of fewer tokens have no speed: most of theirs come at once.
static constexpr std::uint64_t timed_tokens_min = 10;
/// Tokens that come within a shorter time have come together.
static constexpr std::chrono::milliseconds timed_min{20};

double chat_answer::tokens_per_s() const noexcept {
  if (!first_ || *last_ - *first_ < timed_min || tokens() < timed_tokens_min)
    return 0;
  return double(tokens() - 1)
         / std::chrono::duration<double>(*last_ - *first_).count();
}

std::string speed_text(const chat_answer& a) {
  std::string out = core::count_text(a.tokens(), "token");
  if (a.tokens_per_s() > 0) {
    char text[48];
    std::snprintf(text, sizeof text, ", %.1f tokens/s", a.tokens_per_s());
    out += text;
  }
  if (a.first_s() > 0)
    out +=
      "; the first after " + core::delay_text(std::uint64_t(a.first_s() * 1e9));
  return out;
}

server_error error_in(std::string_view body) {
  const auto object = model::parse_json_object<json>(body, "the answer");
  if (object) {
    if (const json* error = member(*object, "error"))
      return error_of(*error);
    if (const std::string text = text_in(*object, "message"); !text.empty())
      return error_of(*object);
  }
  return {core::shown(body, error_bytes_max), false, false};
}

} // namespace shoal::apps
