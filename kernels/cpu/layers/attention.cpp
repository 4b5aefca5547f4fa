// kernels/cpu/layers/attention.cpp -- blocks of rows of scores by matrix products.
//
// Forward: a task is one block of rows of one head. Backward: a task is one
// key-value head of one sequence with all query heads that share it, so that
// dk and dv are summed by one thread in one order.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"
#include "kernels/cpu/product/gemm.hpp"
#include "kernels/layers/attention_check.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layers/attention.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

/// s = cap * tanh(s / cap)
void softcap_row(float* s, std::size_t size, float cap) {
  const tag d;
  auto limit = hn::Set(d, cap);
  auto part = hn::Set(d, 1 / cap);
  each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
    auto t = hn::Tanh(d, hn::Mul(load(d, s + i, n), part));
    store(hn::Mul(limit, t), d, s + i, n);
  });
}

/// Replaces the first `seen` of `size` scores by exp(s - max), the rest by 0.
/// Sets the sum of the exponentials. @returns the largest score
float softmax_row(float* s, std::size_t seen, std::size_t size, float* sum) {
  const tag d;
  const auto lanes = hn::Lanes(d);
  auto high = hn::Set(d, s[0]);
  std::size_t i = 0;
  for (; i + lanes <= seen; i += lanes)
    high = hn::Max(high, hn::LoadU(d, s + i));
  for (; i != seen; ++i)
    high = hn::Max(high, hn::Set(d, s[i]));
  const auto largest = hn::GetLane(hn::MaxOfLanes(d, high));
  auto shift = hn::Set(d, largest);
  auto total = hn::Zero(d);
  each_vector(seen, [&](std::size_t j, std::size_t n) HWY_ATTR {
    auto e = hn::Exp(d, hn::Sub(load(d, s + j, n), shift));
    if (n != lanes)
      e = hn::IfThenElseZero(hn::FirstN(d, n), e);
    total = hn::Add(total, e);
    store(e, d, s + j, n);
  });
  std::fill(s + seen, s + size, 0.0f);
  *sum = sum_of(total);
  return largest;
}

void scale_row(float* x, std::size_t size, float factor) {
  const tag d;
  auto factors = hn::Set(d, factor);
  each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
    store(hn::Mul(load(d, x + i, n), factors), d, x + i, n);
  });
}

float dot_row(const float* a, const float* b, std::size_t size) {
  const tag d;
  auto sum = hn::Zero(d);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    sum = hn::MulAdd(load(d, a + i, n), load(d, b + i, n), sum);
  });
  return sum_of(sum);
}

