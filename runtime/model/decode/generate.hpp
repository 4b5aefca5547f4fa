// runtime/model/decode/generate.hpp -- text from a model, token by token.
//
// generation is the pure part: it takes logits and decides which token comes
// next, which text is complete and whether to stop. So stages on other machines
// can produce the logits. generate() runs it with one stage that holds the
// whole model.
#pragma once

#include "kernels/inference/sampling.hpp"
#include "runtime/core/grammar/token_masks.hpp"
#include "runtime/model/decode/paged_cache.hpp"
#include "runtime/model/decode/token_text.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace shoal::model {

struct generate_options {
  std::size_t max_tokens = 128; ///< new tokens; bounded by the positions left
  float temperature = 1.0f;     ///< 0 = greedy
  std::uint32_t top_k = 0;      ///< 0 = all
  float top_p = 1.0f;           ///< 1 = all
  float min_p = 0.0f;           ///< 0 = all
  /// For tokens of the prompt and the text so far; 1 = none.
  float repetition_penalty = 1.0f;
  std::uint64_t seed = 0;
  std::vector<std::string> stop; ///< text ends before the first of these
  bool stop_at_eos = true;
  /// Used instead of the end tokens of config.json.
  std::optional<std::vector<std::int32_t>> eos_token_ids = {};
  /// The grammar that the text keeps to; null: any text. The text ends where the
  /// grammar leaves nothing to add, and by an end token only where it may end.
  std::shared_ptr<core::grammar::token_masks> only = {};
};

/// Checks ranges and limits; names the option.
status check(const generate_options& options);

enum class finish_reason : std::uint8_t {
  none,   ///< not finished
  length, ///< max_tokens, or no position left
  stop,   ///< eos, or a stop string
  aborted ///< by the callback
};

/// One new token.
struct generated_token {
  token_id id = 0;
  float logprob = 0; ///< of the model, before temperature and filters
  /// Text that is complete and safe to print now. The rest is held back while
  /// it could become a stop string or half a character.
  std::string text;
  finish_reason finish = finish_reason::none;
};

/// Whether a token can be chosen: no logit is NaN, and at least one is finite.
bool usable(std::span<const float> logits_V);

/// The state of one request between tokens.
class generation {
public:
  /// `by` may be null: then there is no text. `room` is the number of tokens
  /// that may follow. @pre check(options) succeeds
  generation(const model_config& config, const tokenizer* by,
             generate_options options, std::size_t room);

  /// Takes the tokens before, on which the text of the first token may depend.
  /// @pre no token has been chosen
  void after(std::span<const token_id> prompt);
  /// Chooses the next token. @pre finish() == none, usable(logits_V)
  generated_token
  next(kernels::backend& device, std::span<const float> logits_V);
  finish_reason finish() const noexcept { return finish_; }
  /// Whether it has stopped since no token can go on with an unfinished text, as
  /// far as that is known of a very ambiguous grammar.
  bool lacks_tokens() const {
    return lost_ || (kept_ && allowed_->empty() && !kept_->may_end());
  }

private:
  void remember(token_id id);
  std::span<const float> masked(std::span<const float> logits_V);
  /// Finds the tokens that the grammar allows next. @returns whether there are
  /// any
  bool find_allowed();

  std::vector<std::int32_t> eos_;
  token_text text_;
  generate_options options_;
  kernels::sampling_generator random_;
  std::vector<bool> known_;    ///< by id; empty if not needed
  std::vector<token_id> seen_; ///< the ids that are known
  std::optional<core::grammar::constrained_text> kept_; ///< to the grammar
  std::optional<core::grammar::token_set> allowed_;     ///< next
  bool lost_ = false; ///< the grammar is too ambiguous (grammar::stacks_max)
  std::vector<float> logits_; ///< of these
  std::size_t left_;
  finish_reason finish_ = finish_reason::none;
};

/// The result of a whole generation.
struct generated {
  std::vector<token_id> ids;
  std::vector<float> logprobs;
  std::string text;
  finish_reason finish = finish_reason::none;
};

/// Called for each token; false ends the generation.
using token_callback = std::function<bool(const generated_token&)>;

/// Fails if the model cannot take the prompt, or has no position left after it.
status
check_prompt(const model_config& config, std::span<const token_id> prompt);

/// Generates after `prompt`. @pre the stage has all units
/// @param kv the type of the cache; nothing: usual_kv_type()
result<generated>
generate(inference_stage& model, const tokenizer* by,
         std::span<const token_id> prompt, const generate_options& options,
         const token_callback& each = {}, std::optional<kv_type> kv = {});
/// The same with the parameters of a stage that trains.
result<generated>
generate(stage_model& model, const tokenizer* by,
         std::span<const token_id> prompt, const generate_options& options,
         const token_callback& each = {});

} // namespace shoal::model
