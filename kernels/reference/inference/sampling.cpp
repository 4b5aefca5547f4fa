// kernels/reference/inference/sampling.cpp -- filters, then one draw.
#include "kernels/reference/inference/sampling.hpp"

#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shoal::kernels {

/// By which the state grows with each draw.
static constexpr std::uint64_t growth = 0x9e3779b97f4a7c15;

sampling_generator
sampling_generator::after(std::uint64_t seed, std::uint64_t draws) noexcept {
  return {seed + draws * growth};
}

std::uint64_t sampling_generator::next() noexcept {
  state += growth;
  auto z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double sampling_generator::next_unit() noexcept {
  return static_cast<double>(next() >> 11) * 0x1p-53;
}

namespace reference {

namespace {

/// The ids of the `keep` largest logits, by falling logit; equal logits by
/// rising id.
std::vector<token_id>
largest_ids(vector_view<const float> logits_V, std::size_t keep) {
  std::vector<token_id> ids(logits_V.size);
  std::iota(ids.begin(), ids.end(), 0);
  auto before = [&](token_id a, token_id b) {
    auto x = logits_V[static_cast<std::size_t>(a)];
    auto y = logits_V[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  auto middle = ids.begin() + static_cast<std::ptrdiff_t>(keep);
  std::partial_sort(ids.begin(), middle, ids.end(), before);
  ids.erase(middle, ids.end());
  return ids;
}

/// The number of weights, taken in order, that reach `bound`; all if none do.
std::size_t count_to(const std::vector<double>& weights, double bound) {
  double sum = 0;
  for (std::size_t i = 0; i != weights.size(); ++i)
    if ((sum += weights[i]) >= bound)
      return i + 1;
  return weights.size();
}

/// The tokens that pass the filters, with exp(logit / temperature) relative to
/// the largest one.
struct candidates {
  std::vector<token_id> ids;
  std::vector<double> weights;
};

candidates filter_by_sum(vector_view<const float> logits_V,
                         const sampling_options& options, double largest) {
  auto weight = [&](token_id id) {
    auto logit = double{logits_V[static_cast<std::size_t>(id)]};
    return std::exp((logit - largest) / double{options.temperature});
  };
  candidates c;
  auto weigh = [&] {
    c.weights.resize(c.ids.size());
    std::transform(c.ids.begin(), c.ids.end(), c.weights.begin(), weight);
    return std::accumulate(c.weights.begin(), c.weights.end(), 0.0);
  };
  auto V = logits_V.size;
  auto by_k = options.top_k != 0 && options.top_k < V;
  if (by_k) {
    c.ids = largest_ids(logits_V, options.top_k);
  } else {
    c.ids.resize(V);
    std::iota(c.ids.begin(), c.ids.end(), 0);
  }
  auto sum = weigh();
  if (options.top_p >= 1)
    return c;
  auto bound = sum * double{options.top_p};
  // Sorting the whole vocabulary is rarely needed: usually the few largest
  // already reach the sum. The result does not depend on where sorting stops.
  for (std::size_t keep = by_k ? c.ids.size() : std::min<std::size_t>(V, 64);;
       keep = std::min(V, keep * 8)) {
    if (!by_k) {
      c.ids = largest_ids(logits_V, keep);
      sum = weigh();
    }
    auto kept = count_to(c.weights, bound);
    if (sum >= bound || keep == V || by_k) {
      c.ids.resize(kept);
      c.weights.resize(kept);
      return c;
    }
  }
}

candidates filter(vector_view<const float> logits_V,
                  const sampling_options& options, double largest) {
  auto c = filter_by_sum(logits_V, options, largest);
  // The weight of the most probable token, which no filter drops, is 1.
  std::size_t kept = 0;
  for (std::size_t i = 0; i != c.ids.size(); ++i)
    if (c.weights[i] >= double{options.min_p}) {
      c.ids[kept] = c.ids[i];
      c.weights[kept++] = c.weights[i];
    }
  c.ids.resize(kept);
  c.weights.resize(kept);
  return c;
}

/// The logits after bias and penalties; in `scratch`, if there are any.
vector_view<const float>
penalise(vector_view<const float> logits_V, const sampling_options& options,
         std::vector<float>& scratch) {
  SHOAL_KERNEL_ASSERT(options.repetition_penalty > 0);
  const bool repeats = options.repetition_penalty != 1 && !options.seen.empty();
  const bool counts =
    (options.frequency_penalty != 0 || options.presence_penalty != 0)
    && !options.chosen.empty();
  if (!repeats && !counts && options.biases.empty())
    return logits_V;
  scratch.assign(logits_V.data, logits_V.data + logits_V.size);
  const auto logit = [&](token_id id) -> float& {
    SHOAL_KERNEL_ASSERT(static_cast<std::size_t>(id) < scratch.size());
    return scratch[static_cast<std::size_t>(id)];
  };
  for (std::size_t i = 0; i != options.biases.size; ++i)
    logit(options.biases[i].id) += options.biases[i].bias;
  for (std::size_t i = 0; repeats && i != options.seen.size; ++i) {
    auto& x = logit(options.seen[i]);
    x = x > 0 ? x / options.repetition_penalty : x * options.repetition_penalty;
  }
  for (std::size_t i = 0; counts && i != options.chosen.size; ++i)
    logit(options.chosen[i].id) -=
      options.frequency_penalty * static_cast<float>(options.chosen[i].count)
      + options.presence_penalty;
  return scratch;
}

/// The first index at which the running sum passes `target`.
std::size_t draw(const std::vector<double>& weights, double unit) {
  auto target = unit * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i != weights.size(); ++i) {
    sum += weights[i];
    if (target < sum)
      return i;
  }
  return weights.size() - 1;
}

} // namespace

log_softmax::log_softmax(vector_view<const float> logits_V)
  : logits_V_(logits_V),
    largest_(*std::max_element(logits_V.data, logits_V.data + logits_V.size)) {
  double sum = 0;
  for (std::size_t v = 0; v != logits_V.size; ++v)
    sum += std::exp(logits_V[v] - largest_);
  log_sum_ = std::log(sum);
}

float log_softmax::of(token_id id) const {
  auto logit = double{logits_V_[static_cast<std::size_t>(id)]};
  return static_cast<float>(logit - largest_ - log_sum_);
}

sampled_token reference_backend::sample(vector_view<const float> logits_V,
                                        const sampling_options& options,
                                        sampling_generator& generator) {
  SHOAL_KERNEL_ASSERT(logits_V.size != 0 && options.temperature >= 0
                      && options.top_p > 0 && options.top_p <= 1
                      && options.min_p >= 0 && options.min_p <= 1);
  std::vector<float> scratch;
  const auto from_V = penalise(logits_V, options, scratch);
  auto* first = from_V.data;
  auto* best = std::max_element(first, first + from_V.size);
  auto id = static_cast<token_id>(best - first);
  if (options.temperature > 0) {
    auto c = filter(from_V, options, *best);
    id = c.ids[draw(c.weights, generator.next_unit())];
  }
  return {id, log_softmax(logits_V).of(id)};
}

float reference_backend::logprobs(vector_view<const float> logits_V,
                                  token_id of,
                                  std::span<sampled_token> likely) {
  SHOAL_KERNEL_ASSERT(likely.size() <= likely_tokens_max
                      && likely.size() <= logits_V.size
                      && static_cast<std::size_t>(of) < logits_V.size);
  const log_softmax to(logits_V);
  const auto ids = largest_ids(logits_V, likely.size());
  for (std::size_t i = 0; i != likely.size(); ++i)
    likely[i] = {ids[i], to.of(ids[i])};
  return to.of(of);
}

} // namespace reference

} // namespace shoal::kernels
