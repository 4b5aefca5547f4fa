// kernels/reference/training/cross_entropy.hpp -- loss and gradient row by row.
//
// Of floats for the backend, which checks shapes; of doubles for the test that
// compares gradients with differences. Private to kernels/reference.
#pragma once

#include "kernels/training/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::kernels::reference::loops {

template <class Scalar>
void cross_entropy(vector_view<Scalar> loss_T, matrix_view<Scalar> dlogits_TV,
                   matrix_view<const Scalar> logits_TV,
                   vector_view<const token_id> targets_T, float scale,
                   float softcap) {
  auto V = logits_TV.cols;
  for (std::size_t t = 0; t != logits_TV.rows; ++t) {
    if (targets_T[t] == -1) {
      loss_T[t] = 0;
      if (!dlogits_TV.empty())
        std::fill_n(dlogits_TV.row(t), V, Scalar{0});
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
    auto hit_at = static_cast<std::size_t>(targets_T[t]);
    loss_T[t] = static_cast<Scalar>(largest - x_V[hit_at] + std::log(sum));
    if (dlogits_TV.empty())
      continue;
    for (std::size_t v = 0; v != V; ++v) {
      auto p = std::exp(x_V[v] - largest) / sum;
      auto hit = v == hit_at ? 1.0 : 0.0;
      auto bend = softcap > 0 ? x_V[v] / softcap : 0.0;
      dlogits_TV(t, v) =
        static_cast<Scalar>(scale * (p - hit) * (1 - bend * bend));
    }
  }
}

} // namespace shoal::kernels::reference::loops
