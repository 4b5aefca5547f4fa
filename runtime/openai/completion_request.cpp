// runtime/openai/completion_request.cpp -- field by field; the first mistake is
// the answer.
#include "runtime/openai/completion_request.hpp"

#include "runtime/openai/request_fields.hpp"

#include <utility>

namespace shoal::openai {
namespace {

/// Reads prompts in their four forms.
class prompt_reader {
public:
  prompt_reader(fields& in, const char* name, const completion_limits& limits)
    : in_(in), name_(name), limits_(limits) {}

  std::vector<prompt> read() {
    const json* const value = in_.find(name_);
    if (!value) {
      in_.wrong(name_, "is missing: give a string, or a list",
                "missing_required_parameter");
      return {};
    }
    if (value->is_string())
      add_text(*value);
    else if (!value->is_array())
      in_.not_a(name_, *value, forms);
    else if (value->empty())
      in_.wrong(name_, "is an empty list");
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
      return in_.wrong(name_, "has " + std::to_string(list.size())
                                + " prompts, more than "
                                + std::to_string(limits_.prompts_max));
    for (const json& item : list) {
      if (texts ? !item.is_string() : !item.is_array())
        return in_.not_a(name_, item, forms);
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
      return in_.wrong(name_, "has more than "
                                + std::to_string(limits_.prompt_bytes_max)
                                + " bytes");
    prompts_.emplace_back(text);
  }

  void add_ids(const json& list) {
    if (list.empty())
      return in_.wrong(name_, "has an empty list of token ids");
    ids_ += list.size();
    if (ids_ > limits_.prompt_tokens_max)
      return in_.wrong(name_, "has more than "
                                + std::to_string(limits_.prompt_tokens_max)
                                + " token ids");
    std::vector<token_id> ids;
    ids.reserve(list.size());
    for (const json& item : list) {
      const auto id = whole(item);
      if (!id || *id < 0 || !std::in_range<token_id>(*id))
        return in_.wrong(name_,
                         "has " + shown(item) + " where a token id should be",
                         "invalid_type");
      ids.push_back(static_cast<token_id>(*id));
    }
    prompts_.emplace_back(std::move(ids));
  }

  fields& in_;
  const char* const name_;
  const completion_limits& limits_;
  std::vector<prompt> prompts_;
  std::size_t bytes_ = 0;
  std::size_t ids_ = 0;
};

/// Fields whose effect this server does not have.
void refuse_unsupported_completion(fields& in) {
  if (const json* const suffix = in.find("suffix"); suffix && *suffix != "")
    in.wrong("suffix", "is not supported: leave it out",
             "unsupported_parameter");
}

void read_best_of(fields& in, const request_limits& limits,
                  completion_request& into) {
  in.integer("best_of", 1, limits.n_max, into.best_of);
  if (into.best_of == 0 || into.best_of == into.n)
    return;
  if (into.best_of < into.n)
    in.wrong("best_of", "is " + std::to_string(into.best_of)
                          + ", less than n, which is "
                          + std::to_string(into.n));
  if (into.stream)
    in.wrong("best_of", "above n is not allowed if stream is true");
}

} // namespace

std::vector<prompt>
read_prompts(fields& in, const char* name, const completion_limits& limits) {
  return prompt_reader(in, name, limits).read();
}

std::variant<completion_request, api_error>
parse_completion(std::string_view body, const completion_limits& limits) {
  const auto object = parse_body(body, limits.values_max);
  if (const auto* wrong = std::get_if<api_error>(&object))
    return *wrong;
  completion_request request;
  request.max_tokens = completion_request::max_tokens_default;
  fields in(std::get<json>(object), limits.told);
  request.prompts = read_prompts(in, "prompt", limits);
  request.max_tokens_given = in.find("max_tokens") != nullptr;
  in.integer("max_tokens", 0, limits.tokens_max, request.max_tokens);
  read_options(in, limits, request);
  read_best_of(in, limits, request);
  const std::size_t choices = request.prompts.size() * request.generated();
  if (choices > limits.choices_max)
    in.wrong(request.best_of > request.n ? "best_of" : "n",
             "times the number of prompts is " + std::to_string(choices)
               + ", more than " + std::to_string(limits.choices_max));
  in.integer("logprobs", 0, completion_request::logprobs_max, request.logprobs);
  in.flag("echo", request.echo);
  if (request.max_tokens == 0 && !request.echo)
    in.wrong("max_tokens", "is 0, which is only allowed with echo");
  refuse_unsupported_completion(in);
  if (!in.ok())
    return std::move(in.mistake());
  return request;
}

} // namespace shoal::openai
