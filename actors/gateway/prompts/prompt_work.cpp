// actors/gateway/prompts/prompt_work.cpp -- one function for each kind of request.
#include "actors/gateway/prompts/prompt_work.hpp"

#include "runtime/anthropic/messages_request.hpp"
#include "runtime/model/stage_model.hpp" // valid_ids
#include "runtime/openai/embeddings.hpp"
#include "runtime/openai/responses/responses_request.hpp"
#include "runtime/openai/token_requests.hpp"

#include <algorithm>
#include <ctime>
#include <span>
#include <type_traits>

namespace shoal::actors {

namespace {

using openai::api_error;
using result = decltype(prompt_answer::what);

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm out{};
  localtime_r(&now, &out);
  return out;
}

class prompt_work {
public:
  prompt_work(const runtime::http_request& request, const prompt_models& models,
              std::uint64_t random)
    : request_(request), models_(models), random_(random) {}

  prompt_answer run(http_question what) {
    prompt_answer out;
    out.what = answer(what);
    out.model = name_;
    return out;
  }

private:
  result answer(http_question what) {
    const std::string& body = request_.body;
    switch (what) {
    case http_question::completion:
      return with(openai::parse_completion(body), false,
                  [this](auto& r, auto& m) { return complete(r, m); });
    case http_question::chat:
      return with(openai::parse_chat(body), false,
                  [this](auto& r, auto& m) { return chat(r, m); });
    case http_question::responses:
      return renamed(with(openai::parse_responses(body), false,
                          [this](auto& r, auto& m) { return chat(r, m); }),
                     openai::responses_request::names);
    case http_question::messages:
      return renamed(with(anthropic::parse_messages(body), false,
                          [this](auto& r, auto& m) { return chat(r, m); }),
                     anthropic::messages_request::names);
    case http_question::count_tokens:
      return with(anthropic::parse_count_tokens(body), false,
                  [this](auto& r, auto& m) { return count(r, m); });
    case http_question::embeddings:
      return renamed(with(openai::parse_embeddings(body), false,
                          [this](auto& r, auto& m) { return embed(r, m); }),
                     openai::embedding_request::names);
    case http_question::tokenize:
      return with(openai::parse_tokenize(body), true,
                  [this](auto& r, auto& m) { return tokenize(r, m); });
    case http_question::detokenize:
      return with(openai::parse_detokenize(body), true,
                  [this](auto& r, auto& m) { return detokenize(r, m); });
    default:
      return with(openai::parse_apply_template(body), true,
                  [this](auto& r, auto& m) { return apply_template(r, m); });
    }
  }

  /// @param any  without a name, the only model is meant
  template <class Request, class Then>
  result with(std::variant<Request, api_error> parsed, bool any, Then then) {
    if (auto* wrong = std::get_if<api_error>(&parsed))
      return std::move(*wrong);
    auto& asked = std::get<Request>(parsed);
    name_ = asked.model;
    if (any && name_.empty() && models_.size() == 1)
      name_ = models_.front()->name;
    const auto at = std::ranges::find_if(
      models_, [&](const auto& m) { return m->name == name_; });
    if (at == models_.end())
      return openai::model_not_found(name_);
    if (!(*at)->text)
      return waits_for_text{};
    return then(asked, **at);
  }

  /// What all requests for text share.
  template <class Request>
  result finish(const Request& options, bool chat,
                std::vector<completion_prompt> prompts,
                const prompt_model& model, openai::answer_format format = {}) {
    auto writer = make_writer(options);
    auto after = last_event_of(request_, options, prompts.size() * options.n,
                               writer->continues());
    if (auto* wrong = std::get_if<api_error>(&after))
      return std::move(*wrong);
    auto how = sampling_of(options, model);
    if (auto* wrong = std::get_if<api_error>(&how))
      return std::move(*wrong);
    openai::wanted_calls calls;
    if constexpr (std::is_base_of_v<openai::chat_request, Request>)
      calls = options.calls;
    auto rule = rule_of(options, calls, format, model);
    if (auto* wrong = std::get_if<api_error>(&rule))
      return std::move(*wrong);
    auto filter = filter_of(options, model);
    if (auto* wrong = std::get_if<api_error>(&filter))
      return std::move(*wrong);
    text_request out{options,
                     std::move(writer),
                     chat,
                     std::move(prompts),
                     std::get<std::optional<openai::event_id>>(after),
                     key_of(request_, options),
                     std::get<core::sampling_wish>(std::move(how)),
                     format,
                     std::get<checked_rule>(std::move(rule)),
                     std::get<checked_filter>(std::move(filter))};
    out.how.seed = seed_of(request_, options, random_);
    return out;
  }

