// kernels/reference/attention.cpp -- attention row by row, all in double.
#include "kernels/check.hpp"
#include "kernels/reference/backend.hpp"

#include <cmath>

namespace shoal::kernels::reference {

namespace {

double dot(const float* a, const float* b, std::size_t size) {
  double sum = 0;
  for (std::size_t i = 0; i != size; ++i)
    sum += double{a[i]} * b[i];
  return sum;
}

double score(const float* q_H, const float* k_H, const attention_shape& s) {
  auto product = double{s.scale} * dot(q_H, k_H, s.head_size);
  return s.softcap > 0 ? s.softcap * std::tanh(product / s.softcap) : product;
}

/// One query head against the first `keys` rows of one key-value head, or
/// those of them that it sees; the views begin at that head's column.
/// @returns lse
double attend(float* o_H, const float* q_H, matrix_view<const float> k_PH,
              matrix_view<const float> v_PH, std::size_t keys,
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
    o_H[h] = static_cast<float>(o / sum);
  }
  return largest + std::log(sum);
}

} // namespace

void reference_backend::attention(matrix_view<float> o_TNH,
                                  matrix_view<float> lse_NT,
                                  matrix_view<const float> q_TNH,
                                  matrix_view<const float> k_TKH,
                                  matrix_view<const float> v_TKH,
                                  const attention_shape& shape) {
  const auto B = shape.batch, T = shape.tokens;
  const auto N = shape.heads, K = shape.kv_heads, H = shape.head_size;
  check_attention(o_TNH, q_TNH, k_TKH, v_TKH, shape);
  SHOAL_KERNEL_ASSERT(lse_NT.empty()
                      || (lse_NT.rows == B * N && lse_NT.cols == T));
  for (std::size_t b = 0; b != B; ++b)
    for (std::size_t n = 0; n != N; ++n) {
      auto kv = n / (N / K) * H;
      auto k_TH = k_TKH.slice_rows(b * T, (b + 1) * T).slice_cols(kv, kv + H);
      auto v_TH = v_TKH.slice_rows(b * T, (b + 1) * T).slice_cols(kv, kv + H);
      for (std::size_t t = 0; t != T; ++t) {
        auto lse =
          attend(o_TNH.row(b * T + t) + n * H, q_TNH.row(b * T + t) + n * H,
                 k_TH, v_TH, t + 1, shape);
        if (!lse_NT.empty())
          lse_NT(b * N + n, t) = static_cast<float>(lse);
      }
    }
}

void reference_backend::attention_backward(
  matrix_view<float> dq_TNH, matrix_view<float> dk_TKH,
  matrix_view<float> dv_TKH, matrix_view<const float> do_TNH,
  matrix_view<const float> q_TNH, matrix_view<const float> k_TKH,
  matrix_view<const float> v_TKH, matrix_view<const float> o_TNH,
  matrix_view<const float> lse_NT, const attention_shape& shape) {
  const auto B = shape.batch, T = shape.tokens;
  const auto N = shape.heads, K = shape.kv_heads, H = shape.head_size;
  check_attention(o_TNH, q_TNH, k_TKH, v_TKH, shape);
  check_attention(do_TNH, dq_TNH, dk_TKH, dv_TKH, shape);
  SHOAL_KERNEL_ASSERT(lse_NT.rows == B * N && lse_NT.cols == T);
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
      dq_TNH(t, c) = static_cast<float>(dq[t * N * H + c]);
    for (std::size_t c = 0; c != K * H; ++c) {
      dk_TKH(t, c) = static_cast<float>(dk[t * K * H + c]);
      dv_TKH(t, c) = static_cast<float>(dv[t * K * H + c]);
    }
  }
}

void reference_backend::attention_cached(matrix_view<float> o_TNH,
                                         matrix_view<const float> q_TNH,
                                         matrix_view<const float> k_PKH,
                                         matrix_view<const float> v_PKH,
                                         const attention_shape& shape) {
  const auto T = shape.tokens;
  const auto N = shape.heads, K = shape.kv_heads, H = shape.head_size;
  check_attention_cached(o_TNH, q_TNH, k_PKH, v_PKH, shape);
  auto past = k_PKH.rows - T;
  for (std::size_t n = 0; n != N; ++n) {
    auto kv = n / (N / K) * H;
    for (std::size_t t = 0; t != T; ++t)
      attend(o_TNH.row(t) + n * H, q_TNH.row(t) + n * H,
             k_PKH.slice_cols(kv, kv + H), v_PKH.slice_cols(kv, kv + H),
             past + t + 1, shape);
  }
}

} // namespace shoal::kernels::reference
