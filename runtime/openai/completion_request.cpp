// runtime/openai/completion_request.cpp -- field by field; the first mistake is
// the answer.
#include "runtime/openai/completion_request.hpp"

#include "runtime/files/json.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace shoal::openai {
namespace {

using json = nlohmann::json;
using model::shown;

constexpr int temperature_max = 2;
constexpr int repetition_penalty_max = 10;
constexpr std::uint32_t top_k_max = 1 << 30;

/// At least the number of values in a JSON text, up to `stop`: each but the
/// first follows a comma or a bracket.
std::size_t count_values(std::string_view text, std::size_t stop) {
  std::size_t count = 1;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size() && count < stop; ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == ',' || c == '[' || c == '{'))
      ++count;
  }
  return count;
}

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

/// Reads fields of an object and keeps the first mistake. A field that is
/// absent or null leaves its target as it is.
class fields {
public:
  explicit fields(const json& object) : object_(object) {}

  bool ok() const { return !mistake_; }
  api_error& mistake() { return *mistake_; }

  void wrong(const std::string& name, const std::string& what,
             const char* code = "invalid_value") {
    if (!mistake_)
      mistake_ = invalid_request(name + " " + what, name, code);
  }
  void not_a(const std::string& name, const json& value, const char* type) {
    wrong(name, "is " + shown(value) + ", must be " + type, "invalid_type");
  }

  /// nullptr if the field is absent or null, or there is a mistake already.
  const json* find(const char* name) const {
    if (mistake_)
      return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  void flag(const char* name, bool& into) {
    const json* const value = find(name);
    if (value && !value->is_boolean())
      return not_a(name, *value, "true or false");
    if (value)
      into = value->get<bool>();
  }

  void text(const char* name, std::size_t bytes_max, std::string& into) {
    const json* const value = find(name);
    if (!value)
      return;
    if (!value->is_string())
      return not_a(name, *value, "a string");
    into = value->get<std::string>();
    if (into.size() > bytes_max)
      wrong(name, "is longer than " + std::to_string(bytes_max) + " bytes");
  }

  /// @returns whether the field is there and right
  bool integer(const char* name, std::int64_t low, std::int64_t high,
               std::int64_t& into) {
    const json* const value = find(name);
    if (!value)
      return false;
    if (!value->is_number())
      not_a(name, *value, "a whole number");
    else if (const auto number = whole(*value);
             !number || *number < low || *number > high)
      wrong(name, "is " + shown(*value) + ", must be a whole number between "
                    + std::to_string(low) + " and " + std::to_string(high));
    else
      into = *number;
    return ok();
  }
  void integer(const char* name, std::int64_t low, std::int64_t high,
               std::uint32_t& into) {
    if (std::int64_t number = 0; integer(name, low, high, number))
      into = static_cast<std::uint32_t>(number);
  }
  void integer(const char* name, std::int64_t low, std::int64_t high,
               std::optional<std::uint32_t>& into) {
    if (std::int64_t number = 0; integer(name, low, high, number))
      into = static_cast<std::uint32_t>(number);
  }

  /// @param above  whether `low` itself is refused
  void number(const char* name, int low, int high, bool above,
              std::optional<float>& into) {
    const json* const value = find(name);
    if (!value)
      return;
    if (!value->is_number())
      return not_a(name, *value, "a number");
    const auto number = value->get<double>();
    const auto rounded = static_cast<float>(number);
    // A tiny number may be 0 as a float.
    if (number < low || number > high || (above && !(rounded > float(low))))
      return wrong(name,
                   "is " + shown(*value) + ", must be "
                     + (above ? "above " + std::to_string(low) + " and at most "
                              : "between " + std::to_string(low) + " and ")
                     + std::to_string(high));
    into = rounded;
  }

  /// A number that must be 0 if it is there.
  void zero(const char* name) {
    const json* const value = find(name);
    if (value && !(value->is_number() && value->get<double>() == 0))
      wrong(name, "is not supported: leave it out, or at 0",
            "unsupported_parameter");
  }

private:
  const json& object_;
  std::optional<api_error> mistake_;
};

/// Reads `prompt` in its four forms.
class prompt_reader {
public:
  prompt_reader(fields& in, const completion_limits& limits)
    : in_(in), limits_(limits) {}

  std::vector<prompt> read() {
    const json* const value = in_.find("prompt");
    if (!value) {
      in_.wrong("prompt", "is missing: give a string, or a list",
                "missing_required_parameter");
      return {};
    }
    if (value->is_string())
      add_text(*value);
    else if (!value->is_array())
      in_.not_a("prompt", *value, forms);
    else if (value->empty())
      in_.wrong("prompt", "is an empty list");
    else if (value->front().is_number())
      add_ids(*value);
    else
      add_each(*value);
    return std::move(prompts_);
  }

private:
  static constexpr const char* forms =
    "a string, a list of strings, a list of token ids or a list of lists of "
    "token ids";

  void add_each(const json& list) {
    const bool texts = list.front().is_string();
    if (list.size() > limits_.prompts_max)
      return in_.wrong("prompt", "has " + std::to_string(list.size())
                                   + " prompts, more than "
                                   + std::to_string(limits_.prompts_max));
    for (const json& item : list) {
      if (texts ? !item.is_string() : !item.is_array())
        return in_.not_a("prompt", item, forms);
      if (texts)
        add_text(item);
      else
        add_ids(item);
      if (!in_.ok())
        return;
    }
  }

  void add_text(const json& value) {
    const auto& text = value.get_ref<const std::string&>();
    bytes_ += text.size();
    if (bytes_ > limits_.prompt_bytes_max)
      return in_.wrong("prompt", "has more than "
                                   + std::to_string(limits_.prompt_bytes_max)
                                   + " bytes");
    prompts_.emplace_back(text);
  }

