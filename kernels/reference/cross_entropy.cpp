// kernels/reference/cross_entropy.cpp -- loss and gradient row by row.
#include "kernels/check.hpp"
#include "kernels/reference/backend.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::kernels::reference {

void reference_backend::cross_entropy(vector_view<float> loss_T,
                                      matrix_view<float> dlogits_TV,
                                      matrix_view<const float> logits_TV,
                                      vector_view<const token_id> targets_T,
                                      float scale, float softcap) {
  auto V = logits_TV.cols;
  SHOAL_KERNEL_ASSERT(
    loss_T.size == logits_TV.rows && targets_T.size == logits_TV.rows
    && (dlogits_TV.empty() || same_shape(dlogits_TV, logits_TV)));
  for (std::size_t t = 0; t != logits_TV.rows; ++t) {
    auto target = targets_T[t];
    SHOAL_KERNEL_ASSERT(
      target >= -1 && (target == -1 || static_cast<std::size_t>(target) < V));
    if (target == -1) {
      loss_T[t] = 0;
      if (!dlogits_TV.empty())
        std::fill_n(dlogits_TV.row(t), V, 0.0f);
      continue;
    }
    std::vector<double> x_V(logits_TV.row(t), logits_TV.row(t) + V);
    if (softcap > 0)
      for (auto& x : x_V)
        x = softcap * std::tanh(x / softcap);
    double largest = *std::max_element(x_V.begin(), x_V.end());
    double sum = 0;
    for (std::size_t v = 0; v != V; ++v)
      sum += std::exp(x_V[v] - largest);
    auto hit_at = static_cast<std::size_t>(target);
    loss_T[t] = static_cast<float>(largest - x_V[hit_at] + std::log(sum));
    if (dlogits_TV.empty())
      continue;
    for (std::size_t v = 0; v != V; ++v) {
      auto p = std::exp(x_V[v] - largest) / sum;
      auto hit = v == hit_at ? 1.0 : 0.0;
      auto bend = softcap > 0 ? x_V[v] / softcap : 0.0;
      dlogits_TV(t, v) =
        static_cast<float>(scale * (p - hit) * (1 - bend * bend));
    }
  }
}

} // namespace shoal::kernels::reference
