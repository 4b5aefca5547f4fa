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

/// The `keep` ids of the largest logits, by falling logit; equals by rising
/// id.
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

/// How many weights, taken in order, reach `bound`; all if none do.
std::size_t count_to(const std::vector<double>& weights, double bound) {
  double sum = 0;
  for (std::size_t i = 0; i != weights.size(); ++i)
    if ((sum += weights[i]) >= bound)
      return i + 1;
  return weights.size();
}

/// The tokens that the filters leave, with exp(logit / temperature) relative
/// to the largest one.
struct candidates {
  std::vector<token_id> ids;
  std::vector<double> weights;
};

candidates filter(vector_view<const float> logits_V,
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
  // Sorting the whole vocabulary is rarely needed: the few largest usually
  // hold the sum already. What is kept does not depend on where it stops.
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
    auto c = filter(logits_V, options, largest);
    id = c.ids[draw(c.weights, generator.next_unit())];
  }
  return {id, log_softmax(logits_V, id, largest)};
}

} // namespace reference

} // namespace shoal::kernels
