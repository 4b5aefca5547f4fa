// runtime/openai/completion_response.cpp -- objects in the API's order of
// fields.
#include "runtime/openai/completion_response.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>

namespace shoal::openai {
namespace {

using json = nlohmann::ordered_json;

/// JSON has no -infinity; OpenAI's and vLLM's servers say this for it.
constexpr float logprob_min = -9999.0f;

/// The double that prints with the float's few digits: -0.1, not
/// -0.10000000149011612.
json number(float value) {
  if (!(value > logprob_min)) // also if it is no number
    value = logprob_min;
  char text[32];
  const auto printed = std::to_chars(std::begin(text), std::end(text), value);
  double read = value;
  std::from_chars(text, printed.ptr, read);
  return read;
}

json to_json(const logprobs& l) {
  SHOAL_ASSERT(l.token_logprobs.size() == l.tokens.size()
               && l.top_logprobs.size() == l.tokens.size()
               && l.text_offset.size() == l.tokens.size());
  json probabilities = json::array();
  for (const auto& p : l.token_logprobs)
    probabilities.push_back(p ? number(*p) : json(nullptr));
  json tops = json::array();
  for (const auto& top : l.top_logprobs) {
    json entry = top ? json::object() : json(nullptr);
    if (top)
      for (const auto& [token, p] : *top)
        if (const std::string name = name_of(token);
            !entry.contains(name)) // two ids of one text: the likelier one
          entry[name] = number(p);
    tops.push_back(std::move(entry));
  }
  json names = json::array();
  for (const listed_token& token : l.tokens)
    names.push_back(name_of(token));
  return {{"tokens", std::move(names)},
          {"token_logprobs", std::move(probabilities)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", l.text_offset}};
}

json to_json(finish_reason reason) {
  switch (reason) {
  case finish_reason::none:
    break;
  case finish_reason::stop:
    return "stop";
  case finish_reason::length:
    return "length";
  case finish_reason::tool_calls:
    return "tool_calls";
  }
  return nullptr;
}

json to_json(const std::vector<completion_choice>& choices) {
  json list = json::array();
  for (const completion_choice& c : choices) {
    json& told = list.emplace_back(
      json{{"index", c.index},
           {"text", c.text},
           {"logprobs", c.logprobs ? to_json(*c.logprobs) : json(nullptr)},
           {"finish_reason", to_json(c.finish)}});
    if (c.prompt_token_ids)
      told["prompt_token_ids"] = *c.prompt_token_ids;
    if (c.token_ids)
      told["token_ids"] = *c.token_ids;
  }
  return list;
}

json to_json(const tool_call& c, bool chunk) {
  json function = json::object();
  if (!c.name.empty())
    function["name"] = c.name;
  function["arguments"] = c.arguments;
  json out = json::object();
  if (chunk)
    out["index"] = c.index;
  if (!c.id.empty())
    out["id"] = c.id;
  if (!c.name.empty())
    out["type"] = "function";
  out["function"] = std::move(function);
  return out;
}

/// Reasoning goes by both of its names: vLLM's and DeepSeek's.
json to_message(const completion_choice& c, bool chunk) {
  json out = json::object();
  if (!chunk || c.begins)
    out["role"] = "assistant";
  if (!chunk)
    out["content"] =
      c.text.empty() && !c.calls.empty() ? json(nullptr) : json(c.text);
  else if (!c.text.empty() || c.begins)
    out["content"] = c.text;
  if (!c.reasoning.empty()) {
    out["reasoning_content"] = c.reasoning;
    out["reasoning"] = c.reasoning;
  }
  for (const tool_call& call : c.calls)
    out["tool_calls"].push_back(to_json(call, chunk));
  if (!chunk)
    out["refusal"] = nullptr;
  return out;
}

json to_chat_json(const std::vector<completion_choice>& choices, bool chunk) {
  json list = json::array();
  for (const completion_choice& c : choices) {
    json one{{"index", c.index}};
    one[chunk ? "delta" : "message"] = to_message(c, chunk);
    one["logprobs"] = nullptr;
    if (c.logprobs)
      one["logprobs"] = {{"content", token_list(*c.logprobs)},
                         {"refusal", nullptr}};
    one["finish_reason"] = to_json(c.finish);
    if (c.token_ids)
      one["token_ids"] = *c.token_ids;
    list.push_back(std::move(one));
  }
  return list;
}

json to_json(const usage& u) {
  json object{{"prompt_tokens", u.prompt_tokens},
              {"completion_tokens", u.completion_tokens},
              {"total_tokens", u.prompt_tokens + u.completion_tokens}};
  if (u.cached_tokens)
    object["prompt_tokens_details"] = {{"cached_tokens", *u.cached_tokens}};
  if (u.reasoning_tokens > 0)
    object["completion_tokens_details"] = {
      {"reasoning_tokens", u.reasoning_tokens}};
  return object;
}

json completion(const completion_head& head,
                const std::vector<completion_choice>& all, bool chunk) {
  json choices = head.chat ? to_chat_json(all, chunk) : to_json(all);
  json object{{"id", head.id},
              {"object", !head.chat ? "text_completion"
                         : chunk    ? "chat.completion.chunk"
                                    : "chat.completion"},
              {"created", head.created},
              {"model", head.model}};
  if (head.step)
    object["system_fingerprint"] = fingerprint_of(head);
  object["choices"] = std::move(choices);
  // A chat has one prompt, and tells it here, as vLLM's server does.
  if (head.chat && !all.empty() && all.front().prompt_token_ids)
    object["prompt_token_ids"] = *all.front().prompt_token_ids;
  return object;
}

json to_json(const model_card& m) {
  json object{{"id", m.id},
              {"object", "model"},
              {"created", m.created},
              {"owned_by", m.owned_by}};
  if (m.max_model_len)
    object["max_model_len"] = *m.max_model_len;
  if (m.step)
    object["step"] = *m.step;
  if (m.ready)
    object["ready"] = *m.ready;
  return object;
}

} // namespace

calls_of_chunk calls_of(const completion_choice& chunk) {
  const std::span all = chunk.calls;
  const auto begun = std::ranges::find_if(
    all, [](const tool_call& c) { return !c.name.empty(); });
  const auto continued = std::size_t(begun - all.begin());
  return {all.first(continued), all.subspan(continued)};
}

json token_list(const logprobs& l) {
  const auto entry = [](const listed_token& token, std::optional<float> p) {
    json out{{"token", name_of(token)},
             {"logprob", number(p.value_or(logprob_min))},
             {"bytes", nullptr}};
    if (!token.bytes.empty())
      out["bytes"] =
        std::vector<std::uint8_t>(token.bytes.begin(), token.bytes.end());
    return out;
  };
  json content = json::array();
  for (std::size_t i = 0; i < l.tokens.size(); ++i) {
    json one = entry(l.tokens[i], l.token_logprobs[i]);
    one["top_logprobs"] = json::array();
    if (l.top_logprobs[i])
      for (const auto& [token, p] : *l.top_logprobs[i])
        one["top_logprobs"].push_back(entry(token, p));
    content.push_back(std::move(one));
  }
  return content;
}

std::string completion_json(const completion_head& head,
                            const std::vector<completion_choice>& choices,
                            const usage& used) {
  json object = completion(head, choices, false);
  object["usage"] = to_json(used);
  return model::json_text(object);
}

std::string chunk_json(const completion_head& head,
                       const std::vector<completion_choice>& choices,
                       bool with_usage, const usage* so_far) {
  json object = completion(head, choices, true);
  if (with_usage)
    object["usage"] = so_far ? to_json(*so_far) : json(nullptr);
  return model::json_text(object);
}

std::string usage_chunk_json(const completion_head& head, const usage& used) {
  json object = completion(head, {}, true);
  object["usage"] = to_json(used);
  return model::json_text(object);
}

std::string sse_event(std::string_view json, const event_id& id) {
  return "id: " + to_text(id) + "\n" + sse_event(json);
}

std::string sse_event(std::string_view json) {
  SHOAL_ASSERT(json.find_first_of("\r\n") == json.npos);
  return "data: " + std::string(json) + "\n\n";
}

std::string sse_named_event(std::string_view name, std::string_view json) {
  return "event: " + std::string(name) + "\n" + sse_event(json);
}

std::string fingerprint_of(const completion_head& head) {
  return "step-" + std::to_string(head.step.value());
}

std::string to_text(const event_id& id) {
  std::string out = std::to_string(id.number);
  if (id.step)
    out += "@" + std::to_string(*id.step);
  return out;
}

std::optional<event_id> parse_event_id(std::string_view text) {
  const char* at = text.data();
  const char* const last = at + text.size();
  const auto read = [&](std::uint64_t& to) {
    const auto [end, error] = std::from_chars(at, last, to);
    at = end;
    return error == std::errc();
  };
  event_id out;
  if (!read(out.number))
    return std::nullopt;
  if (at != last && (*at++ != '@' || !read(out.step.emplace())))
    return std::nullopt;
  return at == last ? std::optional(out) : std::nullopt;
}

std::string token_text(std::string_view bytes) {
  if (core::is_utf8(bytes))
    return std::string(bytes);
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "\\x";
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string name_of(const listed_token& token) {
  return token.bytes.empty() ? "token_id:" + std::to_string(token.id)
                             : token_text(token.bytes);
}

std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) {
    const core::character c = core::first_character(text);
    text.remove_prefix(c.is == core::character::kind::whole ? c.bytes : 1);
  }
  return count;
}

std::string models_json(const std::vector<model_card>& models) {
  json list = json::array();
  for (const model_card& m : models)
    list.push_back(to_json(m));
  return model::json_text(json{{"object", "list"}, {"data", std::move(list)}});
}

std::string model_json(const model_card& model) {
  return model::json_text(to_json(model));
}

} // namespace shoal::openai
