// kernels/inference/sampling.hpp -- the choice of the next token.
//
// Order: bias, repetition penalty, frequency and presence penalty, temperature,
// top-k, top-p, min-p, then one draw, as in transformers and vLLM. With temperature 0 the largest logit is taken (the
// lowest id among equals) and the generator is not used.
//
// Shapes:    V words in the vocabulary.
// Precision: probabilities in double; the same bits on every backend.
#pragma once

#include "kernels/common/tensor.hpp"

#include <span>

namespace shoal::kernels {

/// Random numbers for sampling; the same seed gives the same sequence on any
/// machine.
/// Source: S. Vigna's splitmix64 (public domain algorithm; G. Steele et al.:
/// Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
struct sampling_generator {
  std::uint64_t state = 0; ///< the seed, then the position in the sequence

  std::uint64_t next() noexcept;
  double next_unit() noexcept; ///< in [0, 1)

  /// The generator of a seed after this number of draws. A call of sample() with
  /// a temperature above 0 draws once.
  static sampling_generator
  after(std::uint64_t seed, std::uint64_t draws) noexcept;
};

/// What is added to the logit of a token.
struct token_bias {
  token_id id = 0;
  float bias = 0;
};
/// How often a token was chosen before.
struct token_count {
  token_id id = 0;
  std::uint32_t count = 0;
};

struct sampling_options {
  float temperature = 1.0f; ///< 0 = greedy; higher is more random
  std::uint32_t top_k = 0;  ///< keep the k most probable; 0 = all
  float top_p = 1.0f;       ///< keep the fewest with a sum >= p; 1 = all
  float min_p = 0.0f; ///< keep those with at least p times the top probability
  /// Positive logits of `seen` are divided by it, others multiplied by it;
  /// 1 = no change. Above 1 means fewer repetitions.
  float repetition_penalty = 1.0f;
  vector_view<const token_id> seen = {};     ///< each id once, in any order
  vector_view<const token_bias> biases = {}; ///< each id once; finite
  /// Logits of `chosen` lose frequency_penalty * count + presence_penalty.
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  vector_view<const token_count> chosen = {}; ///< each id once, counts above 0
};

struct sampled_token {
  token_id id = 0;
  float logprob = 0; ///< log softmax of the logits as given, before filters
};

/// Most tokens that logprobs() tells of at once: as many as OpenAI's API knows.
inline constexpr std::size_t likely_tokens_max = 20;

/// Part of kernels::backend.
struct sampling_ops {
  /// @pre V >= 1, temperature >= 0, 0 < top_p <= 1, 0 <= min_p <= 1, the
  /// repetition penalty is above 0, all ids are below V; no logit is NaN
  virtual sampled_token
  sample(vector_view<const float> logits_V, const sampling_options& options,
         sampling_generator& generator) = 0;

  /// Writes the most likely tokens with the log softmax of the logits, the
  /// likeliest first, equal ones by rising id. @returns that of token `of`
  /// @pre of < V; likely has at most V and likely_tokens_max; no logit is NaN
  virtual float logprobs(vector_view<const float> logits_V, token_id of,
                         std::span<sampled_token> likely) = 0;

protected:
  ~sampling_ops() = default;
};

} // namespace shoal::kernels
