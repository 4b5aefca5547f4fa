// kernels/cpu/product/product_bf16.cpp -- panels of values rounded to bf16.
//
// A panel of the left operand has 32 rows along k. A panel of the right operand
// has two times 16 columns with pairs of k beside each other: value (k, n) at
// [n / 16][k / 2][n % 16][k % 2], as the dot products of AVX-512 BF16 and the
// tiles of AMX take it. Both are made from blocks of 16 x 32 values, rounded to
// the nearest; if the operand is transposed, 16 x 16 pairs are transposed
// first.
#include "kernels/common/check.hpp"
#include "kernels/cpu/isa/intrinsics.hpp"
#include "kernels/cpu/product/product.hpp"
#include "kernels/inference/packed_weight.hpp"

#include <algorithm>
#include <cstring>

namespace shoal::kernels::cpu {

#if defined(__x86_64__)

namespace {

/// Rows and columns of c that are multiplied at once, and the values of k in
/// one step.
constexpr std::size_t tile_side = 32, tile_depth = 32;

/// The left panel of a tile of AMX stays in the first-level cache.
constexpr std::size_t amx_depth_max = 512;
/// Eight rows suffice if a register holds one: 16 KiB. vdpbf16ps waits no
/// longer for the right panel from the second-level cache than for its sums,
/// and c is added to half as often.
constexpr std::size_t avx512_depth_max = 1024;
/// Columns of a tile: 512 KiB of the second-level cache at most.
constexpr std::size_t bf16_tile_cols = 256;
/// Columns of a half of a panel of the right operand.
constexpr std::size_t half_cols = 16;

std::size_t padded(std::size_t depth) {
  return (depth + tile_depth - 1) / tile_depth * tile_depth;
}

/// Values from one row of a left panel to the next: not a power of two, which
/// would put all rows into a few sets of the cache.
std::size_t left_stride(std::size_t depth) {
  return padded(depth) + tile_depth;
}

std::size_t panel_bytes(std::size_t size, std::size_t depth) {
  return size * left_stride(depth) * sizeof(bf16);
}

/// The first `count` <= 16 of 16 values; the rest is 0.
SHOAL_BF16 inline __m512 values_at(const float* from, std::size_t count) {
  if (count >= 16)
    return _mm512_loadu_ps(from);
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from);
}

SHOAL_BF16 inline __m512i interleave_order() {
  alignas(64) std::uint16_t order[32];
  for (std::uint16_t n = 0; n != 16; ++n) {
    order[2 * n] = n;
    order[2 * n + 1] = static_cast<std::uint16_t>(16 + n);
  }
  return _mm512_load_si512(order);
}

/// Rounds up to 32 values of a row along k.
SHOAL_BF16 inline void
round_32(const float* from, std::size_t count, void* to) {
  const __m512 low = values_at(from, count);
  const __m512 high =
    count > 16 ? values_at(from + 16, count - 16) : _mm512_setzero_ps();
  _mm512_storeu_si512(
    to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
}

/// Rounds up to 16 values of each of two rows into pairs.
SHOAL_BF16 inline void pair_16(const float* even, const float* odd,
                               std::size_t count, __m512i order, void* to) {
  const __m512 low = values_at(even, count);
  const __m512 high =
    odd != nullptr ? values_at(odd, count) : _mm512_setzero_ps();
  _mm512_storeu_si512(
    to, _mm512_permutexvar_epi16(
          order, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low))));
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

/// to[j * to_stride + i] = from[i * from_stride + j] for i, j < 16: floats, or
/// any words of 32 bits.
SHOAL_BF16 void transpose_16(const float* from, std::size_t from_stride,
                             float* to, std::size_t to_stride) {
  __m512 r[16];
  for (std::size_t i = 0; i != 16; ++i)
    r[i] = _mm512_loadu_ps(from + i * from_stride);
  transpose(r);
  for (std::size_t i = 0; i != 16; ++i)
    _mm512_storeu_ps(to + i * to_stride, r[i]);
}

/// Transposes 16 x 16 pairs.
void turn(const std::uint32_t* from, bf16* to, std::size_t to_stride) {
  float words[256], turned[256];
  std::memcpy(words, from, sizeof words);
  transpose_16(words, 16, turned, 16);
  for (std::size_t i = 0; i != 16; ++i)
    std::memcpy(static_cast<void*>(to + i * to_stride), turned + 16 * i, 64);
}

/// 16 rows or columns that are each contiguous along k, `step` values of k.
SHOAL_BF16 void
rows_32(const float* from, std::size_t stride, std::size_t count,
        std::size_t step, std::uint32_t* to) {
  for (std::size_t i = 0; i != 16; ++i)
    if (i < count)
      round_32(from + i * stride, step, to + 16 * i);
    else
      std::memset(to + 16 * i, 0, 64);
}

/// The same for rows or columns that are contiguous across k: pairs of k.
SHOAL_BF16 void
pairs_32(const float* from, std::size_t stride, std::size_t count,
         std::size_t step, __m512i order, std::uint32_t* to) {
  for (std::size_t k = 0; k != 32; k += 2) {
    const float* const even = from + k * stride;
    if (k < step)
      pair_16(even, k + 1 < step ? even + stride : nullptr, count, order,
              to + 8 * k);
    else
      std::memset(to + 8 * k, 0, 64);
  }
}

void clear_rows(bf16* to, std::size_t stride, std::size_t rows) {
  for (std::size_t r = 0; r != rows; ++r)
    std::memset(static_cast<void*>(to + r * stride), 0,
                tile_depth * sizeof(bf16));
}

/// The input of pack_block(): up to 16 rows or columns, up to 32 values of k.
struct block_source {
  gemm_operand from;
  std::size_t first, count, first_k, depth;
};

SHOAL_BF16 void
pack_left_block(const block_source& s, bf16* to, std::size_t stride) {
  if (s.from.order == transposed::yes) {
    alignas(64) std::uint32_t pairs[256];
    pairs_32(s.from.data + s.first_k * s.from.stride + s.first, s.from.stride,
             s.count, s.depth, interleave_order(), pairs);
    turn(pairs, to, stride);
    return;
  }
  const float* const from = s.from.data + s.first * s.from.stride + s.first_k;
  for (std::size_t r = 0; r != s.count; ++r)
    round_32(from + r * s.from.stride, s.depth, to + r * stride);
  clear_rows(to + s.count * stride, stride, 16 - s.count);
}

SHOAL_BF16 void pack_right_block(const block_source& s, bf16* to) {
  if (s.from.order == transposed::yes) {
    alignas(64) std::uint32_t rows[256];
    rows_32(s.from.data + s.first * s.from.stride + s.first_k, s.from.stride,
            s.count, s.depth, rows);
    turn(rows, to, 2 * half_cols);
    return;
  }
  pairs_32(s.from.data + s.first_k * s.from.stride + s.first, s.from.stride,
           s.count, s.depth, interleave_order(),
           reinterpret_cast<std::uint32_t*>(to));
}

/// Calls `pack` for all blocks of all panels. If the operand is contiguous
/// across panels, neighbours share pages, so they come first.
template <class Pack>
void each_block(const panel_source& s, const Pack& pack) {
  const std::size_t whole = (s.count + tile_side - 1) / tile_side * tile_side;
  for (std::size_t k = 0; k < s.depth; k += tile_depth)
    for (std::size_t i = 0; i != whole; i += half_cols)
      pack(block_source{s.from, s.first + i,
                        i < s.count ? std::min(half_cols, s.count - i) : 0,
                        s.first_k + k, std::min(tile_depth, s.depth - k)},
           i, k);
}

SHOAL_BF16 void pack_left_bf16(const panel_source& s, std::byte* to) {
  const std::size_t stride = left_stride(s.depth);
  each_block(s, [&](const block_source& b, std::size_t i, std::size_t k) {
    auto* const block =
      reinterpret_cast<bf16*>(to + i / tile_side * s.panel_bytes)
      + i % tile_side * stride + k;
    if (b.count == 0)
      clear_rows(block, stride, 16);
    else
      pack_left_block(b, block, stride);
  });
}

SHOAL_BF16 void pack_right_bf16(const panel_source& s, std::byte* to) {
  const std::size_t part = half_cols * padded(s.depth);
  each_block(s, [&](const block_source& b, std::size_t i, std::size_t k) {
    auto* const block =
      reinterpret_cast<bf16*>(to + i / tile_side * s.panel_bytes)
      + i % tile_side / half_cols * part + k * half_cols;
    if (b.count == 0)
      clear_rows(block, 2 * half_cols, 16);
    else
      pack_right_block(b, block);
  });
}

/// Prefetches the lines of c that a tile will be written to.
inline void fetch(matrix_view<float> c) {
  for (std::size_t r = 0; r != c.rows; ++r)
    for (std::size_t i = 0; i < c.cols; i += 16)
      __builtin_prefetch(c.row(r) + i, 1);
}

/// Writes a tile to c or adds it, or adds it to `start` for each row if not
/// null.
SHOAL_BF16 void
finish(const float* tile, matrix_view<float> c, bool add, const float* start) {
  const auto mask =
    static_cast<std::uint32_t>((std::uint64_t{1} << c.cols) - 1);
  const auto low = static_cast<__mmask16>(mask);
  const auto high = static_cast<__mmask16>(mask >> 16);
  for (std::size_t r = 0; r != c.rows; ++r) {
    float* const to = c.row(r);
    const float* const first = add ? to : start;
    __m512 v0 = _mm512_load_ps(tile + r * tile_side);
    __m512 v1 = _mm512_load_ps(tile + r * tile_side + 16);
    if (first != nullptr) {
      v0 = _mm512_add_ps(_mm512_maskz_loadu_ps(low, first), v0);
      v1 = _mm512_add_ps(_mm512_maskz_loadu_ps(high, first + 16), v1);
    }
    _mm512_mask_storeu_ps(to, low, v0);
    _mm512_mask_storeu_ps(to + 16, high, v1);
  }
}

/// 32 x 32 sums of one panel each, over `steps` times 32 values of k.
struct tile_operands {
  const bf16* a;
  std::size_t a_stride; ///< from one row to the next
  const bf16* b;
  std::size_t b_stride; ///< from one half of the columns to the next
  std::size_t steps;
};

/// GCC's tile instructions do not declare which memory they read and write.
inline void memory_is_used() {
  asm volatile("" ::: "memory");
}

SHOAL_AMX void tile_by_amx(const tile_operands& t, float* c) {
  memory_is_used();
  constexpr std::size_t c_stride = tile_side * sizeof(float);
  const auto a_stride = t.a_stride * sizeof(bf16);
  const bf16* a0 = t.a;
  const bf16* a1 = t.a + 16 * t.a_stride;
  const bf16* b0 = t.b;
  const bf16* b1 = t.b + t.b_stride;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
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
    b0 += half_cols * tile_depth;
    b1 += half_cols * tile_depth;
  }
  _tile_stored(0, c, c_stride);
  _tile_stored(1, c + 16, c_stride);
  _tile_stored(2, c + 16 * tile_side, c_stride);
  _tile_stored(3, c + 16 * tile_side + 16, c_stride);
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

SHOAL_BF16 void tile_by_avx512(const tile_operands& t, float* c) {
  constexpr int rows = 8; // 16 sums, which hide the latency of 4 to 6 cycles
  for (std::size_t m = 0; m != tile_side; m += rows) {
    __m512 sums[rows][2];
    for (auto& sum : sums)
      sum[0] = sum[1] = _mm512_setzero_ps();
    const bf16* a = t.a + m * t.a_stride;
    for (std::size_t k = 0; k != t.steps * tile_depth; k += 2) {
      const __m512bh w0 = pairs_at(t.b + half_cols * k);
      const __m512bh w1 = pairs_at(t.b + t.b_stride + half_cols * k);
      for (std::size_t r = 0; r != rows; ++r) {
        const __m512bh x = pair_in_all(a + r * t.a_stride + k);
        sums[r][0] = _mm512_dpbf16_ps(sums[r][0], x, w0);
        sums[r][1] = _mm512_dpbf16_ps(sums[r][1], x, w1);
      }
    }
    for (std::size_t r = 0; r != rows; ++r) {
      _mm512_store_ps(c + (m + r) * tile_side, sums[r][0]);
      _mm512_store_ps(c + (m + r) * tile_side + 16, sums[r][1]);
    }
  }
}

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

SHOAL_AMX void release_tiles() {
  _tile_release();
}

/// Sets up the tiles, if they are used, while it lives.
class amx_tiles {
public:
  explicit amx_tiles(bool used) : used_(used) {
    if (used_)
      configure_tiles();
  }
  ~amx_tiles() {
    if (used_)
      release_tiles();
  }
  amx_tiles(const amx_tiles&) = delete;
  amx_tiles& operator=(const amx_tiles&) = delete;

private:
  bool used_;
};

template <bool Amx>
void multiply_bf16(const panel_product& p) {
  const amx_tiles configured(Amx);
  const std::size_t stride = left_stride(p.depth);
  const std::size_t part = half_cols * padded(p.depth);
  alignas(64) float tile[tile_side * tile_side];
  for (std::size_t r = 0; r < p.c.rows; r += tile_side) {
    const auto* a =
      reinterpret_cast<const bf16*>(p.left + r / tile_side * p.left_bytes);
    for (std::size_t n = 0; n < p.c.cols; n += tile_side) {
      const auto* b =
        reinterpret_cast<const bf16*>(p.right + n / tile_side * p.right_bytes);
      const auto c = p.c.slice_rows(r, std::min(p.c.rows, r + tile_side))
                       .slice_cols(n, std::min(p.c.cols, n + tile_side));
      fetch(c);
      const tile_operands operands{a, stride, b, part,
                                   padded(p.depth) / tile_depth};
      if (Amx)
        tile_by_amx(operands, tile);
      else
        tile_by_avx512(operands, tile);
      finish(tile, c, p.add, p.start == nullptr ? nullptr : p.start + n);
    }
  }
}

} // namespace

product_engine bf16_engine(features with) {
  return {tile_side,
          tile_side,
          with.amx ? amx_depth_max : avx512_depth_max,
          bf16_tile_cols,
          panel_bytes,
          pack_left_bf16,
          pack_right_bf16,
          with.amx ? multiply_bf16<true> : multiply_bf16<false>};
}

#else

product_engine bf16_engine(features) {
  check_failed("no bf16 dot products here", __FILE__, __LINE__);
}

#endif

} // namespace shoal::kernels::cpu
