// kernels/reference/sampling.cpp -- filters, then one draw.
#include "kernels/check.hpp"
#include "kernels/reference/backend.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shoal::kernels {

std::uint64_t sampling_generator::next() noexcept {
  state += 0x9e3779b97f4a7c15;
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

/// Ids by falling logit, equals by rising id; only as many as can matter.
std::vector<token_id>
candidates(vector_view<const float> logits_V, std::size_t keep) {
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

/// Drops candidates beyond the fewest whose weights sum to top_p of all.
void keep_top_p(std::vector<double>& weights, double top_p) {
  auto bound = top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i != weights.size(); ++i) {
    sum += weights[i];
    if (sum >= bound) {
      weights.resize(i + 1);
      return;
    }
  }
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

float log_softmax(vector_view<const float> logits_V, token_id id,
                  double largest) {
  double sum = 0;
  for (std::size_t v = 0; v != logits_V.size; ++v)
    sum += std::exp(logits_V[v] - largest);
  auto logit = double{logits_V[static_cast<std::size_t>(id)]};
  return static_cast<float>(logit - largest - std::log(sum));
}

} // namespace

sampled_token reference_backend::sample(vector_view<const float> logits_V,
                                        const sampling_options& options,
                                        sampling_generator& generator) {
  SHOAL_KERNEL_ASSERT(logits_V.size != 0 && options.temperature >= 0
                      && options.top_p > 0 && options.top_p <= 1);
  auto* first = logits_V.data;
  auto* best = std::max_element(first, first + logits_V.size);
  double largest = *best;
  auto id = static_cast<token_id>(best - first);
  if (options.temperature > 0) {
    auto keep = options.top_k == 0
                  ? logits_V.size
                  : std::min<std::size_t>(options.top_k, logits_V.size);
    auto ids = candidates(logits_V, keep);
    std::vector<double> weights;
    weights.reserve(ids.size());
    for (auto i : ids)
      weights.push_back(
        std::exp((logits_V[static_cast<std::size_t>(i)] - largest)
                 / double{options.temperature}));
    keep_top_p(weights, options.top_p);
    id = ids[draw(weights, generator.next_unit())];
  }
  return {id, log_softmax(logits_V, id, largest)};
}

} // namespace reference

} // namespace shoal::kernels
