// runtime/model/decode/generate.cpp -- text from a model, token by token.
#include "runtime/model/decode/generate.hpp"

#include "kernels/backend.hpp"
#include "runtime/core/text/amounts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::model {

status check(const generate_options& o) {
  if (o.max_tokens == 0)
    return failure{"max_tokens: must be at least 1"};
  if (!std::isfinite(o.temperature) || o.temperature < 0)
    return failure{"temperature: must be 0 or more"};
  if (!(o.top_p > 0 && o.top_p <= 1))
    return failure{"top_p: must be above 0 and at most 1"};
  if (!(o.min_p >= 0 && o.min_p <= 1))
    return failure{"min_p: must be from 0 to 1"};
  if (!(o.repetition_penalty > 0) || !std::isfinite(o.repetition_penalty)
      || !std::isfinite(1 / o.repetition_penalty))
    return failure{"repetition_penalty: must be above 0"};
  if (o.stop.size() > stop_strings_max)
    return failure{"stop: at most " + std::to_string(stop_strings_max)
                   + " strings"};
  for (const std::string& s : o.stop) {
    if (s.empty() || s.size() > stop_bytes_max)
      return failure{"stop: a string must have 1 to "
                     + std::to_string(stop_bytes_max) + " bytes"};
  }
  return done{};
}

bool usable(std::span<const float> logits_V) {
  bool finite = false;
  for (const float x : logits_V) {
    if (std::isnan(x) || x == HUGE_VALF)
      return false;
    finite = finite || std::isfinite(x);
  }
  return finite;
}

generation::generation(const model_config& config, const tokenizer* by,
                       generate_options options, std::size_t room)
  : text_(by, options.stop),
    options_(std::move(options)), random_{options_.seed},
    left_(std::min(options_.max_tokens, room)),
    finish_(left_ == 0 ? finish_reason::length : finish_reason::none) {
  if (options_.stop_at_eos)
    eos_ = options_.eos_token_ids.value_or(config.eos_token_ids);
  if (options_.repetition_penalty != 1)
    known_.resize(config.vocab_size);
  if (options_.only) {
    kept_.emplace(options_.only);
    allowed_.emplace(options_.only->tokens().size());
    if (!find_allowed() && finish_ == finish_reason::none)
      finish_ = finish_reason::stop;
  }
}

bool generation::find_allowed() {
  kept_->allowed(*allowed_);
  return !allowed_->empty();
}

/// The logits, with those of tokens that are not allowed at minus infinity.
std::span<const float> generation::masked(std::span<const float> logits_V) {
  const std::size_t known = options_.only->tokens().size();
  logits_.assign(logits_V.size(), -HUGE_VALF);
  for (std::size_t v = 0; v < std::min(known, logits_V.size()); ++v)
    if (allowed_->has(static_cast<core::grammar::token>(v)))
      logits_[v] = std::max(logits_V[v], std::numeric_limits<float>::lowest());
  if (kept_->may_end())
    for (const std::int32_t id : eos_)
      if (static_cast<std::size_t>(id) < logits_V.size())
        logits_[static_cast<std::size_t>(id)] =
          logits_V[static_cast<std::size_t>(id)];
  return logits_;
}

void generation::after(std::span<const token_id> prompt) {
  if (
    !kept_) // else it is a text of its own, whose first token is judged as such
    text_.after(prompt);
  for (const token_id id : prompt)
    remember(id);
}

void generation::remember(token_id id) {
  const auto at = static_cast<std::size_t>(id);
  if (known_.empty() || known_.at(at))
    return;
  known_[at] = true;
  seen_.push_back(id);
}

