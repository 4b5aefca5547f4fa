// actors/gateway/description/request_schemas.cpp -- what fields mean.
#include "actors/gateway/description/request_schemas.hpp"

#include "actors/gateway/description/field_schema.hpp"
#include "runtime/anthropic/messages_request.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/files/json.hpp"
#include "runtime/openai/embeddings.hpp"
#include "runtime/openai/responses/responses_request.hpp"
#include "runtime/openai/token_requests.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace shoal::actors {

using json = nlohmann::ordered_json;

namespace {

/// What a field means. @c schema is of a field that has parts, or several types; the
/// others are as their parser says.
struct field_doc {
  std::string_view name, meaning;
  std::string_view schema = {}; ///< as JSON
  std::string_view usual =
    {}; ///< default, as JSON; "": depends, or there is none
};

constexpr std::string_view any = "{}";
constexpr std::string_view schema_ref =
  R"({"$ref":"#/components/schemas/Schema"})";
constexpr std::string_view object = R"({"type":["object","null"]})";
constexpr std::string_view nothing = R"({"type":"null"})";
constexpr std::string_view texts =
  R"({"type":["array","null"],"items":{"type":"string"}})";

/// Of all requests that have a field of this name, unless their own table has it.
constexpr field_doc shared[] = {
  {"model", "name of a served model, as in /v1/models"},
  {"temperature", "randomness of sampling; 0: the likeliest token"},
  {"top_p", "keep the smallest set of tokens with this probability"},
  {"top_k", "choose among this number of likeliest tokens; 0 or -1: among all"},
  {"min_p", "keep tokens of at least this share of the likeliest one"},
  {"repetition_penalty",
   "above 1: tokens of prompt and answer are less likely"},
  {"frequency_penalty", "for each time that the answer has a token", {}, "0"},
  {"presence_penalty", "for tokens that the answer has", {}, "0"},
  {"logit_bias", "added to the logits of tokens, by their ids",
   R"({"type":["object","null"],"maxProperties":1024,"propertyNames":{)"
   R"("pattern":"^-?[0-9]+$"},"additionalProperties":{"type":"number",)"
   R"("minimum":-100,"maximum":100}})"},
  {"seed", "of 64 bits; the same seed gives the same tokens",
   R"({"type":["integer","null"]})"},
  {"n", "answers to each prompt", {}, "1"},
  {"stop", "texts before which the answer ends",
   R"({"anyOf":[{"type":"null"},{"type":"string","minLength":1,)"
   R"("maxLength":256},{"type":"array","maxItems":16,"items":)"
   R"({"type":"string","minLength":1,"maxLength":256}}]})"},
  {"stop_token_ids", "tokens that end the answer",
   R"({"type":["array","null"],"maxItems":16,"items":{"type":"integer",)"
   R"("minimum":0,"maximum":2147483647}})"},
  {"min_tokens", "before them nothing ends the answer", {}, "0"},
  {"bad_words", "texts that are not written",
   R"({"type":["array","null"],"maxItems":256,"items":{"type":"string",)"
   R"("minLength":1,"maxLength":256}})"},
  {"allowed_token_ids", "no other tokens are chosen",
   R"({"type":["array","null"],"minItems":1,"maxItems":16384,"items":)"
   R"({"type":"integer","minimum":0,"maximum":2147483647}})"},
  {"stream", "answer by server-sent events", {}, "false"},
  {"stream_options", "only with stream",
   R"({"type":["object","null"],"properties":{"include_usage":{"type":)"
   R"(["boolean","null"]},"continuous_usage_stats":{"type":)"
   R"(["boolean","null"]}}})"},
  {"user", "has no effect"},
  {"ignore_eos", "the model cannot end the answer", {}, "false"},
  {"return_token_ids", "the answer has ids beside texts", {}, "false"},
  {"include_stop_str_in_output",
   "the stop text is a part of the answer",
   {},
   "false"},
  {"skip_special_tokens", "the answer has no special tokens", {}, "true"},
  {"parallel_tool_calls", "false: one call at most", {}, "true"},
  {"truncate_prompt_tokens",
   "tokens at the prompt's end that are kept of a longer one; -1: what fits; "
   "0: "
   "all",
   {},
   "0"},
  {"response_format", "what the answer must be",
   R"({"$ref":"#/components/schemas/ResponseFormat"})"},
  {"guided_json", "a schema that the answer keeps to", schema_ref},
  {"guided_regex", "the same, a regular expression",
   R"({"type":["string","null"]})"},
  {"guided_choice", "the same, one of these texts",
   R"({"type":["array","null"],"minItems":1,"items":{"type":"string"}})"},
  {"guided_grammar", "the same, a grammar in GBNF",
   R"({"type":["string","null"]})"},
  {"json_schema", "as guided_json", schema_ref},
  {"grammar", "as guided_grammar", R"({"type":["string","null"]})"},
  {"structured_outputs", "the same in one object",
   R"({"$ref":"#/components/schemas/StructuredOutputs"})"},
  {"messages", "the conversation",
   R"({"type":"array","minItems":1,"maxItems":4096,"items":)"
   R"({"$ref":"#/components/schemas/Message"}})"},
  {"tools", "functions that the model may call",
   R"({"type":["array","null"],"maxItems":512,"items":)"
   R"({"$ref":"#/components/schemas/Tool"}})"},
  {"documents", "for the model's template", R"({"type":["array","null"]})"},
  {"chat_template_kwargs", "variables of the model's template", object},
  {"reasoning_effort", "for the model's template"},
  {"add_generation_prompt",
   "the prompt ends where an answer begins",
   {},
   "true"},
  {"continue_final_message",
   "the answer goes on with the last message",
   {},
   "false"},
  {"max_tokens", "most tokens of the answer"},
  {"max_completion_tokens", "the same"},
  {"logprobs", "tell how probable each token was", {}, "false"},
  {"top_logprobs",
   "and of this number of other tokens in its place; only with logprobs"},
  {"tool_choice",
   "\"none\", \"auto\", \"required\", a function, or some of the tools",
   R"({"anyOf":[{"enum":["none","auto","required",null]},{"type":"object",)"
   R"("required":["type"],"properties":{"type":{"enum":["function",)"
   R"("allowed_tools"]}}}]})"},
  {"chat_template", "is not taken from clients", nothing},
  {"add_special_tokens", "add the tokens that a text begins or ends with"},
};

constexpr std::string_view prompts_ref =
  R"({"$ref":"#/components/schemas/Prompts"})";

constexpr field_doc of_completion[] = {
  {"prompt", "a text, token ids, or several of these", prompts_ref},
  {"max_tokens",
   "most tokens of the answer; 0 only with echo. By default 16, or what is "
   "left of the context behind the longest prompt",
   {},
   "16"},
  {"best_of", "answers that are made, of which the n likeliest are told"},
  {"logprobs",
   "tell how probable each token was, and this number of others in its place"},
  {"echo", "the prompt precedes the answer", {}, "false"},
  {"suffix", "is not supported", R"({"enum":["",null]})"},
};

constexpr field_doc of_responses[] = {
  {"input", "a text, or the items of the whole conversation",
   R"({"anyOf":[{"type":"string"},{"type":"array","minItems":1,)"
   R"("maxItems":4096,"items":{"$ref":"#/components/schemas/InputItem"}}]})"},
  {"instructions", "a message of the system before the input"},
  {"text", "`format`: what the answer must be",
   R"({"type":["object","null"],"properties":{"format":{"type":)"
   R"(["object","null"]}}})"},
  {"reasoning", "`effort`: for the model's template", object},
  {"include", "\"message.output_text.logprobs\" adds probabilities", texts},
  {"max_output_tokens", "most tokens of the answer"},
  {"metadata", "is repeated in the answer",
   R"({"type":["object","null"],"maxProperties":16,"additionalProperties":)"
   R"({"type":"string","maxLength":512}})"},
  {"stream_options", "has no effect", object},
  {"truncation", "\"disabled\""},
  {"top_logprobs", "number of other tokens that are told in the place of each"},
  {"tools", "functions that the model may call",
   R"({"type":["array","null"],"maxItems":512,"items":{"type":"object",)"
   R"("required":["type","name"],"properties":{"type":{"const":"function"},)"
   R"("name":{"type":"string"}}}})"},
  {"tool_choice",
   "\"none\", \"auto\", \"required\", a function, or some of them",
   R"({"anyOf":[{"enum":["none","auto","required",null]},{"type":"object",)"
   R"("required":["type"],"properties":{"type":{"enum":["function",)"
   R"("allowed_tools"]}}}]})"},
  {"previous_response_id", "is not supported: nothing is stored", nothing},
  {"conversation", "is not supported: nothing is stored", nothing},
  {"prompt", "is not supported", nothing},
  {"background", "only false", R"({"enum":[false,null]})"},
  {"store", "has no effect", {}, "false"},
};

constexpr field_doc of_messages[] = {
  {"messages", "the conversation",
   R"({"type":"array","minItems":1,"maxItems":4096,"items":)"
   R"({"$ref":"#/components/schemas/BlockMessage"}})"},
  {"system", "what the model is told first",
   R"({"anyOf":[{"type":["string","null"]},{"type":"array","items":)"
   R"({"$ref":"#/components/schemas/Block"}}]})"},
  {"tools", "tools that the model may use",
   R"({"type":["array","null"],"maxItems":512,"items":{"type":"object",)"
   R"("required":["name","input_schema"],"properties":{"type":{"enum":)"
   R"(["custom",null]},"name":{"type":"string"},"input_schema":)"
   R"({"type":"object"}}}})"},
  {"tool_choice", "which of them it must use",
   R"({"type":["object","null"],"required":["type"],"properties":{"type":)"
   R"({"enum":["auto","any","none","tool"]},"name":{"type":"string"},)"
   R"("disable_parallel_tool_use":{"type":["boolean","null"]}}})"},
  {"thinking", "becomes enable_thinking of the template",
   R"({"type":["object","null"],"required":["type"],"properties":{"type":)"
   R"({"enum":["enabled","disabled","adaptive"]}}})"},
  {"output_config", "`format`: what the answer must be; `effort`",
   R"({"type":["object","null"],"properties":{"format":{"type":)"
   R"(["object","null"]}}})"},
  {"metadata", "`user_id`: has no effect", object},
  {"stop_sequences", "texts before which the answer ends",
   R"({"type":["array","null"],"maxItems":16,"items":{"type":"string",)"
   R"("minLength":1,"maxLength":256}})"},
};

constexpr field_doc of_embeddings[] = {
  {"input", "a text, token ids, or several of these", prompts_ref},
  {"messages", "is not supported: give input", any},
  {"encoding_format", "\"float\" or \"base64\"", {}, "\"float\""},
  {"dimensions", "only the size of the model's hidden state"},
  {"add_special_tokens",
   "add the tokens that a text begins or ends with",
   {},
   "true"},
};

constexpr field_doc of_tokenize[] = {
  {"prompt", "a text; or give messages"},
  {"content", "the same as prompt, without special tokens"},
  {"messages", "a conversation, in place of a text",
   R"({"type":["array","null"],"minItems":1,"maxItems":4096,"items":)"
   R"({"$ref":"#/components/schemas/Message"}})"},
  {"add_special", "as add_special_tokens"},
  {"return_token_strs", "also tell the text of each token", {}, "false"},
  {"with_pieces",
   "tell of each token an object with its id and its text",
   {},
   "false"},
  {"parse_special", "a special token's text stands for that token", {}, "true"},
};

constexpr field_doc of_detokenize[] = {
  {"tokens", "their ids",
   R"({"type":"array","maxItems":1048576,"items":{"type":"integer",)"
   R"("minimum":0,"maximum":2147483647}})"},
};

constexpr std::string_view one_message =
  R"({"messages":[{"role":"user","content":"a"}],"max_tokens":1})";

template <class Limits, class Parse>
void read(openai::field_log& into, std::string_view example, Parse parse) {
  Limits limits;
  limits.told = &into;
  SHOAL_ASSERT(parse(example, limits).index() == 0);
}

struct request_doc {
  std::vector<std::string_view> required;
  std::span<const field_doc> own;
  openai::field_log fields;
};

request_doc doc_of(http_question what) {
  using openai::chat_limits;
  request_doc out;
  const auto read_chat = [&](auto parse) {
    read<chat_limits>(out.fields, one_message, parse);
  };
  switch (what) {
  case http_question::completion:
    out.required = {"model", "prompt"};
    out.own = of_completion;
    read<openai::completion_limits>(out.fields, R"({"prompt":"a"})",
                                    openai::parse_completion);
    break;
  case http_question::chat:
    out.required = {"model", "messages"};
    read_chat(openai::parse_chat);
    break;
  case http_question::responses:
    out.required = {"model", "input"};
    out.own = of_responses;
    read<openai::responses_limits>(out.fields, R"({"input":"a"})",
                                   openai::parse_responses);
    break;
  case http_question::messages:
    out.required = {"model", "messages", "max_tokens"};
    out.own = of_messages;
    read_chat(anthropic::parse_messages);
    break;
  case http_question::count_tokens:
    out.required = {"model", "messages"};
    out.own = of_messages;
    read_chat(anthropic::parse_count_tokens);
    break;
  case http_question::embeddings:
    out.required = {"model", "input"};
    out.own = of_embeddings;
    read<openai::embedding_limits>(out.fields, R"({"input":"a"})",
                                   openai::parse_embeddings);
    break;
  case http_question::tokenize:
    out.own = of_tokenize;
    for (const std::string_view example :
         {std::string_view(R"({"prompt":"a"})"),
          std::string_view(R"({"content":"a"})"), one_message})
      read<chat_limits>(out.fields, example, openai::parse_tokenize);
    break;
  case http_question::detokenize:
    out.required = {"tokens"};
    out.own = of_detokenize;
    read<chat_limits>(out.fields, R"({"tokens":[1]})",
                      openai::parse_detokenize);
    break;
  case http_question::apply_template:
    out.required = {"messages"};
    read_chat(openai::parse_apply_template);
    break;
  default:
    SHOAL_ASSERT(!"a request with a body");
  }
  return out;
}

const field_doc* find(std::span<const field_doc> docs, std::string_view name) {
  const auto at = std::ranges::find(docs, name, &field_doc::name);
  return at == docs.end() ? nullptr : &*at;
}

json parsed(std::string_view text) {
  auto out = model::parse_json<json>(text);
  SHOAL_ASSERT(!out.is_discarded());
  return out;
}

constexpr http_question bodies[] = {
  http_question::completion,    http_question::chat,
  http_question::responses,     http_question::messages,
  http_question::count_tokens,  http_question::embeddings,
  http_question::tokenize,      http_question::detokenize,
  http_question::apply_template};

} // namespace

json request_schema(http_question what) {
  const request_doc doc = doc_of(what);
  json properties = json::object();
  for (const auto& [name, read] : doc.fields.fields()) {
    const field_doc* is = find(doc.own, name);
    if (!is)
      is = find(shared, name);
    if (!is)
      continue; // request_gaps() tells
    json one = is->schema.empty() ? schema_of(read) : parsed(is->schema);
    one["description"] = is->meaning;
    if (!is->usual.empty())
      one["default"] = parsed(is->usual);
    properties[name] = std::move(one);
  }
  for (const std::string_view name : doc.required) {
    json& field = properties[std::string(name)];
    if (field.contains("type") && field["type"].is_array())
      field["type"] = field["type"][0]; // not null
  }
  json out{{"type", "object"}, {"properties", std::move(properties)}};
  if (!doc.required.empty())
    out["required"] = doc.required;
  return out;
}

std::vector<std::string> request_gaps() {
  std::vector<std::string> out;
  std::set<std::string_view> used;
  for (const http_question what : bodies) {
    const request_doc doc = doc_of(what);
    const std::string request = "request " + std::to_string(int(what)) + ": ";
    std::set<std::string_view> own;
    for (const auto& [name, read] : doc.fields.fields()) {
      const field_doc* const special = find(doc.own, name);
      const field_doc* const is = special ? special : find(shared, name);
      if (!is)
        out.push_back(request + "no meaning of " + name);
      else if (is->schema.empty() && read.is == openai::read_field::kind::any)
        out.push_back(request + "no schema of " + name);
      else if (special)
        own.insert(special->name);
      else
        used.insert(is->name);
    }
    for (const field_doc& d : doc.own)
      if (!own.contains(d.name))
        out.push_back(request + "no parser reads " + std::string(d.name));
  }
  for (const field_doc& d : shared)
    if (!used.contains(d.name))
      out.push_back("no parser reads " + std::string(d.name));
  return out;
}

} // namespace shoal::actors
