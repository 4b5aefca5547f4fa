// runtime/openai/completion_request.hpp -- the body of POST /v1/completions.
//
// Parsing checks everything that can be checked without the model; what depends
// on it (its name, its vocabulary, the length of its context) is the gateway's
// to check. Fields that are unknown are ignored, as OpenAI's API does.
//
// Differences from the API: top_k, min_p, repetition_penalty, ignore_eos and
// return_token_ids are taken, as vLLM's server does. Refused with an error that
// names the field: suffix; best_of unless it is n; presence_penalty and
// frequency_penalty unless 0; logit_bias unless empty. n above 1 at temperature 0 is allowed (all equal).
// null stands for the default of every field but model and prompt.
//
// Threads: any. Cost: linear in the body.
// Errors:  an api_error with status 400 and the name of the field.
// Source:  https://platform.openai.com/docs/api-reference/completions
#pragma once

#include "runtime/openai/api_error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shoal::openai {

using token_id = std::int32_t; // as in kernels and in core/serving

struct completion_limits {
  std::size_t prompts_max = 64;            ///< prompts in one request
  std::size_t prompt_bytes_max = 1 << 22;  ///< of all texts together
  std::size_t prompt_tokens_max = 1 << 20; ///< of all ids together
  std::uint32_t n_max = 64;                ///< completions of each prompt
  std::uint32_t choices_max = 128;         ///< prompts times n
  std::uint32_t tokens_max = 1 << 20;      ///< max_tokens
  std::size_t stops_max = 16;              ///< stop strings
  std::size_t stop_bytes_max = 256;        ///< of one stop string
  /// Numbers, texts, lists and objects in the whole body: each costs memory.
  std::size_t values_max = (1 << 20) + 4096;
  std::size_t name_bytes_max = 512; ///< model, user
};

/// A text, or the ids of its tokens.
using prompt = std::variant<std::string, std::vector<token_id>>;

struct completion_request {
  /// OpenAI's default. Unlike the sampling options, which a model's own
  /// generation_config may set, it does not depend on the model.
  static constexpr std::uint32_t max_tokens_default = 16;
  static constexpr std::uint32_t logprobs_max = 5;

  std::string model; ///< "": not given
  /// At least one; lists of ids are not empty. Choice i * n + k is the k-th of
  /// prompt i.
  std::vector<prompt> prompts;
  std::uint32_t max_tokens = max_tokens_default; ///< 0 only with echo

  /// Nothing: the model's default, else 1, 1, 0 (all), 0, 1.
  std::optional<float> temperature;        ///< 0 .. 2; 0 = greedy
  std::optional<float> top_p;              ///< above 0, at most 1
  std::optional<std::uint32_t> top_k;      ///< 0 = all (-1 is taken for it)
  std::optional<float> min_p;              ///< 0 .. 1
  std::optional<float> repetition_penalty; ///< above 0, at most 10
  std::optional<std::uint64_t> seed;       ///< of any sign, as 64 bits

  std::uint32_t n = 1;           ///< at least one
  std::vector<std::string> stop; ///< none is empty
  bool stream = false;
  bool include_usage = false;            ///< stream_options.include_usage
  std::optional<std::uint32_t> logprobs; ///< 0 .. 5: also of so many others
  bool echo = false;                     ///< the prompt precedes the text
  std::string user;                      ///< "": not given
  bool ignore_eos = false;               ///< the model cannot end the text
  bool return_token_ids = false;         ///< the answer has ids beside texts
};

/// @returns the request, or what is wrong with it
[[nodiscard]] std::variant<completion_request, api_error>
parse_completion(std::string_view body, const completion_limits& limits = {});

} // namespace shoal::openai
