// kernels/reference/routing.cpp -- choice, sorting and weighted sums.
#include "kernels/routing.hpp"

#include "kernels/check.hpp"
#include "kernels/reference/backend.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shoal::kernels {

void largest_of(const float* p_E, std::size_t experts, std::size_t per_token,
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

void sort_rows(routing& to, const std::vector<std::uint32_t>& choice,
               std::size_t per_token, std::size_t experts) {
  to.per_token = per_token;
  to.first_row.assign(experts + 1, 0);
  to.row_token.resize(choice.size());
  to.token_row.resize(choice.size());
  for (const auto expert : choice)
    ++to.first_row[expert + 1];
  for (std::size_t e = 0; e != experts; ++e)
    to.first_row[e + 1] += to.first_row[e];
  auto next = to.first_row;
  for (std::size_t i = 0; i != choice.size(); ++i) {
    const auto row = next[choice[i]]++;
    to.row_token[row] = static_cast<token_id>(i / per_token);
    to.token_row[i] = static_cast<std::uint32_t>(row);
  }
}

namespace reference {

void reference_backend::route(routing& to, vector_view<float> weight_S,
                              matrix_view<float> logits_TE,
                              std::size_t per_token, bool normalised) {
  const auto T = logits_TE.rows, E = logits_TE.cols;
  SHOAL_KERNEL_ASSERT(per_token >= 1 && per_token <= E
                      && weight_S.size == T * per_token);
  std::vector<std::uint32_t> choice(T * per_token);
  for (std::size_t t = 0; t != T; ++t) {
    auto* p_E = logits_TE.row(t);
    const double largest = *std::max_element(p_E, p_E + E);
    double sum = 0;
    for (std::size_t e = 0; e != E; ++e)
      sum += std::exp(p_E[e] - largest);
    for (std::size_t e = 0; e != E; ++e)
      p_E[e] = static_cast<float>(std::exp(p_E[e] - largest) / sum);
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
        static_cast<float>(logits_TE(t, choice[i]) / (normalised ? sum : 1.0));
    }
  }
}

void reference_backend::route_backward(matrix_view<float> p_TE,
                                       vector_view<const float> dweight_S,
                                       const routing& by, bool normalised,
                                       float balance_scale) {
  const auto T = p_TE.rows, E = p_TE.cols, k = by.per_token;
  SHOAL_KERNEL_ASSERT(E == by.experts() && T == by.tokens()
                      && dweight_S.size == by.rows());
  const auto tokens = static_cast<double>(T);
  std::vector<std::uint32_t> expert_of(by.rows());
  for (std::size_t e = 0; e != E; ++e)
    for (auto s = by.first_row[e]; s != by.first_row[e + 1]; ++s)
      expert_of[s] = static_cast<std::uint32_t>(e);
  std::vector<double> dp(E);
  for (std::size_t t = 0; t != T; ++t) {
    for (std::size_t e = 0; e != E; ++e)
      dp[e] = double{balance_scale} * static_cast<double>(E)
              * static_cast<double>(by.rows_of(e)) / (tokens * tokens);
    double sum = 0, dot = 0;
    for (std::size_t j = 0; j != k; ++j) {
      const auto s = by.token_row[t * k + j];
      sum += p_TE(t, expert_of[s]);
      dot += double{dweight_S[s]} * p_TE(t, expert_of[s]);
    }
    for (std::size_t j = 0; j != k; ++j) {
      const auto s = by.token_row[t * k + j];
      dp[expert_of[s]] +=
        normalised ? (dweight_S[s] - dot / sum) / sum : dweight_S[s];
    }
    double all = 0;
    for (std::size_t e = 0; e != E; ++e)
      all += dp[e] * p_TE(t, e);
    for (std::size_t e = 0; e != E; ++e)
      p_TE(t, e) = static_cast<float>(p_TE(t, e) * (dp[e] - all));
  }
}

void reference_backend::combine(matrix_view<float> y_TD,
                                matrix_view<const float> x_SD,
                                vector_view<const float> weight_S,
                                const routing& by) {
  SHOAL_KERNEL_ASSERT(y_TD.rows == by.tokens() && x_SD.rows == by.rows()
                      && y_TD.cols == x_SD.cols
                      && (weight_S.empty() || weight_S.size == by.rows()));
  const auto k = by.per_token;
  for (std::size_t t = 0; t != y_TD.rows; ++t)
    for (std::size_t d = 0; d != y_TD.cols; ++d) {
      double sum = 0;
      for (std::size_t j = 0; j != k; ++j) {
        const auto s = by.token_row[t * k + j];
        sum += double{x_SD(s, d)} * (weight_S.empty() ? 1.0f : weight_S[s]);
      }
      y_TD(t, d) = static_cast<float>(sum);
    }
}

void reference_backend::combine_backward(matrix_view<float> dx_SD,
                                         vector_view<float> dweight_S,
                                         matrix_view<const float> dy_TD,
                                         matrix_view<const float> x_SD,
                                         vector_view<const float> weight_S,
                                         const routing& by) {
  SHOAL_KERNEL_ASSERT(same_shape(dx_SD, x_SD) && x_SD.rows == by.rows()
                      && dy_TD.rows == by.tokens() && dy_TD.cols == x_SD.cols
                      && dweight_S.size == by.rows()
                      && weight_S.size == by.rows());
  for (std::size_t s = 0; s != by.rows(); ++s) {
    const auto t = static_cast<std::size_t>(by.row_token[s]);
    double dot = 0;
    for (std::size_t d = 0; d != x_SD.cols; ++d) {
      const auto x = x_SD(s, d);
      dot += double{dy_TD(t, d)} * x;
      dx_SD(s, d) = weight_S[s] * dy_TD(t, d);
    }
    dweight_S[s] = static_cast<float>(dot);
  }
}

} // namespace reference

} // namespace shoal::kernels
