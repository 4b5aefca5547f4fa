// kernels/cpu/bf16_tile.cpp -- tiles by AMX or by vdpbf16ps.
#include "kernels/cpu/bf16_tile.hpp"

#include "kernels/check.hpp"
#include "kernels/packed_layout.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of its own headers (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#endif

#include <cstring>

namespace shoal::kernels::cpu {

#if defined(__x86_64__)

#define SHOAL_BF16                                                             \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define SHOAL_AMX __attribute__((target("amx-tile,amx-bf16")))

namespace {

/// What the processor wants to know of the eight tiles: 16 rows of 64 bytes.
struct alignas(64) tile_configuration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(tile_configuration) == 64);

SHOAL_AMX void configure_tiles() {
  static constexpr tile_configuration all;
  _tile_loadconfig(&all);
}

/// GCC's tile instructions do not say which memory they read and write.
inline void memory_is_used() {
  asm volatile("" ::: "memory");
}

SHOAL_AMX void release_tiles() {
  _tile_release();
}

SHOAL_AMX void tile_amx(const bf16_tile_call& t) {
  memory_is_used();
  constexpr std::size_t c_stride = tile_side * sizeof(float);
  float* const c[4] = {t.c, t.c + 16, t.c + 16 * tile_side,
                       t.c + 16 * tile_side + 16};
  if (t.add) {
    _tile_loadd(0, c[0], c_stride);
    _tile_loadd(1, c[1], c_stride);
    _tile_loadd(2, c[2], c_stride);
    _tile_loadd(3, c[3], c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const auto a_stride = t.a_stride * sizeof(bf16);
  const bf16* a0 = t.a;
  const bf16* a1 = t.a + 16 * t.a_stride;
  const bf16* b0 = t.b;
  const bf16* b1 = t.b + t.b_stride;
  for (std::size_t s = 0; s != t.steps; ++s) {
    _tile_loadd(4, a0, a_stride);
    _tile_loadd(6, b0, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b1, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a1, a_stride);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    a0 += tile_depth;
    a1 += tile_depth;
    b0 += 16 * tile_depth;
    b1 += 16 * tile_depth;
  }
  _tile_stored(0, c[0], c_stride);
  _tile_stored(1, c[1], c_stride);
  _tile_stored(2, c[2], c_stride);
  _tile_stored(3, c[3], c_stride);
  memory_is_used();
}

SHOAL_BF16 inline __m512bh pairs_at(const bf16* p) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p));
}

SHOAL_BF16 inline __m512bh pair_in_all(const bf16* p) {
  std::int32_t word;
  std::memcpy(&word, p, sizeof word);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(word));
}

SHOAL_BF16 void tile_avx512(const bf16_tile_call& t) {
  constexpr int rows = 8; // 16 sums, which hide the latency of 4 to 6 cycles
  for (std::size_t m = 0; m != tile_side; m += rows) {
    __m512 sums[rows][2];
    float* c = t.c + m * tile_side;
    for (int r = 0; r != rows; ++r)
      for (int h = 0; h != 2; ++h)
        sums[r][h] = t.add ? _mm512_load_ps(c + r * tile_side + 16 * h)
                           : _mm512_setzero_ps();
    const bf16* a = t.a + m * t.a_stride;
    const bf16* b0 = t.b;
    const bf16* b1 = t.b + t.b_stride;
    for (std::size_t k = 0; k != t.steps * tile_depth; k += 2) {
      const __m512bh w0 = pairs_at(b0 + 16 * k);
      const __m512bh w1 = pairs_at(b1 + 16 * k);
      for (int r = 0; r != rows; ++r) {
        const __m512bh x = pair_in_all(a + r * t.a_stride + k);
        sums[r][0] = _mm512_dpbf16_ps(sums[r][0], x, w0);
        sums[r][1] = _mm512_dpbf16_ps(sums[r][1], x, w1);
      }
    }
    for (int r = 0; r != rows; ++r)
      for (int h = 0; h != 2; ++h)
        _mm512_store_ps(c + r * tile_side + 16 * h, sums[r][h]);
  }
}

SHOAL_BF16 void transpose_avx512(const float* from, std::size_t from_stride,
                                 float* to, std::size_t to_stride) {
  __m512 r[16], s[16];
  for (std::size_t i = 0; i != 16; ++i)
    r[i] = _mm512_loadu_ps(from + i * from_stride);
  // Pairs of rows, then of pairs, within 128 bits; then those among each
  // other.
  for (int i = 0; i != 16; i += 2) {
    s[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  const auto low = [](__m512 a, __m512 b) SHOAL_BF16 {
    return _mm512_castpd_ps(
      _mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  const auto high = [](__m512 a, __m512 b) SHOAL_BF16 {
    return _mm512_castpd_ps(
      _mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  for (int i = 0; i != 16; i += 4) {
    r[i] = low(s[i], s[i + 2]);
    r[i + 1] = high(s[i], s[i + 2]);
    r[i + 2] = low(s[i + 1], s[i + 3]);
    r[i + 3] = high(s[i + 1], s[i + 3]);
  }
  // r[4q + j] holds columns j, j + 4, j + 8, j + 12 of rows 4q .. 4q + 3.
  for (int j = 0; j != 4; ++j) {
    const __m512 a = _mm512_shuffle_f32x4(r[j], r[4 + j], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0x88);
    const __m512 c = _mm512_shuffle_f32x4(r[j], r[4 + j], 0xdd);
    const __m512 d = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0xdd);
    s[j] = _mm512_shuffle_f32x4(a, b, 0x88);
    s[j + 8] = _mm512_shuffle_f32x4(a, b, 0xdd);
    s[j + 4] = _mm512_shuffle_f32x4(c, d, 0x88);
    s[j + 12] = _mm512_shuffle_f32x4(c, d, 0xdd);
  }
  for (std::size_t i = 0; i != 16; ++i)
    _mm512_storeu_ps(to + i * to_stride, s[i]);
}

SHOAL_BF16 void round_avx512(const float* from, std::size_t size, bf16* to) {
  std::size_t i = 0;
  for (; i + 16 <= size; i += 16)
    _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(to + i),
      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(from + i))));
  if (i == size)
    return;
  const auto mask = static_cast<__mmask16>((1u << (size - i)) - 1);
  _mm256_mask_storeu_epi16(to + i, mask,
                           reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(
                             _mm512_maskz_loadu_ps(mask, from + i))));
}

/// Values of inputs 2j and 2j + 1 of 16 outputs, rounded, as pairs.
SHOAL_BF16 inline void
store_pairs(bf16* to, __m512 even, __m512 odd, __m512i interleave) {
  const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even));
  _mm512_storeu_si512(to, _mm512_permutexvar_epi16(interleave, both));
}

