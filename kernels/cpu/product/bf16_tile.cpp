// kernels/cpu/product/bf16_tile.cpp -- tiles by AMX or by vdpbf16ps.
#include "kernels/cpu/product/bf16_tile.hpp"

#include "kernels/check.hpp"
#include "kernels/cpu/isa/intrinsics.hpp"
#include "kernels/packed_layout.hpp"

#include <cstring>

namespace shoal::kernels::cpu {

#if defined(__x86_64__)

namespace {

/// The processor's description of the eight tiles: 16 rows of 64 bytes.
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

/// GCC's tile instructions do not declare which memory they read and write.
inline void memory_is_used() {
  asm volatile("" ::: "memory");
}

SHOAL_AMX void release_tiles() {
  _tile_release();
}

inline void ask_soon(const bf16_tile_call& t, std::size_t step) {
  for (const void* run : t.prefetch)
    __builtin_prefetch(static_cast<const std::byte*>(run) + 64 * step, 0, 2);
}

SHOAL_AMX void tile_amx(const bf16_tile_call& t) {
  memory_is_used();
  constexpr int row = 64; // bytes
  constexpr std::size_t c_piece = 256;
  if (t.add) {
    _tile_loadd(0, t.c, row);
    _tile_loadd(1, t.c + c_piece, row);
    _tile_loadd(2, t.c + 2 * c_piece, row);
    _tile_loadd(3, t.c + 3 * c_piece, row);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const bf16* a = t.a;
  const bf16* b = t.b;
  for (std::size_t s = 0; s != t.steps; ++s) {
    _tile_loadd(6, b, row);
    _tile_loadd(4, a, row);
    _tile_loadd(7, b + piece_values, row);
    _tile_loadd(5, a + piece_values, row);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    ask_soon(t, s);
    a += step_values;
    b += step_values;
  }
  _tile_stored(0, t.c, row);
  _tile_stored(1, t.c + c_piece, row);
  _tile_stored(2, t.c + 2 * c_piece, row);
  _tile_stored(3, t.c + 3 * c_piece, row);
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
    float* c = t.c + m / 16 * 512 + m % 16 * 16;
    for (int r = 0; r != rows; ++r)
      for (int h = 0; h != 2; ++h)
        sums[r][h] =
          t.add ? _mm512_load_ps(c + 16 * r + 256 * h) : _mm512_setzero_ps();
    const bf16* a = t.a + m / 16 * piece_values + m % 16 * tile_depth;
    const bf16* b = t.b;
    for (std::size_t s = 0; s != t.steps; ++s) {
      if (m == 0)
        ask_soon(t, s);
      for (std::size_t k = 0; k != tile_depth; k += 2) {
        const __m512bh w0 = pairs_at(b + 16 * k);
        const __m512bh w1 = pairs_at(b + piece_values + 16 * k);
        for (std::size_t r = 0; r != rows; ++r) {
          const __m512bh x = pair_in_all(a + r * tile_depth + k);
          sums[r][0] = _mm512_dpbf16_ps(sums[r][0], x, w0);
          sums[r][1] = _mm512_dpbf16_ps(sums[r][1], x, w1);
        }
      }
      a += step_values;
      b += step_values;
    }
    for (int r = 0; r != rows; ++r)
      for (int h = 0; h != 2; ++h)
        _mm512_store_ps(c + 16 * r + 256 * h, sums[r][h]);
  }
}

/// Transposes 16 x 16 words, one row per register.
SHOAL_BF16 inline void transpose(__m512 (&r)[16]) {
  __m512 s[16];
  // First pairs of rows, then pairs of pairs, within 128 bits; then the groups
  // of 128 bits among each other.
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
  for (int i = 0; i != 16; ++i)
    r[i] = s[i];
}

SHOAL_BF16 void transpose_avx512(const float* from, std::size_t from_stride,
                                 float* to, std::size_t to_stride) {
  __m512 r[16];
  for (std::size_t i = 0; i != 16; ++i)
    r[i] = _mm512_loadu_ps(from + i * from_stride);
  transpose(r);
  for (std::size_t i = 0; i != 16; ++i)
    _mm512_storeu_ps(to + i * to_stride, r[i]);
}

/// A mask of the lanes below `count` - `from`, of 16.
SHOAL_BF16 inline __mmask16 lanes_left(std::size_t count, std::size_t from) {
  const std::size_t n = count > from ? count - from : 0;
  return n >= 16 ? __mmask16(0xffff) : static_cast<__mmask16>((1u << n) - 1);
}

/// The part of x that is lost when x is rounded to bf16.
SHOAL_BF16 inline __m512 remainder_of(__m512 x) {
  const auto high = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x));
  return _mm512_sub_ps(
    x, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16)));
}