  result
  complete(openai::completion_request& asked, const prompt_model& model) {
    auto prompts = prompts_of(asked, model);
    if (auto* wrong = std::get_if<api_error>(&prompts))
      return std::move(*wrong);
    return finish(asked, false,
                  std::get<std::vector<completion_prompt>>(std::move(prompts)),
                  model);
  }

  result embed(openai::embedding_request& asked, const prompt_model& model) {
    const auto width = std::uint64_t(model.config.model.hidden_size);
    if (asked.dimensions && *asked.dimensions != width)
      return openai::invalid_request(
        "dimensions: is " + std::to_string(*asked.dimensions)
          + "; embeddings of this model have " + std::to_string(width)
          + " values, and it is not known to be trained for fewer",
        "dimensions");
    auto prompts = prompts_of(asked, model, asked.add_special_tokens);
    if (auto* wrong = std::get_if<api_error>(&prompts))
      return std::move(*wrong);
    result out = finish(
      asked, false,
      std::get<std::vector<completion_prompt>>(std::move(prompts)), model);
    if (auto* ready = std::get_if<text_request>(&out))
      ready->pooled = model.config.pooled;
    return out;
  }

  /// A conversation, whatever its API.
  template <class Chat>
  result chat(Chat& asked, const prompt_model& model) {
    auto prompt = prompt_of(asked, model, local_time());
    if (auto* wrong = std::get_if<api_error>(&prompt))
      return std::move(*wrong);
    auto& made = std::get<chat_prompt>(prompt);
    return finish(asked, true, {std::move(made.prompt)}, model, made.format);
  }

  result count(openai::chat_request& asked, const prompt_model& model) {
    auto tokens = tokens_of(std::move(asked.asked), model, local_time());
    if (auto* wrong = std::get_if<api_error>(&tokens))
      return std::move(*wrong);
    return anthropic::count_json(
      std::get<std::vector<core::token_id>>(tokens).size());
  }

  /// Says in errors what the API calls their fields.
  static result renamed(result out, std::span<const openai::field_name> names) {
    if (auto* wrong = std::get_if<api_error>(&out))
      rename_fields(*wrong, names);
    return out;
  }

  static api_error no_text(const prompt_model& model) {
    return openai::invalid_request("the model has no tokenizer: "
                                   + model.text->no_text);
  }

  result tokenize(openai::tokenize_request& asked, const prompt_model& model) {
    if (!model.text->tokenizer)
      return no_text(model);
    std::vector<core::token_id> ids;
    if (auto* talk = std::get_if<openai::conversation>(&asked.from)) {
      auto tokens = tokens_of(std::move(*talk), model, local_time());
      if (auto* wrong = std::get_if<api_error>(&tokens))
        return std::move(*wrong);
      ids = std::get<std::vector<core::token_id>>(std::move(tokens));
    } else {
      const auto& text = std::get<std::string>(asked.from);
      const core::text_range all{0, text.size()};
      auto tokens = model::text_encoder(*model.text->tokenizer)
                      .encode(text, asked.add_special_tokens,
                              std::span(&all, asked.parse_special ? 0 : 1));
      if (!tokens)
        return openai::invalid_request("prompt: " + tokens.message(), "prompt");
      ids = *std::move(tokens);
    }
    return openai::tokenize_json(
      asked, ids,
      [&model](core::token_id id) { return model.text->tokenizer->piece(id); },
      model.config.context);
  }

  static std::string
  text_of(std::span<const core::token_id> ids, const prompt_model& model) {
    const auto* const file = model.text->tokenizer->file();
    return file ? file->decode(ids, false)
                : model::byte_tokenizer().decode(ids);
  }

  result
  detokenize(openai::detokenize_request& asked, const prompt_model& model) {
    if (!model.text->tokenizer)
      return no_text(model);
    if (!model::valid_ids(model.config.model, asked.tokens))
      return openai::invalid_request(
        "tokens: has an id that is not below "
          + std::to_string(model.config.model.vocab_size),
        "tokens");
    return openai::detokenize_json(text_of(asked.tokens, model));
  }

  result
  apply_template(openai::template_request& asked, const prompt_model& model) {
    auto text = rendered(std::move(asked.asked), model, local_time());
    if (auto* wrong = std::get_if<api_error>(&text))
      return std::move(*wrong);
    return openai::apply_template_json(
      std::get<jinja::marked_text>(text).bytes);
  }

  const runtime::http_request& request_;
  const prompt_models& models_;
  std::uint64_t random_;
  std::string name_;
};

} // namespace

prompt_answer prepare(http_question what, const runtime::http_request& request,
                      const prompt_models& models, std::uint64_t random) {
  return prompt_work(request, models, random).run(what);
}

} // namespace shoal::actors
