// kernels/cpu/product/rows_bf16.cpp -- products of a few tokens with rows of bf16, by
// vdpbf16ps.
//
// Only the speed of reading the rows matters: they are read one after the
// other, line after line, without software prefetch. The activations stay in
// the first-level cache beside them, and are rounded to bf16 for that. In float
// the activations of 5632 inputs take 22 of its 32 KiB, and memory ran at 66 %
// of its rate; it runs at 101 % this way. Two rows at a time or parts of rows
// gave 53 and 41 % (one thread of an EPYC of family 25, model 17, 2026-11-23).
#include "kernels/check.hpp"
#include "kernels/cpu/isa/intrinsics.hpp"
#include "kernels/cpu/product/few_rows.hpp"

#include <algorithm>

namespace shoal::kernels::cpu {

#if defined(__x86_64__)

namespace {

/// Values of a register, and of a line.
constexpr std::size_t line = 32;

SHOAL_BF16 inline __m512bh line_at(const bf16* from) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
}

/// Loads the last `values` of a row, then zeros.
SHOAL_BF16 inline __m512bh part_at(const bf16* from, std::size_t values) {
  const auto mask = static_cast<__mmask32>((std::uint64_t{1} << values) - 1);
  return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(mask, from));
}

/// sums[t] += w * the activations of token t from input i on.
template <std::size_t T>
SHOAL_BF16 inline void
add_line(__m512* sums, __m512bh w, const rounded_rows& x, std::size_t i) {
  const bf16* const from = x.values.data() + i;
#pragma GCC unroll 4
  for (std::size_t t = 0; t != T; ++t)
    sums[t] = _mm512_dpbf16_ps(sums[t], w, line_at(from + t * x.padded));
}

template <std::size_t T>
SHOAL_BF16 void
rows(matrix_view<float> y_TO, const rounded_rows& x,
     matrix_view<const bf16> w_OI, std::size_t first, std::size_t last) {
  const auto whole = w_OI.cols / (2 * line) * (2 * line);
  for (auto o = first; o != last; ++o) {
    const bf16* const w = w_OI.row(o);
    __m512 even[T], odd[T]; // a line each, so that a sum is ready when needed
    for (std::size_t t = 0; t != T; ++t)
      even[t] = odd[t] = _mm512_setzero_ps();
    for (std::size_t i = 0; i != whole; i += 2 * line) {
      add_line<T>(even, line_at(w + i), x, i);
      add_line<T>(odd, line_at(w + i + line), x, i + line);
    }
    for (auto i = whole; i < w_OI.cols; i += line)
      add_line<T>(even, part_at(w + i, std::min(line, w_OI.cols - i)), x, i);
    for (std::size_t t = 0; t != T; ++t)
      y_TO(t, o) = _mm512_reduce_add_ps(_mm512_add_ps(even[t], odd[t]));
  }
}

} // namespace

SHOAL_BF16 void
rounded_rows::set(std::size_t t, const float* x_I, std::size_t cols) {
  for (std::size_t i = 0; i < cols; i += 16) {
    const auto n = std::min<std::size_t>(16, cols - i);
    const auto mask = static_cast<__mmask16>((1u << n) - 1);
    const __m256bh half =
      _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x_I + i));
    _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(values.data() + t * padded + i),
      reinterpret_cast<__m256i>(half));
  }
}

void rows_product_dot(matrix_view<float> y_TO, const rounded_rows& x,
                      matrix_view<const bf16> w_OI, std::size_t first,
                      std::size_t last) {
  switch (y_TO.rows) {
  case 1:
    return rows<1>(y_TO, x, w_OI, first, last);
  case 2:
    return rows<2>(y_TO, x, w_OI, first, last);
  case 3:
    return rows<3>(y_TO, x, w_OI, first, last);
  case 4:
    return rows<4>(y_TO, x, w_OI, first, last);
  default:
    return;
  }
}

#else

void rounded_rows::set(std::size_t, const float*, std::size_t) {
  check_failed("no bf16 here", __FILE__, __LINE__);
}

void rows_product_dot(matrix_view<float>, const rounded_rows&,
                      matrix_view<const bf16>, std::size_t, std::size_t) {
  check_failed("no bf16 here", __FILE__, __LINE__);
}

#endif

void rounded_rows::resize(std::size_t row_count, std::size_t cols) {
  padded = (cols + 31) / 32 * 32;
  values.assign(row_count * padded, {});
}

} // namespace shoal::kernels::cpu
