// kernels/cpu/product/rows_dot.cpp -- rows of bf16 by vdpbf16ps.
//
// For one token only the speed of reading the rows matters: they are read one
// after the other, line after line, without software prefetch. The activations
// stay in the first-level cache beside them, and are rounded to bf16 for that.
// In float the activations of 5632 inputs take 22 of its 32 KiB, and memory ran
// at 66 % of its rate; it runs at 101 % this way. Two rows at a time or parts of
// rows gave 53 and 41 % (one thread of an EPYC of family 25, model 17,
// 2026-11-23).
#include "kernels/common/check.hpp"
#include "kernels/cpu/isa/intrinsics.hpp"
#include "kernels/cpu/product/rows.hpp"

#include <algorithm>

namespace shoal::kernels::cpu {

#if defined(__x86_64__)

namespace {

/// Values of a register, and of a line: a step.
constexpr std::size_t line = 32;
/// With the columns of weights and one of activations: 29 of 32 registers.
constexpr std::size_t tile_tokens = 6;
static_assert(tile_tokens <= tile_tokens_max);
/// Steps whose activations stay in the first-level cache: 24 KiB.
constexpr std::size_t block_steps = 64;

SHOAL_BF16 inline __m512bh line_at(const bf16* from) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
}

/// Loads the last `values` of a row, then zeros.
SHOAL_BF16 inline __m512bh part_at(const bf16* from, std::size_t values) {
  const auto mask = static_cast<__mmask32>((std::uint64_t{1} << values) - 1);
  return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(mask, from));
}

SHOAL_BF16 inline __m512d both(__m512 a, __m512 b) {
  return _mm512_castps_pd(
    _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));
}

/// Adds the lanes of each of four sums and writes the first `count` results.
SHOAL_BF16 inline void
finish_sums(const __m512 (&sums)[panel_outputs], float* to, std::size_t count) {
  const __m512d low = both(sums[0], sums[1]);
  const __m512d high = both(sums[2], sums[3]);
  const __m512 four =
    _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(low, high)),
                  _mm512_castpd_ps(_mm512_unpackhi_pd(low, high)));
  const __m512 two =
    _mm512_add_ps(four, _mm512_shuffle_f32x4(four, four, 0x4e));
  const __m512 one = _mm512_add_ps(two, _mm512_shuffle_f32x4(two, two, 0xb1));
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), one);
}

/// sums[t] += a line of weights * the same of token t.
template <std::size_t T>
SHOAL_BF16 inline void
add_line(__m512* sums, __m512bh w, const bf16* x, std::size_t stride) {
#pragma GCC unroll 6
  for (std::size_t t = 0; t != T; ++t)
    sums[t] = _mm512_dpbf16_ps(sums[t], w, line_at(x + t * stride));
}

template <std::size_t T>
SHOAL_BF16 void rows_in_place(matrix_view<float> y_TO, const row_activations& x,
                              matrix_view<const bf16> w_OI, std::size_t first,
                              std::size_t last) {
  const auto* const from = reinterpret_cast<const bf16*>(x.data);
  const auto stride = x.stride / sizeof(bf16);
  const auto whole = w_OI.cols / line * line;
  for (auto o = first; o < last; o += panel_outputs) {
    const auto count = std::min(panel_outputs, last - o);
    __m512 sums[T][panel_outputs];
    for (std::size_t c = 0; c != panel_outputs; ++c) {
      __m512 part[T];
      for (auto& sum : part)
        sum = _mm512_setzero_ps();
      if (c < count) {
        const bf16* const w = w_OI.row(o + c);
        for (std::size_t i = 0; i != whole; i += line) {
          __builtin_prefetch(w + i + prefetch_bytes_wide / sizeof(bf16));
          add_line<T>(part, line_at(w + i), from + i, stride);
        }
        if (whole != w_OI.cols)
          add_line<T>(part, part_at(w + whole, w_OI.cols - whole), from + whole,
                      stride);
      }
      for (std::size_t t = 0; t != T; ++t)
        sums[t][c] = part[t];
    }
    for (std::size_t t = 0; t != T; ++t)
      finish_sums(sums[t], y_TO.row(t) + o, count);
  }
}

void in_place(matrix_view<float> y_TO, const row_activations& x,
              const packed_weight& w_OI, std::size_t first, std::size_t last) {
  const auto w = w_OI.halves();
  switch (x.tokens) {
  case 1:
    return rows_in_place<1>(y_TO, x, w, first, last);
  case 2:
    return rows_in_place<2>(y_TO, x, w, first, last);
  case 3:
    return rows_in_place<3>(y_TO, x, w, first, last);
  case 4:
    return rows_in_place<4>(y_TO, x, w, first, last);
  case 5:
    return rows_in_place<5>(y_TO, x, w, first, last);
  case 6:
    return rows_in_place<6>(y_TO, x, w, first, last);
  default:
    return;
  }
}