/// Values [k, k + 32) of a row, rounded, as pairs.
SHOAL_BF16 inline __m512i
rounded_pairs(const float* row, std::size_t k, std::size_t cols, half of) {
  if (k >= cols)
    return _mm512_setzero_si512();
  __m512 first = _mm512_maskz_loadu_ps(lanes_left(cols, k), row + k);
  __m512 second = _mm512_maskz_loadu_ps(lanes_left(cols, k + 16), row + k + 16);
  if (of == half::low) {
    first = remainder_of(first);
    second = remainder_of(second);
  }
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

SHOAL_BF16 void
round_to_a_avx512(matrix_view<const float> x, piece_writer into, half of) {
  for (std::size_t r = 0; r != 16; ++r)
    for (std::size_t s = 0; s != into.steps; ++s)
      _mm512_storeu_si512(
        into.to + s * into.stride + r * tile_depth,
        r < x.rows ? rounded_pairs(x.row(r), s * tile_depth, x.cols, of)
                   : _mm512_setzero_si512());
}

SHOAL_BF16 void
round_to_b_avx512(matrix_view<const float> x, piece_writer into, half of) {
  for (std::size_t s = 0; s != into.steps; ++s) {
    __m512 r[16];
    for (std::size_t i = 0; i != 16; ++i)
      r[i] = i < x.rows ? _mm512_castsi512_ps(
               rounded_pairs(x.row(i), s * tile_depth, x.cols, of))
                        : _mm512_setzero_ps();
    transpose(r);
    for (std::size_t i = 0; i != 16; ++i)
      _mm512_storeu_ps(into.to + s * into.stride + i * 32, r[i]);
  }
}

SHOAL_BF16 void copy_to_a_avx512(matrix_view<const bf16> w, piece_writer into) {
  for (std::size_t r = 0; r != 16; ++r)
    for (std::size_t s = 0; s != into.steps; ++s) {
      const auto k = s * tile_depth;
      const auto n = r < w.rows && w.cols > k ? w.cols - k : 0;
      const auto mask =
        n >= 32 ? ~__mmask32{} : static_cast<__mmask32>((1u << n) - 1);
      const bf16* from = n != 0 ? w.row(r) + k : w.data;
      _mm512_storeu_si512(into.to + s * into.stride + r * tile_depth,
                          _mm512_maskz_loadu_epi16(mask, from));
    }
}

/// Values of inputs 2j and 2j + 1 of 16 outputs, rounded, as pairs.
SHOAL_BF16 inline void
store_pairs(bf16* to, __m512 even, __m512 odd, __m512i interleave) {
  const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even));
  _mm512_storeu_si512(to, _mm512_permutexvar_epi16(interleave, both));
}

SHOAL_BF16 void
round_rows_to_b_avx512(matrix_view<const float> x, bf16* piece, half of) {
  alignas(64) std::uint16_t order[32];
  for (std::uint16_t n = 0; n != 16; ++n) {
    order[2 * n] = n;
    order[2 * n + 1] = static_cast<std::uint16_t>(16 + n);
  }
  const __m512i interleave = _mm512_load_si512(order);
  const __mmask16 lanes = lanes_left(x.cols, 0);
  for (std::size_t k = 0; k != tile_depth; k += 2) {
    __m512 v[2];
    for (std::size_t i = 0; i != 2; ++i) {
      v[i] = k + i < x.rows ? _mm512_maskz_loadu_ps(lanes, x.row(k + i))
                            : _mm512_setzero_ps();
      if (of == half::low)
        v[i] = remainder_of(v[i]);
    }
    store_pairs(piece + 16 * k, v[0], v[1], interleave);
  }
}

template <weight_type Type>
SHOAL_BF16 void unpack_avx512(const std::byte* panel, piece_writer into) {
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
  for (std::size_t s = 0; s != into.steps; s += 2) {
    const auto* chunk = panel + s / 2 * chunk_bytes(Type);
    const __m512i both = _mm512_loadu_si512(chunk);
    const __m512 scales[2] = {
      _mm512_castsi512_ps(_mm512_slli_epi32(both, 16)),
      _mm512_castsi512_ps(_mm512_and_si512(both, upper))};
    const auto* codes = chunk + scale_bytes;
    for (int block = 0; block != 2; ++block) {
      auto* to = into.to + (s + std::size_t(block)) * into.stride;
      for (int g = 0; g != 8; ++g) {
        __m512 v[4];
        if (Type == weight_type::q8) {
          // Signed again; the byte moves up, and back down with its sign.
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
          // The permutation uses the lowest four bits only.
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

void round_to_a(matrix_view<const float> x, piece_writer into, half of) {
  round_to_a_avx512(x, into, of);
}

void round_to_b(matrix_view<const float> x, piece_writer into, half of) {
  round_to_b_avx512(x, into, of);
}

void round_rows_to_b(matrix_view<const float> x, bf16* piece, half of) {
  round_rows_to_b_avx512(x, piece, of);
}

void copy_to_a(matrix_view<const bf16> w, piece_writer into) {
  copy_to_a_avx512(w, into);
}

void unpack_to_b(weight_type type, const std::byte* panel, piece_writer into) {
  if (type == weight_type::q8)
    unpack_avx512<weight_type::q8>(panel, into);
  else
    unpack_avx512<weight_type::q4>(panel, into);
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
void round_to_a(matrix_view<const float>, piece_writer, half) {
  absent();
}
void round_to_b(matrix_view<const float>, piece_writer, half) {
  absent();
}
void round_rows_to_b(matrix_view<const float>, bf16*, half) {
  absent();
}
void copy_to_a(matrix_view<const bf16>, piece_writer) {
  absent();
}
void unpack_to_b(weight_type, const std::byte*, piece_writer) {
  absent();
}

#endif

} // namespace shoal::kernels::cpu
