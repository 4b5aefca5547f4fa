// actors/serving/row_results.cpp -- probabilities and choices, row by row.
#include "actors/serving/row_results.hpp"

#include "kernels/backend.hpp"
#include "runtime/model/decode/generate.hpp" // usable

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace shoal::actors {

namespace {

using logits_view = std::span<const float>;

/// A token, and the most probable ones.
core::served_token served(kernels::backend& device, logits_view logits_V,
                          model::token_id id, std::size_t top) {
  std::vector<kernels::sampled_token> likely(std::min(top, logits_V.size()));
  core::served_token out;
  out.token = id;
  out.logprob = double(device.logprobs(logits_V, id, likely));
  for (const kernels::sampled_token& t : likely)
    if (std::isfinite(t.logprob)) // else a rule forbids it
      out.top.push_back({t.id, double(t.logprob)});
  return out;
}

core::served_token choose(kernels::backend& device, const core::row_choice& c,
                          std::size_t behind, logits_view logits_V) {
  std::vector<kernels::token_bias> biases;
  for (const core::token_bias& b : c.how.biases)
    biases.push_back({b.token, float(b.bias)});
  std::vector<kernels::token_count> counts;
  for (const core::token_count& t : c.counts)
    counts.push_back({t.token, t.count});
  const kernels::sampling_options how{
    .temperature = float(c.how.temperature),
    .top_k = c.how.top_k,
    .top_p = float(c.how.top_p),
    .min_p = float(c.how.min_p),
    .repetition_penalty = float(c.how.repetition_penalty),
    .seen = c.seen,
    .biases = biases,
    .frequency_penalty = float(c.how.frequency_penalty),
    .presence_penalty = float(c.how.presence_penalty),
    .chosen = counts};
  auto random = kernels::sampling_generator::after(
    c.how.seed, c.drawn + std::uint32_t(behind));
  const auto chosen = device.sample(logits_V, how, random);
  if (c.how.logprobs > 0)
    return served(device, logits_V, chosen.id, c.how.logprobs);
  return {chosen.id, double(chosen.logprob), {}};
}

core::row_result broken_row(std::uint64_t sequence) {
  core::row_result out;
  out.sequence = sequence;
  out.broken = true;
  return out;
}

/// What comes next in a text that keeps to a rule.
core::row_result
with_rule(kernels::backend& device, const core::row_choice& c,
          logits_view logits_V, ruled_text& text, core::row_result out) {
  if (text.now() == ruled_text::state::goes_on) {
    if (!model::usable(logits_V))
      return broken_row(out.sequence);
    if (std::vector<float> masked; text.masked(logits_V, masked)) {
      out.tokens.push_back(choose(device, c, 0, masked));
      text.add(out.tokens.back().token);
    }
  }
  // A text that is stuck now says so when the next token is asked for.
  out.complete = text.now() == ruled_text::state::complete;
  out.stuck = text.now() == ruled_text::state::stuck && out.tokens.empty();
  return out;
}

} // namespace

core::row_result
result_of(kernels::backend& device, const core::serve_row& r,
          logits_view logits, std::size_t vocabulary, ruled_text* rule) {
  core::row_result out;
  out.sequence = r.sequence;
  std::size_t row = 0;
  const auto next = [&] {
    return logits.subspan(row++ * vocabulary, vocabulary);
  };
  if (r.scores)
    for (const core::token_id id : r.scores->tokens) {
      const logits_view logits_V = next();
      if (!model::usable(logits_V))
        return broken_row(r.sequence);
      out.scored.push_back(served(device, logits_V, id, r.scores->top));
    }
  if (!r.choice)
    return out;
  out.waits = r.choice->ruled && (!rule || !rule->ready());
  if (out.waits)
    return out;
  if (rule)
    return with_rule(device, *r.choice, next(), *rule, std::move(out));
  for (std::size_t i = 0; i <= r.guesses; ++i) {
    const logits_view logits_V = next();
    if (!model::usable(logits_V))
      return broken_row(r.sequence);
    out.tokens.push_back(choose(device, *r.choice, i, logits_V));
    if (i == r.guesses)
      break;
    const std::size_t guess = r.tokens.size() - r.guesses + i;
    if (out.tokens.back().token != r.tokens[guess])
      break; // the rest follows from another token
  }
  return out;
}

core::row_result
pooled_result_of(const core::serve_row& r, std::span<const float> normed,
                 std::size_t width, pooled_sum* sum) {
  core::row_result out;
  out.sequence = r.sequence;
  out.broken =
    !std::ranges::all_of(normed, [](float x) { return std::isfinite(x); });
  std::vector<float> mean_D;
  if (sum) {
    if (r.first == 0) // it may have lost its pages, and begins again
      *sum = {std::vector<double>(width), 0};
    out.broken = out.broken || sum->tokens != r.first;
    if (out.broken)
      return out;
    for (std::size_t i = 0; i != normed.size(); ++i)
      sum->sum_D[i % width] += double(normed[i]);
    sum->tokens += r.tokens.size();
    for (const double x : sum->sum_D)
      mean_D.push_back(float(x / double(sum->tokens)));
    normed = mean_D;
  }
  if (!r.pooled->ends || out.broken)
    return out;
  out.pooled.resize(width * sizeof(float));
  std::memcpy(out.pooled.data(), normed.data(), out.pooled.size());
  return out;
}

} // namespace shoal::actors
