// kernels/cpu/layers/routing.cpp -- rows of D values with vectors, the rest plainly.
//
// A router has tens of experts for thousands of inputs, so the work on its
// logits is small compared with the products around it.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layers/routing.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

/// y = x * weight, or added to y.
void weighted_row(float* y, const float* x, std::size_t size, float weight,
                  into mode) {
  const tag d;
  auto factors = hn::Set(d, weight);
  each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
    auto v = hn::Mul(load(d, x + i, n), factors);
    if (mode == into::add)
      v = hn::Add(load(d, y + i, n), v);
    store(v, d, y + i, n);
  });
}

/// dx = dy * weight. @returns dy . x
float weighted_row_gradient(float* dx, const float* dy, const float* x,
                            std::size_t size, float weight) {
  const tag d;
  auto factors = hn::Set(d, weight);
  auto sum = hn::Zero(d);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto g = load(d, dy + i, n);
    sum = hn::MulAdd(g, load(d, x + i, n), sum);
    store(hn::Mul(g, factors), d, dx + i, n);
  });
  return sum_of(sum);
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(weighted_row);
HWY_EXPORT(weighted_row_gradient);

namespace {

void softmax(float* x, std::size_t size) {
  const auto largest = *std::max_element(x, x + size);
  float sum = 0;
  for (std::size_t i = 0; i != size; ++i)
    sum += x[i] = std::exp(x[i] - largest);
  for (std::size_t i = 0; i != size; ++i)
    x[i] /= sum;
}

} // namespace

void cpu_backend::route(routing& to, vector_view<float> weight_S,
                        matrix_view<float> logits_TE, std::size_t per_token,
                        bool normalised) {
  const auto T = logits_TE.rows, E = logits_TE.cols;
  SHOAL_KERNEL_ASSERT(per_token >= 1 && per_token <= E
                      && weight_S.size == T * per_token);
  std::vector<std::uint32_t> choice(T * per_token);
  // Exponentials and the sort cost some ten times as much as reading a value.
  for_ranges(team_, T, 10 * E, [&](std::size_t first, std::size_t last) {
    for (auto t = first; t != last; ++t) {
      softmax(logits_TE.row(t), E);
      largest_of(logits_TE.row(t), E, per_token, &choice[t * per_token]);
    }
  });
  sort_rows(to, choice, per_token, E);
  for (std::size_t t = 0; t != T; ++t) {
    float sum = normalised ? 0.0f : 1.0f;
    for (std::size_t j = 0; j != per_token && normalised; ++j)
      sum += logits_TE(t, choice[t * per_token + j]);
    for (std::size_t j = 0; j != per_token; ++j) {
      const auto i = t * per_token + j;
      weight_S[to.token_row[i]] = logits_TE(t, choice[i]) / sum;
    }
  }
}

void cpu_backend::route_backward(matrix_view<float> p_TE,
                                 vector_view<const float> dweight_S,
                                 const routing& routes, bool normalised,
                                 float balance_scale) {
  const auto T = p_TE.rows, E = p_TE.cols, k = routes.per_token;
  SHOAL_KERNEL_ASSERT(E == routes.experts() && T == routes.tokens()
                      && dweight_S.size == routes.rows());
  const auto tokens = static_cast<double>(T);
  std::vector<std::uint32_t> expert_of(routes.rows());
  std::vector<double> pull(E); ///< of the balance: the same for each token
  for (std::size_t e = 0; e != E; ++e) {
    pull[e] = double{balance_scale} * static_cast<double>(E)
              * static_cast<double>(routes.rows_of(e)) / (tokens * tokens);
    for (auto s = routes.first_row[e]; s != routes.first_row[e + 1]; ++s)
      expert_of[s] = static_cast<std::uint32_t>(e);
  }
  // In double: for one normalised expert the gradient is 0, and the error of
  // float would be noise as large as the pull of the balance.
  auto one = [&](std::size_t t, std::vector<double>& dp) {
    dp.assign(pull.begin(), pull.end());
    auto* p_E = p_TE.row(t);
    double sum = 0, dot = 0;
    for (std::size_t j = 0; j != k; ++j) {
      const auto s = routes.token_row[t * k + j];
      sum += p_E[expert_of[s]];
      dot += double{dweight_S[s]} * p_E[expert_of[s]];
    }
    for (std::size_t j = 0; j != k; ++j) {
      const auto s = routes.token_row[t * k + j];
      dp[expert_of[s]] +=
        normalised ? (dweight_S[s] - dot / sum) / sum : dweight_S[s];
    }
    double all = 0;
    for (std::size_t e = 0; e != E; ++e)
      all += dp[e] * p_E[e];
    for (std::size_t e = 0; e != E; ++e)
      p_E[e] = static_cast<float>(p_E[e] * (dp[e] - all));
  };
  for_ranges(team_, T, 4 * E, [&](std::size_t first, std::size_t last) {
    std::vector<double> dp;
    for (auto t = first; t != last; ++t)
      one(t, dp);
  });
}

void cpu_backend::combine(matrix_view<float> y_TD,
                          matrix_view<const float> x_SD,
                          vector_view<const float> weight_S,
                          const routing& routes) {
  SHOAL_KERNEL_ASSERT(y_TD.rows == routes.tokens() && x_SD.rows == routes.rows()
                      && y_TD.cols == x_SD.cols
                      && (weight_S.empty() || weight_S.size == routes.rows()));
  const auto k = routes.per_token;
  auto row = HWY_DYNAMIC_DISPATCH(weighted_row);
  for_ranges(team_, y_TD.rows, k * y_TD.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 for (std::size_t j = 0; j != k; ++j) {
                   const auto s = routes.token_row[t * k + j];
                   row(y_TD.row(t), x_SD.row(s), y_TD.cols,
                       weight_S.empty() ? 1.0f : weight_S[s],
                       j == 0 ? into::overwrite : into::add);
                 }
             });
}

void cpu_backend::combine_backward(matrix_view<float> dx_SD,
                                   vector_view<float> dweight_S,
                                   matrix_view<const float> dy_TD,
                                   matrix_view<const float> x_SD,
                                   vector_view<const float> weight_S,
                                   const routing& routes) {
  SHOAL_KERNEL_ASSERT(
    same_shape(dx_SD, x_SD) && x_SD.rows == routes.rows()
    && dy_TD.rows == routes.tokens() && dy_TD.cols == x_SD.cols
    && dweight_S.size == routes.rows() && weight_S.size == routes.rows());
  auto row = HWY_DYNAMIC_DISPATCH(weighted_row_gradient);
  for_ranges(
    team_, routes.rows(), x_SD.cols, [&](std::size_t first, std::size_t last) {
      for (auto s = first; s != last; ++s) {
        const auto t = static_cast<std::size_t>(routes.row_token[s]);
        dweight_S[s] =
          row(dx_SD.row(s), dy_TD.row(t), x_SD.row(s), x_SD.cols, weight_S[s]);
      }
    });
}

} // namespace shoal::kernels::cpu
#endif
