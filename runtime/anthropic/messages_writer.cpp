// runtime/anthropic/messages_writer.cpp -- an answer as blocks, and the events that
// tell of them.
//
//   message_start
//   for each block: content_block_start, content_block_delta ..., content_block_stop
//   message_delta (why it ends, usage), message_stop; or error
//
// One block is open at a time: thoughts, text and calls follow each other. An answer
// that is not a stream is the same, without the events.
#include "runtime/anthropic/error_text.hpp"
#include "runtime/anthropic/messages_request.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_scan.hpp"

#include <utility>

namespace shoal::anthropic {
namespace {

using json = nlohmann::ordered_json;
using openai::completion_choice;
using openai::finish_reason;
using openai::usage;

json to_json(const usage& used) {
  return {{"input_tokens", used.prompt_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", 0},
          {"output_tokens", used.completion_tokens}};
}

/// What a call's arguments say; {} if the model has written no object, or has not
/// come to its end.
json input_of(const std::string& arguments) {
  if (model::nests_too_deep(arguments) || model::has_too_many_keys(arguments))
    return json::object();
  json out = model::parse_json<json>(arguments);
  return out.is_object() ? out : json::object();
}

class messages_writer final : public openai::answer_writer {
public:
  void set_head(openai::completion_head head) override {
    head_ = std::move(head);
  }

  std::string
  whole(std::vector<completion_choice> choices, const usage& used) override {
    streams_ = false;
    take(choices.front());
    return model::json_text(message(used));
  }

  std::string event(const completion_choice& news, const usage& used,
                    const openai::event_id&) override {
    if (!std::exchange(begun_, true))
      tell("message_start", {{"message", message(used)}});
    take(news);
    return std::exchange(out_, {});
  }

  std::string end(const usage& used, const openai::event_id&) override {
    tell("message_delta",
         {{"delta", {{"stop_reason", stop_reason_}, {"stop_sequence", stop_}}},
          {"usage", to_json(used)}});
    tell("message_stop", json::object());
    return std::exchange(out_, {});
  }

  std::string error(const openai::api_error& why) override {
    return openai::sse_named_event("error", anthropic::error_json(why));
  }

private:
  enum class kind { none, thinking, text, call };

  void take(const completion_choice& news) {
    const auto [continued, begun] = openai::calls_of(news);
    for (const openai::tool_call& c : continued)
      add(kind::call, c.arguments);
    add(kind::thinking, news.reasoning);
    add(kind::text, news.text);
    for (const openai::tool_call& c : begun) {
      close();
      call_id_ = c.id;
      call_name_ = c.name;
      open(kind::call);
      add(kind::call, c.arguments);
    }
    if (news.finish == finish_reason::none)
      return;
    close();
    stop_reason_ = news.finish == finish_reason::length       ? "max_tokens"
                   : news.finish == finish_reason::tool_calls ? "tool_use"
                   : news.stopped_by.empty()                  ? "end_turn"
                                                              : "stop_sequence";
    if (stop_reason_ == "stop_sequence")
      stop_ = news.stopped_by;
  }

  void add(kind what, const std::string& text) {
    if (text.empty())
      return;
    open(what);
    text_ += text;
    const char* const type = what == kind::thinking ? "thinking_delta"
                             : what == kind::text   ? "text_delta"
                                                    : "input_json_delta";
    const char* const name = what == kind::thinking ? "thinking"
                             : what == kind::text   ? "text"
                                                    : "partial_json";
    tell("content_block_delta", {{"index", blocks_.size()},
                                 {"delta", {{"type", type}, {name, text}}}});
  }

  void open(kind what) {
    if (open_ == what)
      return;
    close();
    open_ = what;
    tell("content_block_start",
         {{"index", blocks_.size()}, {"content_block", block()}});
  }

  void close() {
    if (open_ == kind::none)
      return;
    tell("content_block_stop", {{"index", blocks_.size()}});
    blocks_.push_back(block());
    open_ = kind::none;
    text_.clear();
  }

  json block() const {
    if (open_ == kind::thinking)
      return {{"type", "thinking"}, {"thinking", text_}, {"signature", ""}};
    if (open_ == kind::text)
      return {{"type", "text"}, {"text", text_}};
    return {{"type", "tool_use"},
            {"id", call_id_},
            {"name", call_name_},
            {"input", input_of(text_)}};
  }

  json message(const usage& used) const {
    return {{"id", "msg_" + head_.id}, {"type", "message"},
            {"role", "assistant"},     {"model", head_.model},
            {"content", blocks_},      {"stop_reason", stop_reason_},
            {"stop_sequence", stop_},  {"usage", to_json(used)}};
  }

  void tell(const char* name, const json& more) {
    if (!streams_)
      return;
    json event{{"type", name}};
    event.update(more);
    out_ += openai::sse_named_event(name, model::json_text(event));
  }

  openai::completion_head head_;
  bool streams_ = true;
  bool begun_ = false;
  std::string out_; ///< events to be sent

  json blocks_ = json::array(); ///< complete
  kind open_ = kind::none;
  std::string text_; ///< of the open block: its arguments, if it is a call
  std::string call_id_, call_name_;
  json stop_reason_, stop_; ///< null: not yet, or none
};

} // namespace

std::unique_ptr<openai::answer_writer> make_writer(const messages_request&) {
  return std::make_unique<messages_writer>();
}

} // namespace shoal::anthropic