  void add_ids(const json& list) {
    if (list.empty())
      return in_.wrong("prompt", "has an empty list of token ids");
    ids_ += list.size();
    if (ids_ > limits_.prompt_tokens_max)
      return in_.wrong("prompt", "has more than "
                                   + std::to_string(limits_.prompt_tokens_max)
                                   + " token ids");
    std::vector<token_id> ids;
    ids.reserve(list.size());
    for (const json& item : list) {
      const auto id = whole(item);
      if (!id || *id < 0 || !std::in_range<token_id>(*id))
        return in_.wrong("prompt",
                         "has " + shown(item) + " where a token id should be",
                         "invalid_type");
      ids.push_back(static_cast<token_id>(*id));
    }
    prompts_.emplace_back(std::move(ids));
  }

  fields& in_;
  const completion_limits& limits_;
  std::vector<prompt> prompts_;
  std::size_t bytes_ = 0;
  std::size_t ids_ = 0;
};

void read_stop(fields& in, const completion_limits& limits,
               std::vector<std::string>& into) {
  const json* const value = in.find("stop");
  if (!value)
    return;
  const json list = value->is_string() ? json::array({*value}) : *value;
  if (!list.is_array())
    return in.not_a("stop", *value, "a string or a list of strings");
  if (list.size() > limits.stops_max)
    return in.wrong("stop", "has more than " + std::to_string(limits.stops_max)
                              + " strings");
  for (const json& item : list) {
    if (!item.is_string())
      return in.not_a("stop", item, "a string or a list of strings");
    auto text = item.get<std::string>();
    if (text.empty())
      return in.wrong("stop", "has an empty string");
    if (text.size() > limits.stop_bytes_max)
      return in.wrong("stop", "has a string of more than "
                                + std::to_string(limits.stop_bytes_max)
                                + " bytes");
    into.push_back(std::move(text));
  }
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

void read_stream_options(fields& in, completion_request& request) {
  const json* const value = in.find("stream_options");
  if (!value)
    return;
  if (!value->is_object())
    return in.not_a("stream_options", *value, "an object");
  if (!request.stream)
    return in.wrong("stream_options", "is only allowed if stream is true");
  const auto found = value->find("include_usage");
  if (found == value->end() || found->is_null())
    return;
  if (!found->is_boolean())
    return in.not_a("stream_options.include_usage", *found, "true or false");
  request.include_usage = found->get<bool>();
}

/// Fields that change the result in a way that is not implemented.
void refuse_unsupported(fields& in, const completion_request& request) {
  if (const json* const suffix = in.find("suffix"); suffix && *suffix != "")
    in.wrong("suffix", "is not supported: leave it out",
             "unsupported_parameter");
  std::int64_t best_of = request.n;
  if (in.integer("best_of", 1, std::numeric_limits<std::int64_t>::max(),
                 best_of)
      && best_of != request.n)
    in.wrong("best_of",
             "is " + std::to_string(best_of) + ", but only n, which is "
               + std::to_string(request.n) + ", is supported",
             "unsupported_parameter");
  in.zero("presence_penalty");
  in.zero("frequency_penalty");
  if (const json* const bias = in.find("logit_bias");
      bias && !(bias->is_object() && bias->empty()))
    in.wrong("logit_bias", "is not supported: leave it out",
             "unsupported_parameter");
}

void read_sampling(fields& in, const completion_limits& limits,
                   completion_request& request) {
  in.integer("max_tokens", 0, limits.tokens_max, request.max_tokens);
  in.number("temperature", 0, temperature_max, false, request.temperature);
  in.number("top_p", 0, 1, true, request.top_p);
  if (std::int64_t k = 0; in.integer("top_k", -1, top_k_max, k))
    request.top_k = k < 0 ? 0 : static_cast<std::uint32_t>(k);
  in.number("min_p", 0, 1, false, request.min_p);
  in.number("repetition_penalty", 0, repetition_penalty_max, true,
            request.repetition_penalty);
  read_seed(in, request.seed);
  in.integer("n", 1, limits.n_max, request.n);
}

} // namespace

std::variant<completion_request, api_error>
parse_completion(std::string_view body, const completion_limits& limits) {
  if (count_values(body, limits.values_max + 1) > limits.values_max)
    return invalid_request("the request body has more than "
                           + std::to_string(limits.values_max) + " values");
  const auto object = model::parse_json_object(body, "the request body");
  if (!object)
    return invalid_request(object.message());

  completion_request request;
  fields in(*object);
  in.text("model", limits.name_bytes_max, request.model);
  request.prompts = prompt_reader(in, limits).read();
  read_sampling(in, limits, request);
  if (request.prompts.size() * request.n > limits.choices_max)
    in.wrong("n", "times the number of prompts is "
                    + std::to_string(request.prompts.size() * request.n)
                    + ", more than " + std::to_string(limits.choices_max));
  read_stop(in, limits, request.stop);
  in.flag("stream", request.stream);
  read_stream_options(in, request);
  in.integer("logprobs", 0, completion_request::logprobs_max, request.logprobs);
  in.flag("echo", request.echo);
  in.text("user", limits.name_bytes_max, request.user);
  in.flag("ignore_eos", request.ignore_eos);
  in.flag("return_token_ids", request.return_token_ids);
  if (request.max_tokens == 0 && !request.echo)
    in.wrong("max_tokens", "is 0, which is only allowed with echo");
  refuse_unsupported(in, request);
  if (!in.ok())
    return std::move(in.mistake());
  return request;
}

} // namespace shoal::openai