/// sums[t][c] += a line of row c * the same of token t.
template <std::size_t T>
SHOAL_BF16 inline void add_columns(__m512 (&sums)[T][panel_outputs],
                                   const __m512bh (&columns)[panel_outputs],
                                   const bf16* x, std::size_t stride) {
#pragma GCC unroll 6
  for (std::size_t t = 0; t != T; ++t) {
    const __m512bh row = line_at(x + t * stride);
#pragma GCC unroll 4
    for (std::size_t c = 0; c != panel_outputs; ++c)
      sums[t][c] = _mm512_dpbf16_ps(sums[t][c], columns[c], row);
  }
}

/// Rows that a tile reads, and those that it fetches for the next one.
struct row_group {
  const bf16* w[panel_outputs];
  const bf16* next[panel_outputs];
};

/// Which of a product a tile is.
struct tile_place {
  std::size_t output, count;           ///< of the four rows
  std::size_t fetch_first, fetch_last; ///< of the next rows, to be fetched
};

template <std::size_t T>
SHOAL_BF16 void
tile_in_place(matrix_view<float> y_TO, const row_activations& x,
              const row_group& rows, std::size_t cols, const tile_place& at) {
  const auto* const from = reinterpret_cast<const bf16*>(x.data);
  const auto stride = x.stride / sizeof(bf16);
  const auto whole = cols / line * line;
  __m512 sums[T][panel_outputs];
  for (auto& of_token : sums)
    for (auto& sum : of_token)
      sum = _mm512_setzero_ps();
  __m512bh columns[panel_outputs];
  for (std::size_t i = 0; i != whole; i += line) {
    for (auto r = at.fetch_first; r != at.fetch_last; ++r)
      __builtin_prefetch(rows.next[r] + i);
#pragma GCC unroll 4
    for (std::size_t c = 0; c != panel_outputs; ++c)
      columns[c] = line_at(rows.w[c] + i);
    add_columns(sums, columns, from + i, stride);
  }
  if (whole != cols) {
#pragma GCC unroll 4
    for (std::size_t c = 0; c != panel_outputs; ++c)
      columns[c] = part_at(rows.w[c] + whole, cols - whole);
    add_columns(sums, columns, from + whole, stride);
  }
#pragma GCC unroll 6
  for (std::size_t t = 0; t != T; ++t)
    finish_sums(sums[t], y_TO.row(t) + at.output, at.count);
}

using tile_function = void (*)(matrix_view<float>, const row_activations&,
                               const row_group&, std::size_t,
                               const tile_place&);
/// By its tokens.
constexpr tile_function tile_functions[tile_tokens + 1] = {
  nullptr,          tile_in_place<1>, tile_in_place<2>, tile_in_place<3>,
  tile_in_place<4>, tile_in_place<5>, tile_in_place<6>};

/// Tiles of nearly equal size: five and five are faster than six and four. The
/// tiles of four rows fetch the next four, in equal shares.
void tiled_in_place(matrix_view<float> y_TO, const row_activations& x,
                    const packed_weight& w_OI, std::size_t first,
                    std::size_t last) {
  const auto w = w_OI.halves();
  const std::size_t tiles = (x.tokens + tile_tokens - 1) / tile_tokens;
  for (auto o = first; o < last; o += panel_outputs) {
    const auto count = std::min(panel_outputs, last - o);
    row_group rows;
    for (std::size_t c = 0; c != panel_outputs; ++c) {
      rows.w[c] = w.row(o + std::min(c, count - 1));
      rows.next[c] = w.row(std::min(o + panel_outputs + c, last - 1));
    }
    std::size_t t = 0;
    for (std::size_t tile = 0; tile != tiles; ++tile) {
      const auto end = (tile + 1) * x.tokens / tiles;
      tile_functions[end - t](y_TO.slice_rows(t, end),
                              {x.data + t * x.stride, x.stride, end - t}, rows,
                              w.cols,
                              {o, count, tile * panel_outputs / tiles,
                               (tile + 1) * panel_outputs / tiles});
      t = end;
    }
  }
}

SHOAL_BF16 void
pack_x(const float* x_I, std::size_t cols, std::size_t steps, std::byte* to) {
  auto* const values = reinterpret_cast<bf16*>(to);
  for (std::size_t i = 0; i != steps * line; i += 16) {
    const auto n = std::min<std::size_t>(16, cols - std::min(cols, i));
    const auto mask = static_cast<__mmask16>((1u << n) - 1);
    const __m256bh half =
      _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x_I + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(values + i),
                        reinterpret_cast<__m256i>(half));
  }
}

