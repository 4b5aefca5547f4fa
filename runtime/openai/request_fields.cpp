// runtime/openai/request_fields.cpp -- fields that several requests have.
#include "runtime/openai/request_fields.hpp"

#include "runtime/files/json_scan.hpp"
#include "runtime/openai/output_rule.hpp"

#include <charconv>
#include <cmath>
#include <utility>

namespace shoal::openai {
namespace {

constexpr int temperature_max = 2;
constexpr int repetition_penalty_max = 10;
constexpr int penalty_max = 2;
constexpr int bias_max = 100;
constexpr std::uint32_t top_k_max = 1 << 30;

/// A list of texts, none of them empty.
void read_texts(fields& in, const char* name, const json& list,
                std::size_t texts_max, std::size_t bytes_max, const char* type,
                std::vector<std::string>& into) {
  if (!list.is_array())
    return in.not_a(name, list, type);
  if (list.size() > texts_max)
    return in.wrong(name,
                    "has more than " + std::to_string(texts_max) + " strings");
  for (const json& item : list) {
    if (!item.is_string())
      return in.not_a(name, item, type);
    auto text = item.get<std::string>();
    if (text.empty())
      return in.wrong(name, "has an empty string");
    if (text.size() > bytes_max)
      return in.wrong(name, "has a string of more than "
                              + std::to_string(bytes_max) + " bytes");
    into.push_back(std::move(text));
  }
}

void read_stop(fields& in, const request_limits& limits,
               std::vector<std::string>& into) {
  if (const json* const value = in.find("stop"))
    read_texts(in, "stop", value->is_string() ? json::array({*value}) : *value,
               limits.stops_max, limits.stop_bytes_max,
               "a string or a list of strings", into);
}

void read_seed(fields& in, std::optional<std::uint64_t>& into) {
  const json* const value = in.find("seed");
  if (!value)
    return;
  if (value->is_number_unsigned())
    into = value->get<std::uint64_t>();
  else if (const auto number = whole(*value))
    into = static_cast<std::uint64_t>(*number);
  else
    in.not_a("seed", *value, "a whole number of 64 bits");
}

void read_stream_options(fields& in, generation_options& request) {
  const json* const value = in.object("stream_options");
  if (!value)
    return;
  if (!request.stream)
    return in.wrong("stream_options", "is only allowed if stream is true");
  bool in_events = false;
  const auto read = [&](const char* name, bool& into) {
    const auto found = value->find(name);
    if (found == value->end() || found->is_null())
      return;
    if (!found->is_boolean())
      return in.not_a(std::string("stream_options.") + name, *found,
                      "true or false");
    into = found->get<bool>();
  };
  read("include_usage", request.include_usage);
  read("continuous_usage_stats", in_events);
  request.usage_in_events = request.include_usage && in_events;
}

/// {"50256": -100}: ids of tokens as texts.
void read_biases(fields& in, const request_limits& limits,
                 generation_options& into) {
  const json* const value = in.object("logit_bias");
  if (!value)
    return;
  if (value->size() > limits.biases_max)
    return in.wrong("logit_bias", "has more than "
                                    + std::to_string(limits.biases_max)
                                    + " tokens");
  for (const auto& [key, bias] : value->items()) {
    token_id id = 0;
    const char* const last = key.data() + key.size();
    const auto read = std::from_chars(key.data(), last, id);
    if (read.ec != std::errc() || read.ptr != last || id < 0)
      return in.wrong("logit_bias", "has the key " + shown(json(key))
                                      + ", which is no token id");
    if (!bias.is_number() || !(std::abs(bias.get<double>()) <= bias_max))
      return in.wrong("logit_bias",
                      "of " + key + " is " + shown(bias)
                        + ", must be a number between -100 and 100");
    into.biases.emplace_back(id, bias.get<float>());
  }
}

void read_ids(fields& in, const char* name, std::size_t ids_max,
              std::vector<token_id>& into) {
  const json* const value = in.find(name);
  if (!value)
    return;
  if (!value->is_array())
    return in.not_a(name, *value, "a list of token ids");
  if (value->size() > ids_max)
    return in.wrong(name, "has more than " + std::to_string(ids_max) + " ids");
  for (const json& item : *value) {
    const auto id = whole(item);
    if (!id || *id < 0 || !std::in_range<token_id>(*id))
      return in.not_a(name, item, "a list of token ids");
    into.push_back(static_cast<token_id>(*id));
  }
}

/// Which tokens may be chosen: fields of vLLM's server.
void read_filter(fields& in, const request_limits& limits,
                 generation_options& into) {
  in.integer("min_tokens", 0, limits.tokens_max, into.min_tokens);
  if (const json* const value = in.find("bad_words"))
    read_texts(in, "bad_words", *value, limits.bad_words_max,
               limits.bad_word_bytes_max, "a list of strings", into.bad_words);
  read_ids(in, "allowed_token_ids", limits.allowed_ids_max,
           into.allowed_token_ids);
  if (const json* const value = in.find("allowed_token_ids");
      value && value->empty())
    in.wrong("allowed_token_ids", "is an empty list");
}

} // namespace

/// A number without fraction; 16.0 is one, too.
std::optional<std::int64_t> whole(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (!std::in_range<std::int64_t>(number))
      return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer())
    return value.get<std::int64_t>();
  if (!value.is_number_float())
    return std::nullopt;
  const auto number = value.get<double>();
  constexpr double safe = 9007199254740992.0; // 2^53: exact up to there
  if (std::abs(number) > safe || number != std::trunc(number))
    return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::variant<json, api_error>
parse_body(std::string_view body, std::size_t values_max) {
  if (model::count_values(body, values_max + 1) > values_max)
    return invalid_request("the request body has more than "
                           + std::to_string(values_max) + " values");
  if (!model::nests_too_deep(body) && model::has_too_many_keys(body))
    return invalid_request("the request body has an object with more than "
                           + std::to_string(model::ordered_keys_max) + " keys");
  auto object = model::parse_json_object<json>(body, "the request body");
  if (!object)
    return invalid_request(object.message());
  return *std::move(object);
}

json read_tools_of(
  fields& in, std::size_t tools_max, std::string_view type, bool typeless,
  const std::function<json(const json& tool, const std::string& place)>&
    as_chat) {
  const json* const value = in.find("tools");
  if (!value)
    return nullptr;
  if (!value->is_array())
    in.not_a("tools", *value, "a list of tools");
  else if (value->size() > tools_max)
    in.wrong("tools", "has more than " + std::to_string(tools_max) + " tools");
  json out = json::array();
  for (std::size_t i = 0; in.ok() && i < value->size(); ++i) {
    const json& tool = (*value)[i];
    const std::string place = "tools[" + std::to_string(i) + "]";
    if (!tool.is_object()) {
      in.not_a(place, tool, "an object");
      break;
    }
    const json given = tool.value("type", json());
    if (given != type && !(typeless && given.is_null()))
      in.wrong(place + ".type",
               "is " + shown(given) + ": only \"" + std::string(type)
                 + "\" is supported",
               "unsupported_parameter");
    else if (!tool.contains("name") || !tool["name"].is_string())
      in.wrong(place + ".name", "is missing or no string", "invalid_type");
    else
      out.push_back(as_chat(tool, place));
  }
  return out;
}

void read_options(fields& in, const request_limits& limits,
                  generation_options& into) {
  in.text("model", limits.name_bytes_max, into.model);
  in.number("temperature", 0, temperature_max, false, into.temperature);
  in.number("top_p", 0, 1, true, into.top_p);
  if (std::int64_t k = 0; in.integer("top_k", -1, top_k_max, k))
    into.top_k = k < 0 ? 0 : static_cast<std::uint32_t>(k);
  in.number("min_p", 0, 1, false, into.min_p);
  in.number("repetition_penalty", 0, repetition_penalty_max, true,
            into.repetition_penalty);
  in.number("frequency_penalty", -penalty_max, penalty_max, false,
            into.frequency_penalty);
  in.number("presence_penalty", -penalty_max, penalty_max, false,
            into.presence_penalty);
  read_biases(in, limits, into);
  read_seed(in, into.seed);
  in.integer("n", 1, limits.n_max, into.n);
  read_stop(in, limits, into.stop);
  read_ids(in, "stop_token_ids", limits.stops_max, into.stop_token_ids);
  read_filter(in, limits, into);
  in.flag("stream", into.stream);
  read_stream_options(in, into);
  in.text("user", limits.name_bytes_max, into.user);
  in.flag("ignore_eos", into.ignore_eos);
  in.flag("return_token_ids", into.return_token_ids);
  in.flag("include_stop_str_in_output", into.include_stop);
  in.flag("skip_special_tokens", into.skip_special);
  in.flag("parallel_tool_calls", into.parallel_calls);
  in.integer("truncate_prompt_tokens", -1, limits.tokens_max,
             into.prompt_tokens_kept);
  read_output_rule(in, into);
}

} // namespace shoal::openai
