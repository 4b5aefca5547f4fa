// actors/gateway/prompts/completion_rules.hpp -- what of a request depends on its model.
//
// openai::parse_completion() and its like have checked the rest.
//
// Threads: any. Errors: an api_error that names the field.
#pragma once

#include "actors/gateway/prompts/prompt_model.hpp"
#include "runtime/core/serving/serve_messages.hpp"
#include "runtime/http/http_exchange.hpp"
#include "runtime/openai/answer_parser.hpp"
#include "runtime/openai/chat_request.hpp"
#include "runtime/openai/completion_request.hpp"
#include "runtime/openai/completion_response.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace shoal::actors {

struct completion_prompt {
  std::vector<core::token_id> ids;
  std::string text; ///< for echo
};

/// The prompts as tokens. @pre the model's text is there
/// Makes max_tokens smaller where it was not given and the context has less room.
/// @param add_special  whether texts get the tokens that a text begins or ends with
std::variant<std::vector<completion_prompt>, openai::api_error>
prompts_of(openai::completion_request& asked, const prompt_model& model,
           bool add_special = true);

/// A conversation as the model's template writes it.
/// @param now  for the template
std::variant<jinja::marked_text, openai::api_error>
rendered(openai::conversation asked, const prompt_model& model,
         const std::tm& now);

/// The same as tokens. Special tokens are those that the template writes: what a
/// client writes is text.
std::variant<std::vector<core::token_id>, openai::api_error>
tokens_of(openai::conversation asked, const prompt_model& model,
          const std::tm& now);

/// The prompt of a chat, and what its answer may look like; sets max_tokens where
/// it was not given.
struct chat_prompt {
  completion_prompt prompt;
  openai::answer_format format;
};
std::variant<chat_prompt, openai::api_error>
prompt_of(openai::chat_request& asked, const prompt_model& model,
          const std::tm& now);

/// Whether a prompt fits into the model's context, with max_tokens if that was given,
/// else with one token.
/// @param prompt_field  the name of the field that has the prompt
std::optional<openai::api_error>
too_long(std::size_t prompt_tokens, const openai::generation_options& asked,
         const prompt_model& model, const char* prompt_field);

/// How tokens are drawn, but for the seed: as asked, else as the model's files
/// say.
std::variant<core::sampling_wish, openai::api_error>
sampling_of(const openai::generation_options& asked, const prompt_model& model);

/// What the text must be, which can be compiled; null: anything.
using checked_rule = std::shared_ptr<const core::text_rule>;
/// @param calls of tools that the text must have, or that must keep to schemas
std::variant<checked_rule, openai::api_error>
rule_of(const openai::generation_options& asked,
        const openai::wanted_calls& calls, const openai::answer_format& format,
        const prompt_model& model);

/// Which tokens may be chosen; null: all.
using checked_filter = std::shared_ptr<const core::token_filter>;
std::variant<checked_filter, openai::api_error>
filter_of(const openai::generation_options& asked, const prompt_model& model);

/// The seed that was asked for; else one that follows from the Idempotency-Key, so
/// that a request that is sent again gets the same tokens, also from another
/// gateway; else `random`.
std::uint64_t
seed_of(const runtime::http_request& x, const openai::generation_options& asked,
        std::uint64_t random);

/// Says of requests whether they are one that was sent again: a number of its
/// Idempotency-Key; 0: it has none, or its answer depends on probabilities, which only
/// computing gives.
std::uint64_t
key_of(const runtime::http_request& x, const openai::generation_options& asked);

/// The last event of a stream that the client has from before, by Last-Event-ID;
/// nothing: it begins.
/// @param choices  of the answer
/// @param continues  whether the request's API has a way to go on with a stream
std::variant<std::optional<openai::event_id>, openai::api_error>
last_event_of(const runtime::http_request& x,
              const openai::generation_options& asked, std::size_t choices,
              bool continues);

} // namespace shoal::actors
