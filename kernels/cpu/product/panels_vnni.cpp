// kernels/cpu/product/panels_vnni.cpp -- products with q8 and q4 by vpdpbusd.
//
// A register holds four inputs of 16 outputs, so one instruction computes 64
// products, and the sum of a block needs no addition across lanes.
#include "kernels/common/check.hpp"
#include "kernels/cpu/isa/intrinsics.hpp"
#include "kernels/cpu/product/panels.hpp"
#include "kernels/inference/packed_layout.hpp"

#include <algorithm>
#include <cstring>

namespace shoal::kernels::cpu {

#if defined(__x86_64__)

namespace {

/// Four codes of an input row, in all lanes.
SHOAL_VNNI inline __m512i four(const std::int8_t* codes) {
  std::int32_t word;
  std::memcpy(&word, codes, sizeof word);
  return _mm512_set1_epi32(word);
}

/// Constants that the products of all panels use.
struct constants {
  __m512i table, nibble, upper;
};

SHOAL_VNNI inline constants make_constants() {
  alignas(64) std::uint8_t levels[64];
  for (int i = 0; i != 64; ++i)
    levels[i] = static_cast<std::uint8_t>(q4_codes[i % 16] + code_offset);
  return {_mm512_load_si512(levels), _mm512_set1_epi8(0x0f),
          _mm512_set1_epi32(static_cast<int>(0xffff0000u))};
}

/// The codes of a line of q4: of block 0 and of block 1.
struct code_pair {
  __m512i of[2];
};

SHOAL_VNNI inline code_pair
nibbles_at(const std::byte* line, const constants& with) {
  const __m512i both = _mm512_loadu_si512(line);
  const __m512i high = _mm512_srli_epi32(both, 4);
  return {
    {_mm512_shuffle_epi8(with.table, _mm512_and_si512(both, with.nibble)),
     _mm512_shuffle_epi8(with.table, _mm512_and_si512(high, with.nibble))}};
}

template <weight_type Type>
SHOAL_VNNI inline void
load_chunk(__m512i* w, const std::byte* chunk, const constants& with) {
  const auto* codes = chunk + scale_bytes;
  if (Type == weight_type::q8) {
    for (int g = 0; g != 16; ++g)
      w[g] = _mm512_loadu_si512(codes + 64 * g);
    return;
  }
  for (int g = 0; g != 8; ++g) {
    const auto pair = nibbles_at(codes + 64 * g, with);
    w[g] = pair.of[0];
    w[8 + g] = pair.of[1];
  }
}

/// Prefetches the cache line `prefetch_bytes_wide` past `line`.
SHOAL_VNNI inline void prefetch_past(const std::byte* line) {
  _mm_prefetch(reinterpret_cast<const char*>(line + prefetch_bytes_wide),
               _MM_HINT_T0);
}

/// sum + products of a block * the scales of its weights and of its inputs.
SHOAL_VNNI inline __m512
add_scaled(__m512 sum, __m512i products, __m512 weights, float inputs) {
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(products),
                         _mm512_mul_ps(weights, _mm512_set1_ps(inputs)), sum);
}

/// The scales of a chunk: of block 0 and of block 1.
struct chunk_scales {
  __m512 of[2];
};

SHOAL_VNNI inline chunk_scales
scales_of(const std::byte* chunk, const constants& with) {
  const __m512i both = _mm512_loadu_si512(chunk);
  return {{_mm512_castsi512_ps(_mm512_slli_epi32(both, 16)),
           _mm512_castsi512_ps(_mm512_and_si512(both, with.upper))}};
}

/// Adds the products of chunk `c` of a panel with one token. Only the speed of
/// reading the chunk matters: it reads line after line, with few instructions
/// for each, and without software prefetch, since the processor's own is
/// better. Memory runs at 95 % of its rate this way; with two panels at a time,
/// or with lines prefetched and loaded a chunk at a time, it ran at 51 % (q8)
/// and 58 % (q4) (1.1B Llama shape, one thread of an EPYC of family 25, model
/// 17, `shoal bench decode`, 2026-11-23).
template <weight_type Type>
SHOAL_VNNI inline __m512
add_chunk_of_one(__m512 sum, const quantised_rows& x, std::size_t c,
                 const std::byte* chunk, const constants& with) {
  const auto* codes = x.codes.data() + c * chunk_cols; // one row
  const auto* offsets = x.offsets.data() + 2 * c;
  __m512i sum0 = _mm512_set1_epi32(offsets[0]);
  __m512i sum1 = _mm512_set1_epi32(offsets[1]);
  const auto* line = chunk + scale_bytes;
  if (Type == weight_type::q8) {
    for (int g = 0; g != 8; ++g, line += 64, codes += 4) {
      sum0 = _mm512_dpbusd_epi32(sum0, _mm512_loadu_si512(line), four(codes));
    }
    for (int g = 0; g != 8; ++g, line += 64, codes += 4) {
      sum1 = _mm512_dpbusd_epi32(sum1, _mm512_loadu_si512(line), four(codes));
    }
  } else {
    for (int g = 0; g != 8; ++g, line += 64, codes += 4) {
      const auto w = nibbles_at(line, with);
      sum0 = _mm512_dpbusd_epi32(sum0, w.of[0], four(codes));
      sum1 = _mm512_dpbusd_epi32(sum1, w.of[1], four(codes + block_cols));
    }
  }
  const auto scales = scales_of(chunk, with);
  sum = add_scaled(sum, sum0, scales.of[0], x.scales[2 * c]);
  return add_scaled(sum, sum1, scales.of[1], x.scales[2 * c + 1]);
}

/// Adds the products of a chunk in registers with row `row` of the activations.
SHOAL_VNNI inline __m512
add_row(__m512 sum, const __m512i* w, const chunk_scales& scales,
        const quantised_rows& x, std::size_t row) {
  const auto* codes = x.codes.data() + row * chunk_cols;
  __m512i sum0 = _mm512_set1_epi32(x.offsets[2 * row]);
  __m512i sum1 = _mm512_set1_epi32(x.offsets[2 * row + 1]);
#pragma GCC unroll 8
  for (int g = 0; g != 8; ++g) {
    sum0 = _mm512_dpbusd_epi32(sum0, w[g], four(codes + 4 * g));
    sum1 =
      _mm512_dpbusd_epi32(sum1, w[8 + g], four(codes + block_cols + 4 * g));
  }
  sum = add_scaled(sum, sum0, scales.of[0], x.scales[2 * row]);
  return add_scaled(sum, sum1, scales.of[1], x.scales[2 * row + 1]);
}

/// The same with each of several tokens.
template <weight_type Type, std::size_t T>
SHOAL_VNNI inline void
add_chunk(__m512* sums, const quantised_rows& x, std::size_t c,
          const std::byte* chunk, const constants& with) {
  for (std::size_t line = 0; line < chunk_bytes(Type); line += 64)
    prefetch_past(chunk + line);
  __m512i w[16];
  load_chunk<Type>(w, chunk, with);
  const auto scales = scales_of(chunk, with);
  for (std::size_t t = 0; t != T; ++t)
    sums[t] = add_row(sums[t], w, scales, x, c * x.rows + t);
}

/// The lanes of a panel that are outputs.
inline __mmask16 outputs_of(std::size_t panel, std::size_t outputs) {
  const auto count = std::min(panel_rows, outputs - panel * panel_rows);
  return static_cast<__mmask16>((1u << count) - 1);
}

template <weight_type Type, std::size_t T>
SHOAL_VNNI void
panels(matrix_view<float> y_TO, const quantised_rows& x,
       const packed_weight& w_OI, std::size_t first, std::size_t last) {
  const auto chunks = chunks_of(w_OI.cols());
  const constants with = make_constants();
  const auto* chunk = w_OI.data() + first * chunks * chunk_bytes(Type);
  for (auto p = first; p != last; ++p) {
    __m512 sums[T];
    for (auto& sum : sums)
      sum = _mm512_setzero_ps();
    for (std::size_t c = 0; c != chunks; ++c, chunk += chunk_bytes(Type))
      if constexpr (T == 1)
        sums[0] = add_chunk_of_one<Type>(sums[0], x, c, chunk, with);
      else
        add_chunk<Type, T>(sums, x, c, chunk, with);
    const auto o = p * panel_rows;
    const auto mask = outputs_of(p, y_TO.cols);
    for (std::size_t t = 0; t != T; ++t)
      _mm512_mask_storeu_ps(y_TO.row(t) + o, mask, sums[t]);
  }
}

/// Tokens whose sums of a panel stay in the first-level cache: 8 KiB, and as
/// many of the activations of a chunk.
constexpr std::size_t tile_tokens = 128;

/// Many tokens: a chunk is loaded, and unpacked, once for tile_tokens.
template <weight_type Type>
SHOAL_VNNI void
panels_of_many(matrix_view<float> y_TO, const quantised_rows& x,
               const packed_weight& w_OI, std::size_t first, std::size_t last) {
  const constants with = make_constants();
  alignas(64) float sums[tile_tokens * panel_rows];
  for (auto p = first; p != last; ++p) {
    const auto* const panel = w_OI.data() + p * x.chunks * chunk_bytes(Type);
    const auto mask = outputs_of(p, y_TO.cols);
    for (std::size_t t0 = 0; t0 < x.rows; t0 += tile_tokens) {
      const auto tokens = std::min(tile_tokens, x.rows - t0);
      std::fill_n(sums, tokens * panel_rows, 0.0f);
      for (std::size_t c = 0; c != x.chunks; ++c) {
        const auto* const chunk = panel + c * chunk_bytes(Type);
        for (std::size_t line = 0; line < chunk_bytes(Type); line += 64)
          prefetch_past(chunk + line);
        __m512i w[16];
        load_chunk<Type>(w, chunk, with);
        const auto scales = scales_of(chunk, with);
        for (std::size_t t = 0; t != tokens; ++t) {
          float* const sum = sums + t * panel_rows;
          _mm512_store_ps(sum, add_row(_mm512_load_ps(sum), w, scales, x,
                                       c * x.rows + t0 + t));
        }
      }
      for (std::size_t t = 0; t != tokens; ++t)
        _mm512_mask_storeu_ps(y_TO.row(t0 + t) + p * panel_rows, mask,
                              _mm512_load_ps(sums + t * panel_rows));
    }
  }
}

template <weight_type Type>
void panels_any(matrix_view<float> y_TO, const quantised_rows& x,
                const packed_weight& w_OI, std::size_t first,
                std::size_t last) {
  switch (y_TO.rows) {
  case 1:
    return panels<Type, 1>(y_TO, x, w_OI, first, last);
  case 2:
    return panels<Type, 2>(y_TO, x, w_OI, first, last);
  case 3:
    return panels<Type, 3>(y_TO, x, w_OI, first, last);
  case 4:
    return panels<Type, 4>(y_TO, x, w_OI, first, last);
  case 5:
    return panels<Type, 5>(y_TO, x, w_OI, first, last);
  case 6:
    return panels<Type, 6>(y_TO, x, w_OI, first, last);
  case 7:
    return panels<Type, 7>(y_TO, x, w_OI, first, last);
  case 8:
    return panels<Type, 8>(y_TO, x, w_OI, first, last);
  default:
    return panels_of_many<Type>(y_TO, x, w_OI, first, last);
  }
}

} // namespace

void panels_product_vnni(matrix_view<float> y_TO, const quantised_rows& x,
                         const packed_weight& w_OI, std::size_t first,
                         std::size_t last) {
  if (w_OI.type() == weight_type::q8)
    panels_any<weight_type::q8>(y_TO, x, w_OI, first, last);
  else
    panels_any<weight_type::q4>(y_TO, x, w_OI, first, last);
}

#else

void panels_product_vnni(matrix_view<float>, const quantised_rows&,
                         const packed_weight&, std::size_t, std::size_t) {
  check_failed("no VNNI here", __FILE__, __LINE__);
}

#endif

} // namespace shoal::kernels::cpu
