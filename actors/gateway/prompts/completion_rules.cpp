// actors/gateway/prompts/completion_rules.cpp -- tokens, sampling, what comes again.
#include "actors/gateway/prompts/completion_rules.hpp"

#include "runtime/core/text/amounts.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/model/stage_model.hpp" // valid_ids
#include "runtime/openai/completion_response.hpp"
#include "runtime/openai/rules/call_rule.hpp"
#include "runtime/openai/rules/rule_compiler.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

namespace shoal::actors {

using openai::api_error;
using openai::invalid_request;

std::optional<api_error>
too_long(std::size_t prompt_tokens, const openai::generation_options& asked,
         const prompt_model& model, const char* prompt_field) {
  const std::uint64_t all =
    prompt_tokens + (asked.max_tokens_given ? asked.max_tokens : 1);
  const std::uint64_t context = model.config.context;
  if (all <= context)
    return std::nullopt;
  const char* const field =
    prompt_tokens >= context ? prompt_field : "max_tokens";
  return invalid_request(
    std::string(field) + ": the prompt has "
      + core::count_text(prompt_tokens, "token")
      + (asked.max_tokens_given && asked.max_tokens > 0
           ? ", and max_tokens is " + std::to_string(asked.max_tokens)
           : std::string())
      + "; the model's context has " + std::to_string(context),
    field, "context_length_exceeded");
}

namespace {

/// Of a context, the part that the answer to a prompt that was cut has at least, if the
/// request says nothing of its length.
constexpr std::uint64_t prompt_parts = 4;

/// Leaves of a prompt its last tokens, if the request says how many.
/// @param answer tokens for which "what fits" leaves room
/// @returns whether it was longer
bool truncate(std::vector<core::token_id>& ids,
              const openai::generation_options& asked, std::uint64_t answer,
              const prompt_model& model) {
  const std::uint64_t context = model.config.context;
  const std::uint64_t room = context > answer ? context - answer : 1;
  const std::uint64_t kept = asked.prompt_tokens_kept < 0
                               ? room
                               : std::uint64_t(asked.prompt_tokens_kept);
  if (kept == 0 || ids.size() <= kept)
    return false;
  ids.erase(ids.begin(), ids.end() - std::ptrdiff_t(kept));
  return true;
}

} // namespace

std::variant<std::vector<completion_prompt>, api_error>
prompts_of(openai::completion_request& asked, const prompt_model& model,
           bool add_special) {
  using token_ids = std::vector<openai::token_id>;
  std::vector<completion_prompt> out;
  for (const openai::prompt& p : asked.prompts) {
    completion_prompt& to = out.emplace_back();
    if (const auto* ids = std::get_if<token_ids>(&p)) {
      to.ids = *ids;
      if (!model::valid_ids(model.config.model, to.ids))
        return invalid_request(
          "prompt: has an id that is not below "
            + std::to_string(model.config.model.vocab_size),
          "prompt");
    } else if (!model.text->tokenizer) {
      return invalid_request(
        "prompt: must be token ids, since the model has no text: "
          + model.text->no_text,
        "prompt");
    } else {
      to.text = std::get<std::string>(p);
      auto ids = model::text_encoder(*model.text->tokenizer)
                   .encode(to.text, add_special);
      if (!ids)
        return invalid_request("prompt: " + ids.message(), "prompt");
      to.ids = *std::move(ids);
    }
    if (to.ids.empty())
      return invalid_request("prompt: has no tokens", "prompt");
    const bool cut = truncate(to.ids, asked, asked.max_tokens, model);
    if (asked.echo && (cut || std::holds_alternative<token_ids>(p))) {
      model::text_decoder text(model.text->tokenizer.get());
      to.text.clear();
      for (const auto id : to.ids)
        to.text += text.push(id);
    }
    if (asked.echo && asked.logprobs
        && to.ids.size() > core::serving::scored_max)
      return invalid_request("echo: with logprobs, a prompt may have "
                               + std::to_string(core::serving::scored_max)
                               + " tokens; it has "
                               + std::to_string(to.ids.size()),
                             "echo");
    if (auto wrong = too_long(to.ids.size(), asked, model, "prompt"))
      return *std::move(wrong);
  }
  if (!asked.max_tokens_given)
    for (const completion_prompt& p : out)
      asked.max_tokens = std::uint32_t(std::min<std::uint64_t>(
        asked.max_tokens, model.config.context - p.ids.size()));
  return out;
}

std::variant<jinja::marked_text, api_error>
rendered(openai::conversation asked, const prompt_model& model,
         const std::tm& now) {
  const model_text& text = *model.text;
  if (!text.tokenizer)
    return invalid_request("messages: the model has no text: " + text.no_text,
                           "messages");
  if (!text.chat)
    return invalid_request("messages: " + text.no_chat
                             + "; use /v1/completions",
                           "messages", "no_chat_template");
  jinja::text_template::fault why;
  auto out =
    text.chat->render({.messages = std::move(asked.messages),
                       .tools = std::move(asked.tools),
                       .documents = std::move(asked.documents),
                       .variables = std::move(asked.variables),
                       .add_generation_prompt = asked.add_generation_prompt,
                       .continue_final_message = asked.continue_final_message,
                       .now = now},
                      why);
  if (out)
    return *std::move(out);
  return invalid_request((why.by_template
                            ? "messages: refused by the model's chat template: "
                            : "messages: the model's chat template fails: ")
                           + why.message,
                         "messages", "template_error");
}

namespace {

std::variant<std::vector<core::token_id>, api_error>
tokens_of(const jinja::marked_text& text, const prompt_model& model) {
  auto ids = model::text_encoder(*model.text->tokenizer)
               .encode(text.bytes, false, text.foreign);
  if (!ids)
    return invalid_request("messages: " + ids.message(), "messages");
  return *std::move(ids);
}

/// By what the model's template itself writes of earlier calls and thoughts.
openai::answer_format format_of(const model::chat_template& chat, bool tools,
                                std::string_view prompt) {
  using openai::call_format;
  openai::answer_format out;
  out.thinks = chat.mentions("</think>");
  const std::size_t end = prompt.find_last_not_of(" \n") + 1;
  out.begins_thinking =
    out.thinks && prompt.substr(0, end).ends_with("<think>");
  if (!tools)
    return out;
  out.args_mark = chat.mentions("[ARGS]");
  if (chat.mentions("[TOOL_CALLS]"))
    out.calls = call_format::mistral;
  else if (chat.mentions("<tool_call>"))
    out.calls = call_format::hermes;
  else if (chat.mentions("\"parameters\"") || chat.mentions("<|python_tag|>"))
    out.calls = call_format::llama;
  return out;
}

} // namespace

std::variant<std::vector<core::token_id>, api_error>
tokens_of(openai::conversation asked, const prompt_model& model,
          const std::tm& now) {
  auto text = rendered(std::move(asked), model, now);
  if (auto* wrong = std::get_if<api_error>(&text))
    return std::move(*wrong);
  return tokens_of(std::get<jinja::marked_text>(text), model);
}

std::variant<chat_prompt, api_error>
prompt_of(openai::chat_request& asked, const prompt_model& model,
          const std::tm& now) {
  auto text = rendered(std::move(asked.asked), model, now);
  if (auto* wrong = std::get_if<api_error>(&text))
    return std::move(*wrong);
  const auto& marked = std::get<jinja::marked_text>(text);
  auto ids = tokens_of(marked, model);
  if (auto* wrong = std::get_if<api_error>(&ids))
    return std::move(*wrong);
  chat_prompt out;
  // Text that keeps to a form has no room for calls, and may look like one.
  out.format = format_of(*model.text->chat, asked.tools_allowed && !asked.rule,
                         marked.bytes);
  out.prompt.ids = std::get<std::vector<core::token_id>>(std::move(ids));
  const std::uint64_t context = model.config.context;
  std::uint64_t room = asked.max_tokens;
  if (!asked.max_tokens_given) // the answer may have what is left
    room = out.prompt.ids.size() < context
             ? 0
             : std::min<std::uint64_t>(
               context / prompt_parts,
               model.text->defaults.max_tokens.value_or(UINT32_MAX));
  truncate(out.prompt.ids, asked, room, model);
  const std::size_t tokens = out.prompt.ids.size();
  if (tokens == 0)
    return invalid_request("messages: the model's chat template makes no text",
                           "messages");
  if (!asked.max_tokens_given && tokens < model.config.context)
    asked.max_tokens = std::uint32_t(std::min<std::uint64_t>(
      model.config.context - tokens,
      model.text->defaults.max_tokens.value_or(UINT32_MAX)));
  if (auto wrong = too_long(tokens, asked, model, "messages"))
    return *std::move(wrong);
  return out;
}

std::variant<core::sampling_wish, api_error>
sampling_of(const openai::generation_options& asked,
            const prompt_model& model) {
  const model::generation_defaults& said = model.text->defaults;
  const auto vocabulary = std::uint32_t(model.config.model.vocab_size);
  core::sampling_wish out;
  out.temperature =
    double(asked.temperature.value_or(said.temperature.value_or(1)));
  out.top_k =
    std::min(asked.top_k.value_or(said.top_k.value_or(0)), vocabulary);
  out.top_p = double(asked.top_p.value_or(said.top_p.value_or(1)));
  out.min_p = double(asked.min_p.value_or(said.min_p.value_or(0)));
  out.repetition_penalty = double(
    asked.repetition_penalty.value_or(said.repetition_penalty.value_or(1)));
  out.logprobs = asked.logprobs.value_or(0);
  out.frequency_penalty = double(asked.frequency_penalty.value_or(0));
  out.presence_penalty = double(asked.presence_penalty.value_or(0));
  const auto known = [&](openai::token_id id) {
    return std::uint32_t(id) < vocabulary;
  };
  for (const auto& [id, bias] : asked.biases) {
    if (!known(id))
      return invalid_request("logit_bias: has the id " + std::to_string(id)
                               + ", which is not below "
                               + std::to_string(vocabulary),
                             "logit_bias");
    out.biases.push_back({id, double(bias)});
  }
  if (!std::ranges::all_of(asked.stop_token_ids, known))
    return invalid_request("stop_token_ids: has an id that is not below "
                             + std::to_string(vocabulary),
                           "stop_token_ids");
  return out;
}

namespace {

/// The rule of calls in the form that the model's template shows.
std::variant<core::text_rule, api_error>
rule_of_calls(const openai::generation_options& asked,
              const openai::wanted_calls& calls,
              const openai::answer_format& format) {
  if (format.calls == openai::call_format::none)
    return invalid_request(
      "tool_choice: calls cannot be made to keep to it: the model's chat "
      "template shows no form of calls that is known",
      "tool_choice", "unsupported_parameter");
  openai::call_rule rule;
  if (format.calls == openai::call_format::llama)
    rule.form = openai::call_form::llama;
  else if (format.calls == openai::call_format::mistral)
    rule.form = format.args_mark ? openai::call_form::mistral_named
                                 : openai::call_form::mistral_list;
  rule.must = calls.must;
  rule.many = asked.parallel_calls && !calls.named;
  for (const openai::wanted_calls::tool& t : calls.tools)
    rule.tools.push_back({t.name, calls.must || t.strict
                                    ? t.schema
                                    : std::optional<std::string>()});
  const std::string text = text_of(rule);
  if (text.size() > core::rule_bytes_max)
    return invalid_request("tools: are longer than "
                             + std::to_string(core::rule_bytes_max)
                             + " bytes, so that calls cannot be made to keep "
                               "to them",
                           "tools");
  return openai::rule_of(core::rule_kind::calls, text);
}

} // namespace

std::variant<checked_rule, api_error>
rule_of(const openai::generation_options& asked,
        const openai::wanted_calls& calls, const openai::answer_format& format,
        const prompt_model& model) {
  // Where no form is known, nothing is taken for a call.
  const bool of_calls =
    !asked.rule && calls.constrain
    && (calls.must || format.calls != openai::call_format::none);
  if (!asked.rule && !of_calls)
    return checked_rule();
  const std::string field = !of_calls    ? asked.rule_field
                            : calls.must ? "tool_choice"
                                         : "tools";
  if (!model.text->no_rules.empty())
    return invalid_request(field
                             + ": the model's text cannot be made to keep to "
                             + "it: " + model.text->no_rules,
                           field, "unsupported_parameter");
  std::variant<core::text_rule, api_error> text;
  if (of_calls)
    text = rule_of_calls(asked, calls, format);
  else
    text = *asked.rule;
  if (auto* wrong = std::get_if<api_error>(&text))
    return std::move(*wrong);
  auto rule = std::make_shared<core::text_rule>(
    std::get<core::text_rule>(std::move(text)));
  if (format.begins_thinking)
    rule->thought = core::rule_thought::begun;
  else if (format.thinks)
    rule->thought = core::rule_thought::may_come;
  if (const auto compiled = openai::compile_rule(*rule); !compiled) {
    const std::string of = of_calls ? "tools" : field;
    return invalid_request(of + ": " + compiled.message(), of);
  }
  return checked_rule(std::move(rule));
}

namespace {

/// The tokens of a word as it begins a text, and as it follows a space: as vLLM takes
/// them. @returns nothing: the word is too long
bool add_banned(const std::string& word, model::text_encoder& encoder,
                std::vector<core::token_word>& to) {
  const std::size_t first = word.find_first_not_of(" \t\r\n");
  const std::string bare = first == word.npos ? word : word.substr(first);
  const auto plain = encoder.encode(bare, false);
  const auto spaced = encoder.encode(" " + bare, false);
  if (!plain || !spaced || plain->size() > core::serving::word_tokens_max)
    return false;
  if (!plain->empty())
    to.push_back({*plain});
  // Where the space is a token of its own, the word is the same behind it.
  if (!spaced->empty() && spaced->size() == plain->size()
      && spaced->front() != plain->front())
    to.push_back({*spaced});
  return true;
}

} // namespace

std::variant<checked_filter, api_error>
filter_of(const openai::generation_options& asked, const prompt_model& model) {
  if (asked.min_tokens == 0 && asked.bad_words.empty()
      && asked.allowed_token_ids.empty())
    return checked_filter();
  core::token_filter out;
  if (asked.min_tokens > asked.max_tokens)
    return invalid_request("min_tokens: is " + std::to_string(asked.min_tokens)
                             + ", above max_tokens, which is "
                             + std::to_string(asked.max_tokens),
                           "min_tokens");
  out.least = asked.min_tokens;
  const auto vocabulary = std::uint32_t(model.config.model.vocab_size);
  for (const openai::token_id id : asked.allowed_token_ids)
    if (std::uint32_t(id) >= vocabulary)
      return invalid_request("allowed_token_ids: has the id "
                               + std::to_string(id) + ", which is not below "
                               + std::to_string(vocabulary),
                             "allowed_token_ids");
  out.allowed = asked.allowed_token_ids;
  if (!asked.bad_words.empty() && !model.text->tokenizer)
    return invalid_request(
      "bad_words: the model has no text: " + model.text->no_text, "bad_words");
  if (asked.bad_words.empty())
    return std::make_shared<const core::token_filter>(std::move(out));
  model::text_encoder encoder(*model.text->tokenizer);
  for (const std::string& word : asked.bad_words)
    if (!add_banned(word, encoder, out.banned))
      return invalid_request("bad_words: has a word of more than "
                               + std::to_string(core::serving::word_tokens_max)
                               + " tokens, or one that cannot be tokenized",
                             "bad_words");
  return std::make_shared<const core::token_filter>(std::move(out));
}

static std::optional<std::uint64_t> key_number(const runtime::http_request& x) {
  const std::string* const key = x.header("idempotency-key");
  if (!key)
    return std::nullopt;
  const auto hash = runtime::sha256(std::as_bytes(std::span(*key)));
  std::uint64_t out = 0;
  std::memcpy(&out, hash.data(), sizeof out);
  return out;
}

std::uint64_t
seed_of(const runtime::http_request& x, const openai::generation_options& asked,
        std::uint64_t random) {
  return asked.seed ? *asked.seed : key_number(x).value_or(random);
}

std::uint64_t key_of(const runtime::http_request& x,
                     const openai::generation_options& asked) {
  const bool chances = asked.logprobs || asked.generated() > asked.n;
  return chances ? 0 : key_number(x).value_or(0);
}

std::variant<std::optional<openai::event_id>, api_error>
last_event_of(const runtime::http_request& x,
              const openai::generation_options& asked, std::size_t choices,
              bool continues) {
  const std::string* const last = x.header("last-event-id");
  if (!last)
    return std::optional<openai::event_id>();
  constexpr char field[] = "Last-Event-ID";
  const auto id = openai::parse_event_id(*last);
  if (!id)
    return invalid_request("Last-Event-ID: is no id of an event", field);
  if (!continues)
    return invalid_request("Last-Event-ID: streams of this API cannot be "
                           "continued",
                           field);
  if (!asked.stream || choices != 1)
    return invalid_request("Last-Event-ID: a stream of one choice can be "
                           "continued, and nothing else",
                           field);
  if (!asked.seed && !x.header("idempotency-key"))
    return invalid_request("Last-Event-ID: needs the Idempotency-Key of the "
                           "first request, or a seed",
                           field);
  return id;
}

} // namespace shoal::actors
