// kernels/cpu/product/panels.cpp -- q8 and q4 times 8 bits, for every target.
//
// Lanes are outputs, so registers of fewer than 16 lanes process a panel in
// parts.
#include "kernels/cpu/product/panels.hpp"

#include "kernels/inference/packed_layout.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/product/panels.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

using words = hn::RebindToUnsigned<tag>;

using ints = hn::RebindToSigned<tag>;

#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t prefetch_distance = prefetch_bytes_wide;
#else
constexpr std::size_t prefetch_distance = prefetch_bytes;
#endif

#if HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX3

using bytes = hn::Repartition<std::uint8_t, tag>;
using shorts = hn::Repartition<std::int16_t, tag>;

/// sum + the four products of a lane: unsigned bytes of w, signed ones of x.
HWY_INLINE hn::Vec<ints>
add_four(hn::Vec<ints> sum, hn::Vec<words> w, const std::int8_t* x) {
  const ints di;
  const words dw;
  const shorts ds;
  const auto mask = hn::Set(dw, 0x00ff00ffu);
  const auto pair = [](std::int8_t low, std::int8_t high) {
    return static_cast<std::uint32_t>(static_cast<std::uint16_t>(low))
           | static_cast<std::uint32_t>(static_cast<std::uint16_t>(high)) << 16;
  };
  const auto even = hn::BitCast(ds, hn::And(w, mask));
  const auto odd = hn::BitCast(ds, hn::And(hn::ShiftRight<8>(w), mask));
  const auto x02 = hn::BitCast(ds, hn::Set(dw, pair(x[0], x[2])));
  const auto x13 = hn::BitCast(ds, hn::Set(dw, pair(x[1], x[3])));
  auto none = hn::Zero(di);
  sum = hn::ReorderWidenMulAccumulate(di, even, x02, sum, none);
  return hn::ReorderWidenMulAccumulate(di, odd, x13, sum, none);
}

/// Outputs [lane, lane + Lanes) of a panel for token t.
template <weight_type Type>
HWY_INLINE void panel_part(float* sums, const quantised_rows& x, std::size_t t,
                           const std::byte* panel, std::size_t lane) {
  const tag d;
  const ints di;
  const words dw;
  const bytes db;
  const auto high = hn::Set(dw, 0xffff0000u);
  HWY_ALIGN std::uint8_t levels[hn::MaxLanes(bytes())];
  for (std::size_t i = 0; i != hn::Lanes(db); ++i)
    levels[i] = static_cast<std::uint8_t>(q4_codes[i % 16] + code_offset);
  const auto table = hn::Load(db, levels);
  const auto nibble = hn::Set(dw, 0x0f0f0f0fu);
  auto sum = hn::Zero(d);
  for (std::size_t c = 0; c != x.chunks; ++c) {
    const auto row = c * x.rows + t;
    const auto* chunk = panel + c * chunk_bytes(Type) + 4 * lane;
    const auto word = [&](std::size_t at) {
      return hn::LoadU(dw, reinterpret_cast<const std::uint32_t*>(chunk + at));
    };
    __builtin_prefetch(chunk + prefetch_distance);
    auto sum0 = hn::Set(di, x.offsets[2 * row]);
    auto sum1 = hn::Set(di, x.offsets[2 * row + 1]);
    const auto* x0 = x.codes.data() + row * chunk_cols;
    for (std::size_t g = 0; g != 8; ++g) {
      auto w0 = word(scale_bytes + 64 * g);
      auto w1 = w0;
      if (Type == weight_type::q8) {
        w1 = word(scale_bytes + 64 * (8 + g));
      } else {
        const auto index0 = hn::BitCast(db, hn::And(w0, nibble));
        const auto index1 =
          hn::BitCast(db, hn::And(hn::ShiftRight<4>(w0), nibble));
        w0 = hn::BitCast(dw, hn::TableLookupBytes(table, index0));
        w1 = hn::BitCast(dw, hn::TableLookupBytes(table, index1));
      }
      sum0 = add_four(sum0, w0, x0 + 4 * g);
      sum1 = add_four(sum1, w1, x0 + block_cols + 4 * g);
    }
    const auto both = word(0);
    const auto s0 = hn::BitCast(d, hn::ShiftLeft<16>(both));
    const auto s1 = hn::BitCast(d, hn::And(both, high));
    sum = hn::MulAdd(hn::ConvertTo(d, sum0),
                     hn::Mul(s0, hn::Set(d, x.scales[2 * row])), sum);
    sum = hn::MulAdd(hn::ConvertTo(d, sum1),
                     hn::Mul(s1, hn::Set(d, x.scales[2 * row + 1])), sum);
  }
  hn::StoreU(sum, d, sums + lane);
}

#elif HWY_TARGET != HWY_AVX2 // one lane, and targets without pairs of products

