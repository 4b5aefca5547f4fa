// kernels/reference/layers/routing.hpp -- choice, sorting and weighted sums.
//
// Of floats for the backend, which checks shapes; of doubles for the test that
// compares gradients with differences. Private to kernels/reference.
#pragma once

#include "kernels/layers/routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shoal::kernels::reference::loops {

/// The k largest of p_E, by falling value and rising index, into `out`.
template <class Scalar>
void largest_of(const Scalar* p_E, std::size_t experts, std::size_t per_token,
                std::uint32_t* out) {
  std::vector<std::uint32_t> ids(experts);
  std::iota(ids.begin(), ids.end(), 0);
  const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(per_token);
  std::partial_sort(ids.begin(), middle, ids.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      return p_E[a] != p_E[b] ? p_E[a] > p_E[b] : a < b;
                    });
  std::copy(ids.begin(), middle, out);
}

template <class Scalar>
void route(routing& to, vector_view<Scalar> weight_S,
           matrix_view<Scalar> logits_TE, std::size_t per_token,
           bool normalised) {
  const auto T = logits_TE.rows, E = logits_TE.cols;
  std::vector<std::uint32_t> choice(T * per_token);
  for (std::size_t t = 0; t != T; ++t) {
    auto* p_E = logits_TE.row(t);
    const double largest = *std::max_element(p_E, p_E + E);
    double sum = 0;
    for (std::size_t e = 0; e != E; ++e)
      sum += std::exp(p_E[e] - largest);
    for (std::size_t e = 0; e != E; ++e)
      p_E[e] = static_cast<Scalar>(std::exp(p_E[e] - largest) / sum);
    largest_of(p_E, E, per_token, &choice[t * per_token]);
  }
  sort_rows(to, choice, per_token, E);
  for (std::size_t t = 0; t != T; ++t) {
    double sum = 0;
    for (std::size_t j = 0; j != per_token; ++j)
      sum += logits_TE(t, choice[t * per_token + j]);
    for (std::size_t j = 0; j != per_token; ++j) {
      const auto i = t * per_token + j;
      weight_S[to.token_row[i]] =
        static_cast<Scalar>(logits_TE(t, choice[i]) / (normalised ? sum : 1.0));
    }
  }
}

template <class Scalar>
void route_backward(matrix_view<Scalar> p_TE,
                    vector_view<const Scalar> dweight_S, const routing& routes,
                    bool normalised, float balance_scale) {
  const auto T = p_TE.rows, E = p_TE.cols, k = routes.per_token;
  const auto tokens = static_cast<double>(T);
  std::vector<std::uint32_t> expert_of(routes.rows());
  for (std::size_t e = 0; e != E; ++e)
    for (auto s = routes.first_row[e]; s != routes.first_row[e + 1]; ++s)
      expert_of[s] = static_cast<std::uint32_t>(e);
  std::vector<double> dp(E);
  for (std::size_t t = 0; t != T; ++t) {
    for (std::size_t e = 0; e != E; ++e)
      dp[e] = double{balance_scale} * static_cast<double>(E)
              * static_cast<double>(routes.rows_of(e)) / (tokens * tokens);
    double sum = 0, dot = 0;
    for (std::size_t j = 0; j != k; ++j) {
      const auto s = routes.token_row[t * k + j];
      sum += p_TE(t, expert_of[s]);
      dot += double{dweight_S[s]} * p_TE(t, expert_of[s]);
    }
    for (std::size_t j = 0; j != k; ++j) {
      const auto s = routes.token_row[t * k + j];
      dp[expert_of[s]] +=
        normalised ? (dweight_S[s] - dot / sum) / sum : dweight_S[s];
    }
    double all = 0;
    for (std::size_t e = 0; e != E; ++e)
      all += dp[e] * p_TE(t, e);
    for (std::size_t e = 0; e != E; ++e)
      p_TE(t, e) = static_cast<Scalar>(p_TE(t, e) * (dp[e] - all));
  }
}

template <class Scalar>
void combine(matrix_view<Scalar> y_TD, matrix_view<const Scalar> x_SD,
             vector_view<const Scalar> weight_S, const routing& routes) {
  const auto k = routes.per_token;
  for (std::size_t t = 0; t != y_TD.rows; ++t)
    for (std::size_t d = 0; d != y_TD.cols; ++d) {
      double sum = 0;
      for (std::size_t j = 0; j != k; ++j) {
        const auto s = routes.token_row[t * k + j];
        sum += double{x_SD(s, d)} * (weight_S.empty() ? 1 : weight_S[s]);
      }
      y_TD(t, d) = static_cast<Scalar>(sum);
    }
}

template <class Scalar>
void combine_backward(matrix_view<Scalar> dx_SD, vector_view<Scalar> dweight_S,
                      matrix_view<const Scalar> dy_TD,
                      matrix_view<const Scalar> x_SD,
                      vector_view<const Scalar> weight_S,
                      const routing& routes) {
  for (std::size_t s = 0; s != routes.rows(); ++s) {
    const auto t = static_cast<std::size_t>(routes.row_token[s]);
    double dot = 0;
    for (std::size_t d = 0; d != x_SD.cols; ++d) {
      const auto x = x_SD(s, d);
      dot += double{dy_TD(t, d)} * x;
      dx_SD(s, d) = weight_S[s] * dy_TD(t, d);
    }
    dweight_S[s] = static_cast<Scalar>(dot);
  }
}

} // namespace shoal::kernels::reference::loops
