// kernels/reference/layers/attention.hpp -- attention row by row, all in double.
//
// Of floats for the backend, which checks shapes; of doubles for the test that
// compares gradients with differences. Private to kernels/reference.
#pragma once

#include "kernels/layers/attention.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::kernels::reference::loops {

template <class Scalar>
double dot(const Scalar* a, const Scalar* b, std::size_t size) {
  double sum = 0;
  for (std::size_t i = 0; i != size; ++i)
    sum += double{a[i]} * b[i];
  return sum;
}

template <class Scalar>
double score(const Scalar* q_H, const Scalar* k_H, const attention_shape& s) {
  auto product = double{s.scale} * dot(q_H, k_H, s.head_size);
  return s.softcap > 0 ? s.softcap * std::tanh(product / s.softcap) : product;
}

/// One query head against the first `keys` rows of one key-value head, or
/// against those that its window allows. The views begin at that head's column.
/// @returns lse
template <class Scalar>
double attend(Scalar* o_H, const Scalar* q_H, matrix_view<const Scalar> k_PH,
              matrix_view<const Scalar> v_PH, std::size_t keys,
              const attention_shape& shape) {
  auto first = shape.first_key(keys);
  std::vector<double> p(keys);
  double largest = -INFINITY;
  for (auto j = first; j != keys; ++j) {
    p[j] = score(q_H, k_PH.row(j), shape);
    largest = std::max(largest, p[j]);
  }
  double sum = 0;
  for (auto j = first; j != keys; ++j)
    sum += p[j] = std::exp(p[j] - largest);
  for (std::size_t h = 0; h != shape.head_size; ++h) {
    double o = 0;
    for (auto j = first; j != keys; ++j)
      o += p[j] * v_PH(j, h);
    o_H[h] = static_cast<Scalar>(o / sum);
  }
  return largest + std::log(sum);
}

template <class Scalar>
void attention(matrix_view<Scalar> o_TNH, matrix_view<Scalar> lse_NT,
               matrix_view<const Scalar> q_TNH, matrix_view<const Scalar> k_TKH,
               matrix_view<const Scalar> v_TKH, const attention_shape& shape) {
  const auto B = shape.batch, T = shape.tokens;
  const auto N = shape.heads, K = shape.kv_heads, H = shape.head_size;
  for (std::size_t b = 0; b != B; ++b)
    for (std::size_t n = 0; n != N; ++n) {
      auto kv = n / (N / K) * H;
      auto k_TH = k_TKH.slice_rows(b * T, (b + 1) * T).slice_cols(kv, kv + H);
      auto v_TH = v_TKH.slice_rows(b * T, (b + 1) * T).slice_cols(kv, kv + H);
      for (std::size_t t = 0; t != T; ++t) {
        auto lse = attend<Scalar>(o_TNH.row(b * T + t) + n * H,
                                  q_TNH.row(b * T + t) + n * H, k_TH, v_TH,
                                  t + 1, shape);
        if (!lse_NT.empty())
          lse_NT(b * N + n, t) = static_cast<Scalar>(lse);
      }
    }
}

template <class Scalar>
void attention_backward(
  matrix_view<Scalar> dq_TNH, matrix_view<Scalar> dk_TKH,
  matrix_view<Scalar> dv_TKH, matrix_view<const Scalar> do_TNH,
  matrix_view<const Scalar> q_TNH, matrix_view<const Scalar> k_TKH,
  matrix_view<const Scalar> v_TKH, matrix_view<const Scalar> o_TNH,
  matrix_view<const Scalar> lse_NT, const attention_shape& shape) {
  const auto B = shape.batch, T = shape.tokens;
  const auto N = shape.heads, K = shape.kv_heads, H = shape.head_size;
  std::vector<double> dq(B * T * N * H), dk(B * T * K * H), dv(dk.size());
  for (std::size_t b = 0; b != B; ++b)
    for (std::size_t n = 0; n != N; ++n) {
      auto kv = n / (N / K);
      for (std::size_t i = b * T; i != (b + 1) * T; ++i) {
        auto* q_H = q_TNH.row(i) + n * H;
        auto* do_H = do_TNH.row(i) + n * H;
        auto delta = dot(do_H, o_TNH.row(i) + n * H, H);
        for (auto j = b * T + shape.first_key(i + 1 - b * T); j <= i; ++j) {
          auto* k_H = k_TKH.row(j) + kv * H;
          auto s = score(q_H, k_H, shape);
          auto p = std::exp(s - lse_NT(b * N + n, i - b * T));
          auto dp = dot(do_H, v_TKH.row(j) + kv * H, H);
          auto ds = p * (dp - delta) * double{shape.scale};
          if (shape.softcap > 0)
            ds *= 1 - (s / shape.softcap) * (s / shape.softcap);
          for (std::size_t h = 0; h != H; ++h) {
            dq[(i * N + n) * H + h] += ds * k_H[h];
            dk[(j * K + kv) * H + h] += ds * q_H[h];
            dv[(j * K + kv) * H + h] += p * do_H[h];
          }
        }
      }
    }
  for (std::size_t t = 0; t != B * T; ++t) {
    for (std::size_t c = 0; c != N * H; ++c)
      dq_TNH(t, c) = static_cast<Scalar>(dq[t * N * H + c]);
    for (std::size_t c = 0; c != K * H; ++c) {
      dk_TKH(t, c) = static_cast<Scalar>(dk[t * K * H + c]);
      dv_TKH(t, c) = static_cast<Scalar>(dv[t * K * H + c]);
    }
  }
}

} // namespace shoal::kernels::reference::loops