generated_token
generation::next(kernels::backend& device, std::span<const float> logits_V) {
  SHOAL_ASSERT(finish_ == finish_reason::none && left_ > 0);
  const kernels::sampling_options how{.temperature = options_.temperature,
                                      .top_k = options_.top_k,
                                      .top_p = options_.top_p,
                                      .min_p = options_.min_p,
                                      .repetition_penalty =
                                        options_.repetition_penalty,
                                      .seen = seen_};
  const auto sampled =
    device.sample(kept_ ? masked(logits_V) : logits_V, how, random_);
  remember(sampled.id);
  --left_;
  generated_token token{sampled.id, sampled.logprob, {}, finish_reason::none};
  const bool at_eos = std::ranges::find(eos_, token.id) != eos_.end();
  bool complete = at_eos;
  if (!at_eos) {
    token.text = text_.push(token.id);
    if (kept_) {
      const bool added =
        kept_->add(static_cast<core::grammar::token>(token.id));
      lost_ = !added;
      complete = lost_ || !find_allowed();
    }
  }
  if (complete || left_ == 0) {
    token.text += text_.finish();
    finish_ = complete ? finish_reason::stop : finish_reason::length;
  }
  if (text_.stopped())
    finish_ = finish_reason::stop;
  token.finish = finish_;
  return token;
}

status
check_prompt(const model_config& config, std::span<const token_id> prompt) {
  if (prompt.empty())
    return failure{"the prompt is empty: give at least one token"};
  if (prompt.size() >= config.max_position_embeddings)
    return failure{
      "the prompt has " + core::count_text(prompt.size(), "token")
      + "; the model has "
      + core::count_text(config.max_position_embeddings, "position")};
  if (!valid_ids(config, prompt))
    return failure{"the prompt has an id that is not below vocab_size ("
                   + std::to_string(config.vocab_size) + ")"};
  return done{};
}

result<generated>
generate(inference_stage& model, const tokenizer* by,
         std::span<const token_id> prompt, const generate_options& options,
         const token_callback& each, std::optional<kv_type> kv) {
  const model_config& config = model.config();
  SHOAL_ASSERT(model.has_embedding() && model.has_head());
  if (status checked = check(options); !checked)
    return checked.why();
  if (status checked = check_prompt(config, prompt); !checked)
    return checked.why();
  const std::size_t room = config.max_position_embeddings - prompt.size();
  const std::size_t positions =
    prompt.size() + std::min(options.max_tokens, room);
  const std::size_t pages = core::pages_for(positions);
  std::size_t window_pages =
    paged_cache::window_pages_for(config, batch_rows_max);
  if (window_pages >= pages)
    window_pages = 0;
  paged_cache cache(model, pages, kv.value_or(usual_kv_type(model)),
                    window_pages);
  generation state(config, by, options, room);
  state.after(prompt);
  aligned_buffer logits(config.vocab_size);
  std::size_t position = 0;
  const auto append = [&](std::span<const token_id> ids, bool last) {
    cache.compute(
      one_sequence(position, ids.size(), last ? 1 : 0, window_pages), ids, {},
      {}, last ? logits.span() : std::span<float>());
    position += ids.size();
  };
  while (prompt.size() - position > batch_rows_max)
    append(prompt.subspan(position, batch_rows_max), false);
  append(prompt.subspan(position), true);

  generated all;
  while (state.finish() == finish_reason::none) {
    if (!usable(logits.span()))
      return failure{"the model's output is not a number: its weights are "
                     "broken, or training has diverged"};
    const generated_token token = state.next(model.device(), logits.span());
    all.ids.push_back(token.id);
    all.logprobs.push_back(token.logprob);
    all.text += token.text;
    all.finish = token.finish;
    if (each && !each(token)) {
      if (all.finish == finish_reason::none)
        all.finish = finish_reason::aborted;
      break;
    }
    if (state.finish() == finish_reason::none)
      append({&token.id, 1}, true);
  }
  if (state.lacks_tokens())
    return failure{"the grammar asks for characters that the model's tokenizer "
                   "does not have, or is too ambiguous"};
  return all;
}

result<generated>
generate(stage_model& model, const tokenizer* by,
         std::span<const token_id> prompt, const generate_options& options,
         const token_callback& each) {
  inference_stage views(model);
  return generate(views, by, prompt, options, each);
}

} // namespace shoal::model
