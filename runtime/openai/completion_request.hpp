// runtime/openai/completion_request.hpp -- the body of POST /v1/completions.
//
// Parsing checks everything that can be checked without the model; what depends
// on it (its name, its vocabulary, the length of its context) is the gateway's
// to check. Fields that are unknown are ignored, as OpenAI's API does.
//
// Differences from the API: top_k, min_p, repetition_penalty, stop_token_ids,
// ignore_eos, return_token_ids, include_stop_str_in_output, skip_special_tokens,
// truncate_prompt_tokens and stream_options.continuous_usage_stats are taken, as
// vLLM's server does. Refused with an error that names the field: suffix. n above 1
// at temperature 0 is allowed (all equal).
// null stands for the default of every field but model and prompt.
//
// Threads: any. Cost: linear in the body.
// Errors:  an api_error with status 400 and the name of the field.
// Source:  https://platform.openai.com/docs/api-reference/completions
#pragma once

#include "runtime/openai/generation_options.hpp"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shoal::openai {

struct completion_limits : request_limits {
  std::size_t prompts_max = 64;            ///< prompts in one request
  std::size_t prompt_bytes_max = 1 << 22;  ///< of all texts together
  std::size_t prompt_tokens_max = 1 << 20; ///< of all ids together
  std::uint32_t choices_max = 128;         ///< prompts times n or best_of
};

/// A text, or the ids of its tokens.
using prompt = std::variant<std::string, std::vector<token_id>>;

struct completion_request : generation_options {
  /// OpenAI's default. Unlike the sampling options, which a model's own
  /// generation_config may set, it does not depend on the model.
  static constexpr std::uint32_t max_tokens_default = 16;
  static constexpr std::uint32_t logprobs_max = 5;

  /// At least one; lists of ids are not empty. Choice i * n + k is the k-th of
  /// prompt i.
  std::vector<prompt> prompts;
};

class fields;
/// Reads the prompts of a field in their four forms. For this folder's sources.
std::vector<prompt>
read_prompts(fields& in, const char* name, const completion_limits& limits);

/// @returns the request, or what is wrong with it
[[nodiscard]] std::variant<completion_request, api_error>
parse_completion(std::string_view body, const completion_limits& limits = {});

} // namespace shoal::openai