/// p = exp(s - lse) in place of s, and ds = p * (dp - delta) * scale in place
/// of dp, for the first `seen` of `size` scores; the rest of both becomes 0.
/// With a soft cap, `s` holds the scores before the cap.
void scores_row_gradient(float* s, float* dp, std::size_t seen,
                         std::size_t size, float lse, float delta, float scale,
                         float softcap) {
  const tag d;
  auto shift = hn::Set(d, lse);
  auto mean = hn::Set(d, delta);
  auto factor = hn::Set(d, scale);
  auto cap = hn::Set(d, softcap);
  auto part = hn::Set(d, softcap > 0 ? 1 / softcap : 0);
  each_vector(seen, [=](std::size_t i, std::size_t n) HWY_ATTR {
    auto score = load(d, s + i, n);
    auto slope = factor;
    if (softcap > 0) {
      auto t = hn::Tanh(d, hn::Mul(score, part));
      score = hn::Mul(cap, t);
      slope = hn::NegMulAdd(hn::Mul(t, t), factor, factor);
    }
    auto p = hn::Exp(d, hn::Sub(score, shift));
    auto ds = hn::Mul(hn::Mul(p, hn::Sub(load(d, dp + i, n), mean)), slope);
    store(p, d, s + i, n);
    store(ds, d, dp + i, n);
  });
  std::fill(s + seen, s + size, 0.0f);
  std::fill(dp + seen, dp + size, 0.0f);
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(softcap_row);
HWY_EXPORT(softmax_row);
HWY_EXPORT(scale_row);
HWY_EXPORT(dot_row);
HWY_EXPORT(scores_row_gradient);

namespace {

/// Rows of scores in a block: 128 KiB for 512 keys, which stays in the
/// second-level cache together with the block's keys and values. Fewer rows
/// make the products slower; more rows compute more scores above the diagonal,
/// which are not used.
constexpr std::size_t row_block = 64;

gemm_operand plain(matrix_view<const float> x) {
  return {x.data, x.stride, transposed::no};
}

gemm_operand turned(matrix_view<const float> x) {
  return {x.data, x.stride, transposed::yes};
}

/// Rows of queries; each row sees one more key than the one before.
struct query_block {
  matrix_view<float> o;
  matrix_view<const float> q;
  matrix_view<const float> k, v; ///< all keys that a row sees
  std::size_t first_key;         ///< the number of keys before those
  std::size_t first_seen;        ///< keys up to row 0's own, from the first
  float* lse;                    ///< one value a row, or null
};

void attend(const query_block& b, const attention_shape& shape,
            std::vector<float>& scratch) {
  auto keys = b.k.rows;
  auto rows = b.q.rows;
  scratch.resize(std::max(scratch.size(), rows * keys));
  matrix_view<float> s{scratch.data(), rows, keys};
  gemm(s, plain(b.q), turned(b.k), b.q.cols, shape.scale, 0);
  float sums[row_block];
  for (std::size_t r = 0; r != rows; ++r) {
    auto seen = b.first_seen + r;
    auto skip = shape.first_key(seen) - b.first_key;
    auto count = seen - b.first_key - skip;
    auto* row = s.row(r) + skip;
    std::fill_n(s.row(r), skip, 0.0f);
    if (shape.softcap > 0)
      HWY_DYNAMIC_DISPATCH(softcap_row)(row, count, shape.softcap);
    auto largest =
      HWY_DYNAMIC_DISPATCH(softmax_row)(row, count, keys - skip, &sums[r]);
    if (b.lse != nullptr)
      b.lse[r] = largest + std::log(sums[r]);
  }
  gemm(b.o, plain(s), plain(b.v), keys, 1, 0);
  for (std::size_t r = 0; r != rows; ++r)
    HWY_DYNAMIC_DISPATCH(scale_row)(b.o.row(r), b.o.cols, 1.0f / sums[r]);
}

/// The input and output of one task of the backward pass: one query head.
struct head_views {
  matrix_view<float> dq, dk, dv;
  matrix_view<const float> d_o, q, k, v, o;
  const float* lse;
};

void attend_backward(const head_views& x, const attention_shape& shape,
                     std::vector<float>& scratch) {
  auto T = x.q.rows;
  auto H = x.q.cols;
  scratch.resize(std::max(scratch.size(), 2 * row_block * T));
  for (std::size_t first = 0; first < T; first += row_block) {
    auto last = std::min(T, first + row_block);
    auto begin = shape.first_key(first + 1);
    auto keys = last - begin;
    auto q = x.q.slice_rows(first, last);
    auto d_o = x.d_o.slice_rows(first, last);
    auto k = x.k.slice_rows(begin, last);
    auto v = x.v.slice_rows(begin, last);
    matrix_view<float> p{scratch.data(), last - first, keys};
    matrix_view<float> ds{scratch.data() + row_block * T, last - first, keys};
    gemm(p, plain(q), turned(k), H, shape.scale, 0);
    gemm(ds, plain(d_o), turned(v), H, 1, 0);
    for (auto t = first; t != last; ++t) {
      auto delta = HWY_DYNAMIC_DISPATCH(dot_row)(x.d_o.row(t), x.o.row(t), H);
      auto skip = shape.first_key(t + 1) - begin;
      std::fill_n(p.row(t - first), skip, 0.0f);
      std::fill_n(ds.row(t - first), skip, 0.0f);
      HWY_DYNAMIC_DISPATCH(scores_row_gradient)
      (p.row(t - first) + skip, ds.row(t - first) + skip, t + 1 - begin - skip,
       keys - skip, x.lse[t], delta, shape.scale, shape.softcap);
    }
    gemm(x.dv.slice_rows(begin, last), turned(p), plain(d_o), last - first, 1,
         1);
    gemm(x.dq.slice_rows(first, last), plain(ds), plain(k), keys, 1, 0);
    gemm(x.dk.slice_rows(begin, last), turned(ds), plain(q), last - first, 1,
         1);
  }
}

} // namespace

void cpu_backend::attention(matrix_view<float> o_TNH, matrix_view<float> lse_NT,
                            matrix_view<const float> q_TNH,
                            matrix_view<const float> k_TKH,
                            matrix_view<const float> v_TKH,
                            const attention_shape& shape) {
  check_attention(o_TNH, q_TNH, k_TKH, v_TKH, shape);
  const auto B = shape.batch, T = shape.tokens;
  const auto N = shape.heads, K = shape.kv_heads, H = shape.head_size;
  SHOAL_KERNEL_ASSERT(lse_NT.empty()
                      || (lse_NT.rows == B * N && lse_NT.cols == T));
  auto blocks = (T + row_block - 1) / row_block;
  // The last blocks see most keys. They run first, so that no thread ends up
  // alone with a long one.
  auto task = [&](std::size_t index, unsigned worker) {
    auto first = (blocks - 1 - index % blocks) * row_block;
    auto last = std::min(T, first + row_block);
    auto n = index / blocks % N;
    auto b = index / blocks / N;
    auto kv = n / (N / K) * H;
    query_block block;
    block.o = o_TNH.slice_rows(b * T + first, b * T + last)
                .slice_cols(n * H, (n + 1) * H);
    block.q = q_TNH.slice_rows(b * T + first, b * T + last)
                .slice_cols(n * H, (n + 1) * H);
    block.first_key = shape.first_key(first + 1);
    auto keys_first = b * T + block.first_key;
    block.k = k_TKH.slice_rows(keys_first, b * T + last).slice_cols(kv, kv + H);
    block.v = v_TKH.slice_rows(keys_first, b * T + last).slice_cols(kv, kv + H);
    block.first_seen = first + 1;
    block.lse = lse_NT.empty() ? nullptr : lse_NT.row(b * N + n) + first;
    attend(block, shape, scratch_[worker]);
  };
  prepare_scratch();
  team_.run(B * N * blocks, task);
}

void cpu_backend::attention_backward(
  matrix_view<float> dq_TNH, matrix_view<float> dk_TKH,
  matrix_view<float> dv_TKH, matrix_view<const float> do_TNH,
  matrix_view<const float> q_TNH, matrix_view<const float> k_TKH,
  matrix_view<const float> v_TKH, matrix_view<const float> o_TNH,
  matrix_view<const float> lse_NT, const attention_shape& shape) {
  check_attention(o_TNH, q_TNH, k_TKH, v_TKH, shape);
  check_attention(do_TNH, dq_TNH, dk_TKH, dv_TKH, shape);
  const auto B = shape.batch, T = shape.tokens;
  const auto N = shape.heads, K = shape.kv_heads, H = shape.head_size;
  SHOAL_KERNEL_ASSERT(lse_NT.rows == B * N && lse_NT.cols == T);
  auto task = [&](std::size_t index, unsigned worker) {
    auto b = index / K;
    auto kv = index % K;
    auto head = [&](auto view, std::size_t h) {
      return view.slice_rows(b * T, (b + 1) * T).slice_cols(h * H, (h + 1) * H);
    };
    head_views x;
    x.dk = head(dk_TKH, kv);
    x.dv = head(dv_TKH, kv);
    x.k = head(k_TKH, kv);
    x.v = head(v_TKH, kv);
    for (std::size_t t = 0; t != T; ++t) {
      std::fill_n(x.dk.row(t), H, 0.0f);
      std::fill_n(x.dv.row(t), H, 0.0f);
    }
    for (auto n = kv * (N / K); n != (kv + 1) * (N / K); ++n) {
      x.dq = head(dq_TNH, n);
      x.d_o = head(do_TNH, n);
      x.q = head(q_TNH, n);
      x.o = head(o_TNH, n);
      x.lse = lse_NT.row(b * N + n);
      attend_backward(x, shape, scratch_[worker]);
    }
  };
  prepare_scratch();
  team_.run(B * K, task);
}

void cpu_backend::prepare_scratch() {
  if (scratch_.size() < team_.size())
    scratch_.resize(team_.size());
}

} // namespace shoal::kernels::cpu
#endif
