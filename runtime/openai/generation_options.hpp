// runtime/openai/generation_options.hpp -- what requests for text have in common.
#pragma once

#include "runtime/core/text_rule.hpp"
#include "runtime/openai/api_error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::openai {

using token_id = std::int32_t; // as in kernels and in core/serving

class field_log;

struct request_limits {
  std::uint32_t n_max = 64;             ///< answers to each prompt
  std::uint32_t tokens_max = 1 << 20;   ///< max_tokens
  std::size_t stops_max = 16;           ///< stop strings, and stop_token_ids
  std::size_t stop_bytes_max = 256;     ///< of one stop string
  std::size_t biases_max = 1024;        ///< of logit_bias
  std::size_t bad_words_max = 256;      ///< half of core::serving::banned_max
  std::size_t bad_word_bytes_max = 256; ///< of one of them
  std::size_t allowed_ids_max = 16384;  ///< allowed_token_ids
  /// Numbers, texts, lists and objects in the whole body: each costs memory.
  std::size_t values_max = (1 << 20) + 4096;
  std::size_t name_bytes_max = 512; ///< model, user
  field_log* told = nullptr; ///< is told which fields are read (field_log.hpp)
};

struct generation_options {
  std::string model;            ///< "": not given
  std::uint32_t max_tokens = 0; ///< 0 only with echo, and of embeddings
  /// Else there may be as many, or fewer, as the model's context has room for.
  bool max_tokens_given = false;

  /// Nothing: the model's default, else 1, 1, 0 (all), 0, 1.
  std::optional<float> temperature;        ///< 0 .. 2; 0 = greedy
  std::optional<float> top_p;              ///< above 0, at most 1
  std::optional<std::uint32_t> top_k;      ///< 0 = all (-1 is taken for it)
  std::optional<float> min_p;              ///< 0 .. 1
  std::optional<float> repetition_penalty; ///< above 0, at most 10
  /// Of tokens of the answer so far; nothing: 0.
  std::optional<float> frequency_penalty;         ///< -2 .. 2: each time
  std::optional<float> presence_penalty;          ///< -2 .. 2: once
  std::vector<std::pair<token_id, float>> biases; ///< logit_bias: -100 .. 100
  std::optional<std::uint64_t> seed;              ///< of any sign, as 64 bits

  std::uint32_t n = 1; ///< at least one
  /// Answers that are generated, of which the n most probable are told; 0: n.
  std::uint32_t best_of = 0;
  std::uint32_t generated() const { return std::max(n, best_of); }
  std::vector<std::string> stop;        ///< none is empty
  std::vector<token_id> stop_token_ids; ///< end the text, beside the model's
  std::uint32_t min_tokens =
    0; ///< before the text may end by a token or a stop
  std::vector<std::string> bad_words; ///< that are not written; none is empty
  std::vector<token_id> allowed_token_ids; ///< no others are chosen; empty: all
  bool stream = false;
  bool include_usage = false; ///< stream_options.include_usage
  /// stream_options.continuous_usage_stats: also in every event.
  bool usage_in_events = false;
  std::optional<std::uint32_t>
    logprobs;                    ///< also of this number of other tokens
  bool echo = false;             ///< the prompt precedes the text
  std::string user;              ///< "": not given
  bool ignore_eos = false;       ///< the model cannot end the text
  bool return_token_ids = false; ///< the answer has ids beside texts
  bool include_stop = false;     ///< a stop string is a part of the text
  bool skip_special = true;      ///< the text has no special tokens
  bool parallel_calls = true; ///< else the first call of a tool ends the text
  /// Tokens at the prompt's end that are left of a longer one; -1: as many as the
  /// context has room for; 0: the prompt is taken as it is.
  std::int64_t prompt_tokens_kept = 0;
  /// What the text must be; nothing: any.
  std::optional<core::text_rule> rule;
  std::string rule_field; ///< that says so
};

} // namespace shoal::openai