/// The panel holds four rows step by step: [steps][panel_outputs][line].
SHOAL_BF16 void pack_panel(const packed_weight& w_OI, std::size_t first,
                           std::size_t steps, std::byte* to) {
  const auto w = w_OI.halves();
  const auto count = std::min(panel_outputs, w.rows - first);
  for (std::size_t s = 0; s != steps; ++s) {
    const auto left = std::min(line, w.cols - s * line);
    for (std::size_t c = 0; c != panel_outputs; ++c, to += 64) {
      __m512i values = _mm512_setzero_si512();
      if (c < count) {
        const bf16* const from = w.row(first + c) + s * line;
        __builtin_prefetch(from + 8 * line);
        values = reinterpret_cast<__m512i>(left == line ? line_at(from)
                                                        : part_at(from, left));
      }
      _mm512_storeu_si512(to, values);
    }
  }
}

template <std::size_t T>
SHOAL_BF16 inline void
add_tile(__m512 (&sums)[T][panel_outputs], const bf16* __restrict x,
         std::size_t stride, const bf16* __restrict w, std::size_t steps) {
  for (std::size_t s = 0; s != steps; ++s) {
    __m512bh columns[panel_outputs];
#pragma GCC unroll 4
    for (std::size_t c = 0; c != panel_outputs; ++c)
      columns[c] = line_at(w + c * line);
    add_columns(sums, columns, x, stride);
    w += panel_outputs * line;
    x += line;
  }
}

template <std::size_t T>
SHOAL_BF16 void
multiply_tokens(matrix_view<float> y_TO, const row_activations& x,
                const row_panels& w, float* memory) {
  const auto* const from = reinterpret_cast<const bf16*>(x.data);
  const auto stride = x.stride / sizeof(bf16);
  for (std::size_t first = 0; first < w.steps; first += block_steps) {
    const auto steps = std::min(block_steps, w.steps - first);
    const bool ends = first + steps == w.steps;
    float* kept = memory;
    for (std::size_t o = 0; o < y_TO.cols; o += panel_outputs) {
      const auto* const panel =
        reinterpret_cast<const bf16*>(w.data + o / panel_outputs * w.bytes)
        + first * panel_outputs * line;
      __m512 sums[T][panel_outputs];
#pragma GCC unroll 6
      for (std::size_t t = 0; t != T; ++t)
#pragma GCC unroll 4
        for (std::size_t c = 0; c != panel_outputs; ++c)
          sums[t][c] = first == 0
                         ? _mm512_setzero_ps()
                         : _mm512_load_ps(kept + (t * panel_outputs + c) * 16);
      add_tile<T>(sums, from + first * line, stride, panel, steps);
      const auto count = std::min(panel_outputs, y_TO.cols - o);
#pragma GCC unroll 6
      for (std::size_t t = 0; t != T; ++t)
        if (ends)
          finish_sums(sums[t], y_TO.row(t) + o, count);
        else
#pragma GCC unroll 4
          for (std::size_t c = 0; c != panel_outputs; ++c)
            _mm512_store_ps(kept + (t * panel_outputs + c) * 16, sums[t][c]);
      kept += T * panel_outputs * 16;
    }
  }
}

void multiply(matrix_view<float> y_TO, const row_activations& x,
              const row_panels& w, std::byte* sums) {
  auto* const memory = reinterpret_cast<float*>(sums);
  switch (x.tokens) {
  case 1:
    return multiply_tokens<1>(y_TO, x, w, memory);
  case 2:
    return multiply_tokens<2>(y_TO, x, w, memory);
  case 3:
    return multiply_tokens<3>(y_TO, x, w, memory);
  case 4:
    return multiply_tokens<4>(y_TO, x, w, memory);
  case 5:
    return multiply_tokens<5>(y_TO, x, w, memory);
  case 6:
    return multiply_tokens<6>(y_TO, x, w, memory);
  default:
    return;
  }
}

} // namespace

row_engine dot_engine() {
  return {tile_tokens,
          line,
          line * sizeof(bf16),
          1,
          tile_tokens * panel_outputs * 16 * sizeof(float),
          pack_x,
          in_place,
          tiled_in_place,
          pack_panel,
          multiply};
}

#else

row_engine dot_engine() {
  check_failed("no bf16 dot products here", __FILE__, __LINE__);
}

#endif

} // namespace shoal::kernels::cpu