template <weight_type Type>
void panel_part(float* sums, const quantised_rows& x, std::size_t t,
                const std::byte* panel, std::size_t lane) {
  const tag d;
  for (std::size_t n = lane; n != lane + hn::Lanes(d); ++n) {
    float sum = 0;
    for (std::size_t b = 0; b != 2 * x.chunks; ++b) {
      const auto row = b / 2 * x.rows + t;
      const auto* chunk = panel + b / 2 * chunk_bytes(Type);
      const auto* codes =
        x.codes.data() + row * chunk_cols + b % 2 * block_cols;
      const auto* from = chunk + scale_bytes + 4 * n;
      std::int32_t dot = 0;
      for (std::size_t k = 0; k != block_cols; ++k) {
        const auto at = 64 * (k / 4) + k % 4;
        dot += codes[k]
               * (Type == weight_type::q8
                    ? static_cast<int>(from[at + b % 2 * 512]) - code_offset
                    : q4_codes[static_cast<int>(from[at]) >> (b % 2 * 4) & 15]);
      }
      bf16 scale;
      std::memcpy(&scale, chunk + 4 * n + 2 * (b % 2), sizeof scale);
      sum +=
        static_cast<float>(dot) * (to_float(scale) * x.scales[2 * row + b % 2]);
    }
    sums[n] = sum;
  }
}

#endif

#if HWY_TARGET == HWY_AVX2

/// Adds four signed bytes of w times four of x to sums of 8 outputs. Codes are
/// 127 at most, so the sum of two products fits into 16 bits.
HWY_INLINE __m256i add_bytes(__m256i sum, __m256i w, __m256i x,
                             __m256i magnitude_x) {
  const auto pairs = _mm256_maddubs_epi16(magnitude_x, _mm256_sign_epi8(w, x));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

HWY_INLINE __m256i load_bytes(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

/// Adds the products of block `Block` of a chunk of each of several panels,
/// `stride` bytes apart, to their sums: eight outputs each.
template <weight_type Type, std::size_t Block, std::size_t Panels>
HWY_INLINE void
add_block(__m256 (&sums)[Panels][2], const std::byte* chunk, std::size_t stride,
          const std::int8_t* codes, float x_scale, __m256i table) {
  const auto nibble = _mm256_set1_epi8(0x0f);
  const auto offset = _mm256_set1_epi8(static_cast<char>(code_offset));
  __m256i dots[Panels][2] = {};
  // Not unrolled further: GCC would keep too many values in registers at once.
#pragma GCC unroll 2
  for (std::size_t g = 0; g != 8; ++g) {
    std::int32_t four;
    std::memcpy(&four, codes + block_cols * Block + 4 * g, sizeof four);
    const auto x = _mm256_set1_epi32(four);
    const auto magnitude_x = _mm256_abs_epi8(x);
#pragma GCC unroll 2
    for (std::size_t i = 0; i != Panels; ++i)
#pragma GCC unroll 2
      for (std::size_t half = 0; half != 2; ++half) {
        constexpr std::size_t group = Type == weight_type::q8 ? 8 * Block : 0;
        auto w = load_bytes(chunk + i * stride + scale_bytes + 64 * (group + g)
                            + 32 * half);
        if (Type == weight_type::q8) {
          w = _mm256_xor_si256(w, offset);
        } else {
          if (Block == 1)
            w = _mm256_srli_epi32(w, 4);
          w = _mm256_shuffle_epi8(table, _mm256_and_si256(w, nibble));
        }
        dots[i][half] = add_bytes(dots[i][half], w, x, magnitude_x);
      }
  }
  for (std::size_t i = 0; i != Panels; ++i)
    for (std::size_t half = 0; half != 2; ++half) {
      auto bits = load_bytes(chunk + i * stride + 32 * half);
      bits = Block == 0 ? _mm256_slli_epi32(bits, 16)
                        : _mm256_and_si256(bits, _mm256_set1_epi32(-65536));
      const auto factors =
        _mm256_mul_ps(_mm256_castsi256_ps(bits), _mm256_set1_ps(x_scale));
      sums[i][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[i][half]),
                                      factors, sums[i][half]);
    }
}

/// Multiplies `Panels` consecutive panels by token t: several streams keep more
/// of the memory busy than one.
template <weight_type Type, std::size_t Panels>
void panels_times(float* to, const quantised_rows& x, std::size_t t,
                  const std::byte* panel, std::size_t stride) {
  __m256 sums[Panels][2] = {};
  const auto table = _mm256_broadcastsi128_si256(
    _mm_loadu_si128(reinterpret_cast<const __m128i*>(q4_codes)));
  const auto* codes = x.codes.data() + t * chunk_cols;
  const auto* scales = x.scales.data() + 2 * t;
  for (std::size_t c = 0; c != x.chunks; ++c) {
    const auto* chunk = panel + c * chunk_bytes(Type);
    // To the second-level cache: at this distance it is too early for the
    // first. For q8 the processor's own prefetcher is better alone.
    if (Type == weight_type::q4)
      for (std::size_t i = 0; i != Panels; ++i)
        for (std::size_t at = 0; at < chunk_bytes(Type); at += 64)
          __builtin_prefetch(chunk + i * stride + at + prefetch_bytes, 0, 2);
    add_block<Type, 0>(sums, chunk, stride, codes, scales[0], table);
    add_block<Type, 1>(sums, chunk, stride, codes, scales[1], table);
    codes += x.rows * chunk_cols;
    scales += 2 * x.rows;
  }
  for (std::size_t i = 0; i != Panels; ++i)
    for (std::size_t half = 0; half != 2; ++half)
      _mm256_storeu_ps(to + i * panel_rows + 8 * half, sums[i][half]);
}

#else

template <weight_type Type, std::size_t Panels>
void panels_times(float* to, const quantised_rows& x, std::size_t t,
                  const std::byte* panel, std::size_t stride) {
  const auto lanes = std::min(hn::Lanes(tag()), panel_rows);
  for (std::size_t i = 0; i != Panels; ++i)
    for (std::size_t lane = 0; lane < panel_rows; lane += lanes)
      panel_part<Type>(to + i * panel_rows, x, t, panel + i * stride, lane);
}

#endif

template <weight_type Type>
void panels(matrix_view<float> y_TO, const quantised_rows& x,
            const packed_weight& w_OI, std::size_t first, std::size_t last) {
  const auto stride = chunks_of(w_OI.cols()) * chunk_bytes(Type);
  const auto together = y_TO.rows == 1 ? streams : 1;
  for (auto p = first; p < last; p += together) {
    const auto count = std::min(together, last - p);
    const auto* panel = w_OI.data() + p * stride;
    const auto o = p * panel_rows;
    const auto outputs = std::min(count * panel_rows, y_TO.cols - o);
    for (std::size_t t = 0; t != y_TO.rows; ++t) {
      float sums[streams * panel_rows];
      if (count == streams)
        panels_times<Type, streams>(sums, x, t, panel, stride);
      else
        panels_times<Type, 1>(sums, x, t, panel, stride);
      std::copy_n(sums, outputs, y_TO.row(t) + o);
    }
  }
}

void panels_any(matrix_view<float> y_TO, const quantised_rows& x,
                const packed_weight& w_OI, std::size_t first,
                std::size_t last) {
  if (w_OI.type() == weight_type::q8)
    panels<weight_type::q8>(y_TO, x, w_OI, first, last);
  else
    panels<weight_type::q4>(y_TO, x, w_OI, first, last);
}

/// Rounds one block.
void quantise_block(std::int8_t* codes, float* scale, std::int32_t* offset,
                    const float* x) {
  const tag d;
  const ints di;
  const hn::Rebind<std::int8_t, tag> d8;
  const auto lanes = hn::Lanes(d); // divides block_cols
  const auto rounding = rounding_of(x, block_cols, 127.0f);
  *scale = rounding.scale;
  auto sum = hn::Zero(di);
  for (std::size_t i = 0; i != block_cols; i += lanes) {
    const auto code =
      hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), rounding.inverse));
    sum = hn::Add(sum, code);
    hn::StoreU(hn::DemoteTo(d8, code), d8, codes + i);
  }
  // Codes of values that are not finite have any sum; their scale is NaN.
  const auto total =
    static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(di, sum)));
  *offset = static_cast<std::int32_t>(0u - code_offset * total);
}

