// runtime/openai/responses/responses_writer.cpp -- an answer as items, and the
// events that tell of them.
//
//   response.created, response.in_progress
//   for each item: response.output_item.added
//     reasoning, message: response.content_part.added, the deltas, their end,
//                         response.content_part.done
//     function_call:      response.function_call_arguments.delta, .done
//   response.output_item.done
//   response.completed, response.incomplete or response.failed
//
// One item is open at a time: thoughts, text and calls follow each other. An answer
// that is not a stream is the same, without the events.
#include "runtime/files/json.hpp"
#include "runtime/openai/responses/responses_request.hpp"

#include <string>
#include <utility>

namespace shoal::openai {
namespace {

using json = nlohmann::ordered_json;

class responses_writer final : public answer_writer {
public:
  explicit responses_writer(json repeated) : repeated_(std::move(repeated)) {}

  void set_head(completion_head head) override { head_ = std::move(head); }

  std::string
  whole(std::vector<completion_choice> choices, const usage& used) override {
    streams_ = false;
    take(choices.front());
    return model::json_text(response(status(), &used));
  }

  std::string
  event(const completion_choice& news, const usage&, const event_id&) override {
    if (!std::exchange(begun_, true))
      for (const char* name : {"response.created", "response.in_progress"})
        tell(name, {{"response", response("in_progress", nullptr)}});
    take(news);
    return std::exchange(out_, {});
  }

  std::string end(const usage& used, const event_id&) override {
    tell(std::string("response.") + status(),
         {{"response", response(status(), &used)}});
    return std::exchange(out_, {});
  }

  std::string error(const api_error& why) override {
    json failed = response("failed", nullptr);
    failed["error"] = {{"code", why.status == 429  ? "rate_limit_exceeded"
                                : why.status < 500 ? "invalid_prompt"
                                                   : "server_error"},
                       {"message", why.message}};
    tell("response.failed", {{"response", std::move(failed)}});
    return std::exchange(out_, {});
  }

private:
  enum class kind { none, reasoning, message, call };
  /// Tokens with their alternatives that a stream's last events repeat.
  static constexpr std::size_t kept_max = 4096;
  /// Tokens that may yet be the beginning of a message.
  static constexpr std::size_t held_max = 512;

  const char* status() const { return cut_ ? "incomplete" : "completed"; }

  void take(const completion_choice& news) {
    const auto [continued, begun] = calls_of(news);
    for (const tool_call& c : continued)
      add_arguments(c.arguments);
    if (!news.reasoning.empty()) {
      open(kind::reasoning);
      text_ += news.reasoning;
      tell_part("response.reasoning_text.delta", {{"delta", news.reasoning}});
    }
    hold(news);
    // The token that ends a text has none.
    if (!news.text.empty()
        || (news.finish != finish_reason::none && open_ == kind::message
            && news.calls.empty() && !untold_.empty())) {
      open(kind::message);
      json tokens = std::exchange(untold_, json::array());
      text_ += news.text;
      keep(tokens);
      tell_part("response.output_text.delta",
                {{"delta", news.text}, {"logprobs", std::move(tokens)}});
    }
    if (!news.calls.empty() || !news.reasoning.empty())
      untold_ = json::array(); // they were the tokens of these
    for (const tool_call& c : begun) {
      close("completed");
      call_ = {c.id, c.name};
      open(kind::call);
      add_arguments(c.arguments);
    }
    if (news.finish == finish_reason::none)
      return;
    cut_ = news.finish == finish_reason::length;
    if (open_ == kind::none)
      open(kind::message); // an empty one
    close(status());
  }

  /// To the call that is open.
  void add_arguments(const std::string& more) {
    text_ += more;
    if (!more.empty())
      tell_item("response.function_call_arguments.delta", {{"delta", more}});
  }

  /// Parts of a character, and what may begin a call, wait for the text that they
  /// make. Where a message begins, those before it made none.
  void hold(const completion_choice& news) {
    json own = news.logprobs ? token_list(*news.logprobs) : json::array();
    if (open_ != kind::message) {
      std::size_t least = untold_.size();
      const std::size_t has = bytes_of(own, 0);
      while (least > 0 && has + bytes_of(untold_, least) < news.text.size())
        --least;
      if (!news.text.empty())
        untold_.erase(untold_.begin(), untold_.begin() + std::ptrdiff_t(least));
      else if (untold_.size() > held_max)
        untold_.erase(untold_.begin(),
                      untold_.end() - std::ptrdiff_t(held_max));
    }
    for (json& token : own)
      untold_.push_back(std::move(token));
  }

  static std::size_t bytes_of(const json& tokens, std::size_t first) {
    std::size_t out = 0;
    for (std::size_t i = first; i < tokens.size(); ++i)
      if (const auto bytes = tokens[i].find("bytes");
          bytes != tokens[i].end() && bytes->is_array())
        out += bytes->size();
    return out;
  }

  /// The last events of a stream have all of them again, up to a limit: an event
  /// has one (answer_box.hpp). The deltas have told them.
  void keep(const json& tokens) {
    for (const json& t : tokens)
      kept_ += 1 + t.value("top_logprobs", json::array()).size();
    if (streams_ && kept_ > kept_max)
      logprobs_.clear();
    else
      logprobs_.insert(logprobs_.end(), tokens.begin(), tokens.end());
  }

  // Items. ----------------------------------------------------------------------

