// actors/gateway/completion_rules.cpp -- tokens, sampling, what comes again.
#include "actors/gateway/completion_rules.hpp"

#include "runtime/files/sha256.hpp"
#include "runtime/model/stage_model.hpp" // valid_ids

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

namespace shoal::actors {

using openai::invalid_request;

std::variant<std::vector<completion_prompt>, openai::api_error>
prompts_of(const openai::completion_request& asked, const served_model& model) {
  std::vector<completion_prompt> out;
  for (const openai::prompt& p : asked.prompts) {
    completion_prompt& to = out.emplace_back();
    if (const auto* ids = std::get_if<std::vector<openai::token_id>>(&p)) {
      to.ids = *ids;
      if (!model::valid_ids(model.config().model, to.ids))
        return invalid_request(
          "prompt: has an id that is not below "
            + std::to_string(model.config().model.vocab_size),
          "prompt");
      model::text_decoder text(model.text()->tokenizer.get());
      if (asked.echo)
        for (const auto id : to.ids)
          to.text += text.push(id);
    } else if (!model.text()->tokenizer) {
      return invalid_request(
        "prompt: must be token ids, since the model has no "
        "text: "
          + model.text()->no_text,
        "prompt");
    } else {
      to.text = std::get<std::string>(p);
      auto ids = model::text_encoder(*model.text()->tokenizer).encode(to.text);
      if (!ids)
        return invalid_request("prompt: " + ids.message(), "prompt");
      to.ids = *std::move(ids);
    }
    if (to.ids.empty())
      return invalid_request("prompt: has no tokens", "prompt");
    if (asked.echo && asked.logprobs
        && to.ids.size() > core::serving::scored_max)
      return invalid_request("echo: with logprobs, a prompt may have "
                               + std::to_string(core::serving::scored_max)
                               + " tokens; it has "
                               + std::to_string(to.ids.size()),
                             "echo");
    const std::uint64_t all = to.ids.size() + asked.max_tokens;
    if (all <= model.config().context)
      continue;
    const char* const field =
      to.ids.size() >= model.config().context ? "prompt" : "max_tokens";
    return invalid_request(
      std::string(field) + ": the prompt has " + std::to_string(to.ids.size())
        + " tokens, with max_tokens " + std::to_string(all)
        + "; the model's context has " + std::to_string(model.config().context),
      field, "context_length_exceeded");
  }
  return out;
}

core::sampling_wish sampling_of(const openai::completion_request& asked,
                                const served_model& model) {
  const model::generation_defaults& said = model.text()->defaults;
  core::sampling_wish out;
  out.temperature =
    double(asked.temperature.value_or(said.temperature.value_or(1)));
  out.top_k = std::min(asked.top_k.value_or(said.top_k.value_or(0)),
                       std::uint32_t(model.config().model.vocab_size));
  out.top_p = double(asked.top_p.value_or(said.top_p.value_or(1)));
  out.min_p = double(asked.min_p.value_or(said.min_p.value_or(0)));
  out.repetition_penalty = double(
    asked.repetition_penalty.value_or(said.repetition_penalty.value_or(1)));
  out.logprobs = asked.logprobs.value_or(0);
  return out;
}

std::uint64_t
seed_of(const runtime::http_request& x, const openai::completion_request& asked,
        std::uint64_t random) {
  if (asked.seed)
    return *asked.seed;
  const std::string* const key = x.header("idempotency-key");
  if (!key)
    return random;
  const auto hash = runtime::sha256(std::as_bytes(std::span(*key)));
  std::uint64_t out = 0;
  std::memcpy(&out, hash.data(), sizeof out);
  return out;
}

std::variant<std::uint64_t, openai::api_error>
skip_of(const runtime::http_request& x,
        const openai::completion_request& asked) {
  const std::string* const last = x.header("last-event-id");
  if (!last)
    return std::uint64_t{0};
  constexpr char field[] = "Last-Event-ID";
  const auto number = openai::parse_event_id(*last);
  if (!number)
    return invalid_request("Last-Event-ID: is no number of an event", field);
  if (!asked.stream || asked.prompts.size() * asked.n != 1)
    return invalid_request("Last-Event-ID: a stream of one choice can be "
                           "continued, and nothing else",
                           field);
  if (!asked.seed && !x.header("idempotency-key"))
    return invalid_request("Last-Event-ID: needs the Idempotency-Key of the "
                           "first request, or a seed",
                           field);
  return *number;
}

} // namespace shoal::actors