void quantise_any(quantised_rows& to, std::size_t t, const float* x,
                  std::size_t cols) {
  for (std::size_t b = 0; b != 2 * to.chunks; ++b) {
    const auto at = std::min(cols, b * block_cols);
    const auto size = std::min(block_cols, cols - at);
    const float* from = x + at;
    float part[block_cols] = {};
    if (size != block_cols) {
      std::copy_n(from, size, part);
      from = part;
    }
    const auto row = b / 2 * to.rows + t;
    quantise_block(&to.codes[row * chunk_cols + b % 2 * block_cols],
                   &to.scales[2 * row + b % 2], &to.offsets[2 * row + b % 2],
                   from);
  }
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(panels_any);
HWY_EXPORT(quantise_any);

void quantised_rows::resize(std::size_t row_count, std::size_t cols) {
  rows = row_count;
  chunks = chunks_of(cols);
  codes.resize(chunks * rows * chunk_cols);
  scales.resize(chunks * rows * 2);
  offsets.resize(chunks * rows * 2);
}

void quantise_row(quantised_rows& to, std::size_t t, const float* x_I,
                  std::size_t cols) {
  HWY_DYNAMIC_DISPATCH(quantise_any)(to, t, x_I, cols);
}

void panels_product(matrix_view<float> y_TO, const quantised_rows& x,
                    const packed_weight& w_OI, std::size_t first,
                    std::size_t last) {
  HWY_DYNAMIC_DISPATCH(panels_any)(y_TO, x, w_OI, first, last);
}

} // namespace shoal::kernels::cpu
#endif