  void open(kind what) {
    if (open_ == what)
      return;
    close("completed");
    open_ = what;
    tell("response.output_item.added", {{"output_index", items_.size()},
                                        {"item", item("in_progress", true)}});
    if (what != kind::call)
      tell_part("response.content_part.added", {{"part", part()}});
  }

  void close(const char* how) {
    if (open_ == kind::none)
      return;
    if (open_ == kind::reasoning)
      tell_part("response.reasoning_text.done", {{"text", text_}});
    else if (open_ == kind::message)
      tell_part("response.output_text.done",
                {{"text", text_}, {"logprobs", logprobs_}});
    else
      tell_item("response.function_call_arguments.done",
                {{"name", call_.name}, {"arguments", text_}});
    if (open_ != kind::call)
      tell_part("response.content_part.done", {{"part", part()}});
    json done = item(how, false);
    tell("response.output_item.done",
         {{"output_index", items_.size()}, {"item", done}});
    items_.push_back(std::move(done));
    open_ = kind::none;
    text_.clear();
    logprobs_ = json::array();
  }

  std::string item_id() const {
    const char* const before = open_ == kind::reasoning ? "rs_"
                               : open_ == kind::message ? "msg_"
                                                        : "fc_";
    return before + head_.id + "_" + std::to_string(items_.size());
  }

  json part() const {
    if (open_ == kind::reasoning)
      return {{"type", "reasoning_text"}, {"text", text_}};
    return {{"type", "output_text"},
            {"annotations", json::array()},
            {"logprobs", logprobs_},
            {"text", text_}};
  }

  json item(const char* how, bool empty) const {
    json out{{"id", item_id()}, {"type", "reasoning"}, {"status", how}};
    const json content = empty ? json::array() : json::array({part()});
    switch (open_) {
    case kind::reasoning:
      out["summary"] = json::array();
      out["content"] = content;
      break;
    case kind::message:
      out["type"] = "message";
      out["role"] = "assistant";
      out["content"] = content;
      break;
    default:
      out["type"] = "function_call";
      out["call_id"] = call_.id;
      out["name"] = call_.name;
      out["arguments"] = text_;
    }
    return out;
  }

  // Events. ---------------------------------------------------------------------

  void tell(const std::string& name, const json& more) {
    if (!streams_)
      return;
    json event{{"type", name}, {"sequence_number", sequence_++}};
    event.update(more);
    out_ += sse_named_event(name, model::json_text(event));
  }
  /// Of the open item.
  void tell_item(const char* name, const json& more) {
    if (!streams_)
      return;
    json all{{"item_id", item_id()}, {"output_index", items_.size()}};
    all.update(more);
    tell(name, all);
  }
  void tell_part(const char* name, const json& more) {
    if (!streams_)
      return;
    json all{{"content_index", 0}};
    all.update(more);
    tell_item(name, all);
  }

  // The response. ---------------------------------------------------------------

  json repeated(const char* name, json otherwise) const {
    const auto found = repeated_.find(name);
    return found == repeated_.end() ? std::move(otherwise) : *found;
  }

  json response(const char* how, const usage* used) const {
    json out{{"id", "resp_" + head_.id},
             {"object", "response"},
             {"created_at", head_.created},
             {"status", how},
             {"background", false},
             {"error", nullptr},
             {"incomplete_details", nullptr},
             {"instructions", repeated("instructions", nullptr)},
             {"max_output_tokens", repeated("max_output_tokens", nullptr)},
             {"model", head_.model},
             {"output", items_},
             {"parallel_tool_calls", repeated("parallel_tool_calls", true)},
             {"previous_response_id", nullptr},
             {"reasoning", repeated("reasoning", {{"effort", nullptr},
                                                  {"summary", nullptr}})},
             {"store", false},
             {"temperature", repeated("temperature", nullptr)},
             {"text", repeated("text", {{"format", {{"type", "text"}}}})},
             {"tool_choice", repeated("tool_choice", "auto")},
             {"tools", repeated("tools", json::array())},
             {"top_logprobs", repeated("top_logprobs", 0)},
             {"top_p", repeated("top_p", nullptr)},
             {"truncation", "disabled"},
             {"usage", nullptr},
             {"metadata", repeated("metadata", json::object())}};
    if (cut_ && used)
      out["incomplete_details"] = {{"reason", "max_output_tokens"}};
    if (head_.step)
      out["system_fingerprint"] = fingerprint_of(head_);
    if (used)
      out["usage"] = {
        {"input_tokens", used->prompt_tokens},
        {"input_tokens_details",
         {{"cached_tokens", used->cached_tokens.value_or(0)}}},
        {"output_tokens", used->completion_tokens},
        {"output_tokens_details",
         {{"reasoning_tokens", used->reasoning_tokens}}},
        {"total_tokens", used->prompt_tokens + used->completion_tokens}};
    return out;
  }

  struct call {
    std::string id, name;
  };

  json repeated_;
  completion_head head_;
  bool streams_ = true;
  bool begun_ = false;
  bool cut_ = false; ///< by max_output_tokens
  std::uint64_t sequence_ = 0;
  std::string out_; ///< events to be sent

  json items_ = json::array(); ///< complete
  kind open_ = kind::none;
  std::string text_; ///< of the open item: its arguments, if it is a call
  std::size_t kept_ = 0;
  json untold_ = json::array();   ///< tokens of the message, for its next delta
  json logprobs_ = json::array(); ///< of the open message
  call call_;
};

} // namespace

std::unique_ptr<answer_writer> make_writer(const responses_request& asked) {
  return std::make_unique<responses_writer>(asked.repeated);
}

} // namespace shoal::openai