template <weight_type Type>
SHOAL_BF16 void unpack_avx512(const std::byte* panel, std::size_t first,
                              std::size_t last, bf16* to) {
  alignas(64) std::uint16_t order[32];
  alignas(64) float levels[16];
  for (std::uint16_t n = 0; n != 16; ++n) {
    order[2 * n] = n;
    order[2 * n + 1] = static_cast<std::uint16_t>(16 + n);
    levels[n] = q4_codes[n];
  }
  const __m512i interleave = _mm512_load_si512(order);
  const __m512 table = _mm512_load_ps(levels);
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  const __m512i flip = _mm512_set1_epi32(static_cast<int>(0x80808080u));
  for (auto c = first; c != last; ++c) {
    const auto* chunk = panel + c * chunk_bytes(Type);
    const __m512i both = _mm512_loadu_si512(chunk);
    const __m512 scales[2] = {
      _mm512_castsi512_ps(_mm512_slli_epi32(both, 16)),
      _mm512_castsi512_ps(_mm512_and_si512(both, upper))};
    const auto* codes = chunk + scale_bytes;
    for (int block = 0; block != 2; ++block)
      for (int g = 0; g != 8; ++g) {
        __m512 v[4];
        if (Type == weight_type::q8) {
          // Signed again; the byte goes up, and down with its sign.
          const __m512i w = _mm512_xor_si512(
            flip, _mm512_loadu_si512(codes + 64 * (8 * block + g)));
          v[0] =
            _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(w, 24), 24));
          v[1] =
            _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(w, 16), 24));
          v[2] =
            _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(w, 8), 24));
          v[3] = _mm512_cvtepi32_ps(_mm512_srai_epi32(w, 24));
        } else {
          // The permutation looks at the lowest four bits only.
          const __m512i w = _mm512_srli_epi32(
            _mm512_loadu_si512(codes + 64 * g), unsigned(4 * block));
          v[0] = _mm512_permutexvar_ps(w, table);
          v[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(w, 8), table);
          v[2] = _mm512_permutexvar_ps(_mm512_srli_epi32(w, 16), table);
          v[3] = _mm512_permutexvar_ps(_mm512_srli_epi32(w, 24), table);
        }
        for (auto& x : v)
          x = _mm512_mul_ps(x, scales[block]);
        store_pairs(to, v[0], v[1], interleave);
        store_pairs(to + 32, v[2], v[3], interleave);
        to += 64;
      }
  }
}

} // namespace

bf16_tiles::bf16_tiles(features with) : amx_(with.amx) {
  if (amx_)
    configure_tiles();
}

bf16_tiles::~bf16_tiles() {
  if (amx_)
    release_tiles();
}

void bf16_tiles::operator()(const bf16_tile_call& call) const {
  if (amx_)
    tile_amx(call);
  else
    tile_avx512(call);
}

void transpose_16(const float* from, std::size_t from_stride, float* to,
                  std::size_t to_stride) {
  transpose_avx512(from, from_stride, to, to_stride);
}

void round_row(const float* from, std::size_t size, bf16* to,
               std::size_t padded) {
  round_avx512(from, size, to);
  std::memset(static_cast<void*>(to + size), 0, (padded - size) * sizeof(bf16));
}

void unpack_chunks(weight_type type, const std::byte* panel, std::size_t first,
                   std::size_t last, bf16* to) {
  if (type == weight_type::q8)
    unpack_avx512<weight_type::q8>(panel, first, last, to);
  else
    unpack_avx512<weight_type::q4>(panel, first, last, to);
}

#else

namespace {
[[noreturn]] void absent() {
  check_failed("no bf16 dot products here", __FILE__, __LINE__);
}
} // namespace

bf16_tiles::bf16_tiles(features) : amx_(false) {
  absent();
}
bf16_tiles::~bf16_tiles() = default;
void bf16_tiles::operator()(const bf16_tile_call&) const {
  absent();
}
void transpose_16(const float*, std::size_t, float*, std::size_t) {
  absent();
}
void round_row(const float*, std::size_t, bf16*, std::size_t) {
  absent();
}
void unpack_chunks(weight_type, const std::byte*, std::size_t, std::size_t,
                   bf16*) {
  absent();
}

#endif

} // namespace shoal::kernels::cpu
