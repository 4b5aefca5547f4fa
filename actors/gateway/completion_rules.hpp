// actors/gateway/completion_rules.hpp -- what of a request depends on its model.
//
// openai::parse_completion() has checked the rest.
//
// Threads: any. Errors: an api_error that names the field.
#pragma once

#include "actors/gateway/completion.hpp"
#include "actors/gateway/served_model.hpp"

#include <cstdint>
#include <variant>
#include <vector>

namespace shoal::actors {

/// The prompts as tokens. @pre the model's text() is there
std::variant<std::vector<completion_prompt>, openai::api_error>
prompts_of(const openai::completion_request& asked, const served_model& model);

/// How tokens are drawn, but for the seed: as asked, else as the model's files
/// say.
core::sampling_wish
sampling_of(const openai::completion_request& asked, const served_model& model);

/// The seed that was asked for; else one that follows from the Idempotency-Key, so
/// that a request that is sent again gets the same tokens, also from another
/// gateway; else `random`.
std::uint64_t
seed_of(const runtime::http_request& x, const openai::completion_request& asked,
        std::uint64_t random);

/// Tokens that the client has from before, by Last-Event-ID.
std::variant<std::uint64_t, openai::api_error>
skip_of(const runtime::http_request& x,
        const openai::completion_request& asked);

} // namespace shoal::actors
