// kernels/cpu/panels_vnni.cpp -- products with q8 and q4 by vpdpbusd.
//
// A register holds four inputs of 16 outputs, so one instruction does 64
// products and a block's sum needs no adding across lanes.
#include "kernels/check.hpp"
#include "kernels/cpu/few_rows.hpp"
#include "kernels/cpu/intrinsics.hpp"
#include "kernels/packed_layout.hpp"

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

template <weight_type Type>
SHOAL_VNNI inline void
load_chunk(__m512i* w, const std::byte* chunk, __m512i table, __m512i nibble) {
  const auto* codes = chunk + scale_bytes;
  if (Type == weight_type::q8) {
    for (int g = 0; g != 16; ++g)
      w[g] = _mm512_loadu_si512(codes + 64 * g);
    return;
  }
  for (int g = 0; g != 8; ++g) {
    const __m512i both = _mm512_loadu_si512(codes + 64 * g);
    const __m512i high = _mm512_srli_epi32(both, 4);
    w[g] = _mm512_shuffle_epi8(table, _mm512_and_si512(both, nibble));
    w[8 + g] = _mm512_shuffle_epi8(table, _mm512_and_si512(high, nibble));
  }
}

/// What all panels are multiplied with.
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

/// Adds the products of chunk `c` of a panel to the sums of each token; asks
/// for the one that lies `ahead` bytes behind it.
template <weight_type Type, std::size_t T>
SHOAL_VNNI inline void
add_chunk(__m512* sums, const quantised_rows& x, std::size_t c,
          const std::byte* chunk, std::size_t ahead, const constants& with) {
  for (std::size_t at = 0; at < chunk_bytes(Type); at += 64)
    _mm_prefetch(reinterpret_cast<const char*>(chunk + at + ahead),
                 _MM_HINT_T0);
  __m512i w[16];
  load_chunk<Type>(w, chunk, with.table, with.nibble);
  const __m512i scales = _mm512_loadu_si512(chunk);
  const __m512 s0 = _mm512_castsi512_ps(_mm512_slli_epi32(scales, 16));
  const __m512 s1 = _mm512_castsi512_ps(_mm512_and_si512(scales, with.upper));
  for (std::size_t t = 0; t != T; ++t) {
    const auto* codes = x.codes.data() + t * x.padded + c * chunk_cols;
    const auto at = t * (x.padded / block_cols) + 2 * c;
    __m512i sum0 = _mm512_set1_epi32(x.offsets[at]);
    __m512i sum1 = _mm512_set1_epi32(x.offsets[at + 1]);
    for (int g = 0; g != 8; ++g) {
      sum0 = _mm512_dpbusd_epi32(sum0, w[g], four(codes + 4 * g));
      sum1 =
        _mm512_dpbusd_epi32(sum1, w[8 + g], four(codes + block_cols + 4 * g));
    }
    const __m512 by0 = _mm512_mul_ps(s0, _mm512_set1_ps(x.scales[at]));
    const __m512 by1 = _mm512_mul_ps(s1, _mm512_set1_ps(x.scales[at + 1]));
    sums[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum0), by0, sums[t]);
    sums[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum1), by1, sums[t]);
  }
}

/// `Panels` panels at a time.
template <weight_type Type, std::size_t T, std::size_t Panels>
SHOAL_VNNI void
panels(matrix_view<float> y_TO, const quantised_rows& x,
       const packed_weight& w_OI, std::size_t first, std::size_t last) {
  const auto chunks = chunks_of(w_OI.cols());
  const auto panel = chunks * chunk_bytes(Type);
  const constants with = make_constants();
  for (auto p = first; p != last; p += Panels) {
    const auto* from = w_OI.data() + p * panel;
    __m512 sums[Panels][T];
    for (auto& of_panel : sums)
      for (auto& sum : of_panel)
        sum = _mm512_setzero_ps();
    for (std::size_t c = 0; c != chunks; ++c) {
      // Behind a panel's end comes the next of its own stream.
      const auto at = c * chunk_bytes(Type);
      const auto ahead =
        prefetch_bytes_wide
        + (at + prefetch_bytes_wide < panel ? 0 : (Panels - 1) * panel);
      for (std::size_t i = 0; i != Panels; ++i)
        add_chunk<Type, T>(sums[i], x, c, from + i * panel + at, ahead, with);
    }
    for (std::size_t i = 0; i != Panels; ++i) {
      const auto o = (p + i) * panel_rows;
      const auto outputs = std::min(panel_rows, y_TO.cols - o);
      const auto mask = static_cast<__mmask16>((1u << outputs) - 1);
      for (std::size_t t = 0; t != T; ++t)
        _mm512_mask_storeu_ps(y_TO.row(t) + o, mask, sums[i][t]);
    }
  }
}

/// One token: several panels at a time, as long as there are.
template <weight_type Type>
void panels_of_one(matrix_view<float> y_TO, const quantised_rows& x,
                   const packed_weight& w_OI, std::size_t first,
                   std::size_t last) {
  const auto whole = first + (last - first) / streams * streams;
  panels<Type, 1, streams>(y_TO, x, w_OI, first, whole);
  panels<Type, 1, 1>(y_TO, x, w_OI, whole, last);
}

template <weight_type Type>
void panels_any(matrix_view<float> y_TO, const quantised_rows& x,
                const packed_weight& w_OI, std::size_t first,
                std::size_t last) {
  switch (y_TO.rows) {
  case 1:
    return panels_of_one<Type>(y_TO, x, w_OI, first, last);
  case 2:
    return panels<Type, 2, 1>(y_TO, x, w_OI, first, last);
  case 3:
    return panels<Type, 3, 1>(y_TO, x, w_OI, first, last);
  case 4:
    return panels<Type, 4, 1>(y_TO, x, w_OI, first, last);
  case 5:
    return panels<Type, 5, 1>(y_TO, x, w_OI, first, last);
  case 6:
    return panels<Type, 6, 1>(y_TO, x, w_OI, first, last);
  case 7:
    return panels<Type, 7, 1>(y_TO, x, w_OI, first, last);
  case 8:
    return panels<Type, 8, 1>(y_TO, x, w_OI, first, last);
  default:
    return;
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
