// kernels/cpu/tiled_attention.cpp -- attention of a prompt by tiles of bf16.
//
// Keys and values are split once. A task is 32 queries of one head: it computes
// all their scores, the softmax, which writes the probabilities as the left
// side of a product, and then that product. Positions are cut into strips of
// 32.
#include "kernels/cpu/tiled_attention.hpp"

#include "kernels/cpu/isa/intrinsics.hpp"
#include "kernels/cpu/product/bf16_tile.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::kernels::cpu {

bool can_tile_attention(const attention_shape& shape, features with) {
  return with.amx && shape.softcap == 0 && shape.tokens >= tile_side;
}

#if defined(__x86_64__)

namespace {

/// The products of halves that are summed: high * high, high * low, low * high.
constexpr std::size_t terms = 3;
constexpr std::size_t block_values = tile_side * tile_side;

constexpr std::size_t strips_of(std::size_t count) {
  return (count + tile_side - 1) / tile_side;
}

struct head_shape {
  const attention_shape& shape;
  std::size_t past, positions;
  std::size_t key_strips = strips_of(positions);
  std::size_t head_strips = strips_of(shape.head_size);
  /// Values of a strip of keys or of queries: three times all steps.
  std::size_t strip = terms * head_strips * step_values;

  const bf16* keys(const bf16* all, std::size_t kv, std::size_t j) const {
    return all + (kv * key_strips + j) * strip;
  }
  /// Columns [32 n, 32 n + 32) of the values, strips of positions from j on.
  const bf16*
  values(const bf16* all, std::size_t kv, std::size_t n, std::size_t j) const {
    return all
           + ((kv * head_strips + n) * key_strips + j) * terms * step_values;
  }
};

/// Rows [first, last) of one head, up to the last row that exists.
matrix_view<const float>
rows_of(matrix_view<const float> x, std::size_t head, std::size_t size,
        std::size_t first, std::size_t count) {
  first = std::min(first, x.rows);
  return x.slice_rows(first, std::min(x.rows, first + count))
    .slice_cols(head * size, (head + 1) * size);
}

void split_keys(const head_shape& s, matrix_view<const float> k_PKH,
                std::size_t kv, std::size_t j, bf16* all) {
  auto* to = const_cast<bf16*>(s.keys(all, kv, j));
  constexpr half order[terms] = {half::high, half::low, half::high};
  for (std::size_t term = 0; term != terms; ++term)
    for (std::size_t side = 0; side != 2; ++side)
      round_to_b(
        rows_of(k_PKH, kv, s.shape.head_size, j * tile_side + side * 16, 16),
        {to + term * s.head_strips * step_values + side * piece_values,
         s.head_strips},
        order[term]);
}

void split_values(const head_shape& s, matrix_view<const float> v_PKH,
                  std::size_t kv, std::size_t j, bf16* all) {
  const auto rows =
    rows_of(v_PKH, kv, s.shape.head_size, j * tile_side, tile_side);
  constexpr half order[terms] = {half::high, half::low, half::high};
  for (std::size_t n = 0; n != s.head_strips; ++n)
    for (std::size_t term = 0; term != terms; ++term)
      for (std::size_t side = 0; side != 2; ++side) {
        const auto first = std::min(rows.cols, n * tile_side + side * 16);
        const auto last = std::min(rows.cols, first + 16);
        round_rows_to_b(rows.slice_cols(first, last),
                        const_cast<bf16*>(s.values(all, kv, n, j))
                          + term * step_values + side * piece_values,
                        order[term]);
      }
}

/// 2^t for t <= 0, within 2^-22: Taylor's series of 2^f, |f| <= 1/2.
SHOAL_BF16_DQ inline __m512 power_of_two(__m512 t) {
  const __m512 whole =
    _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = _mm512_sub_ps(t, whole);
  __m512 p = _mm512_set1_ps(1.5403530e-4f);
  for (float c : {1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f, 2.4022651e-1f,
                  6.9314718e-1f, 1.0f})
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(c));
  return _mm512_scalef_ps(p, whole);
}

/// The lanes of positions [position, position + 16) that lie in [first, last).
inline __mmask16
seen_lanes(std::size_t position, std::size_t first, std::size_t last) {
  const auto low =
    first > position ? std::min<std::size_t>(16, first - position) : 0;
  const auto high =
    last > position ? std::min<std::size_t>(16, last - position) : 0;
  return static_cast<__mmask16>(((1u << high) - 1) & ~((1u << low) - 1));
}

/// Turns row r of the scores of `strips` strips of positions, the first of
/// which is `start`, into probabilities times the returned sum. Positions
/// [first, last) are seen. `p` holds the pieces of the left side: for each
/// strip high, high and low.
SHOAL_BF16_DQ float
softmax_row(const float* scores, bf16* p, std::size_t r, std::size_t strips,
            std::size_t start, std::size_t first, std::size_t last,
            float scale) {
  const auto* row = scores + r / 16 * 512 + r % 16 * 16;
  auto* to = p + r / 16 * piece_values + r % 16 * tile_depth;
  const auto part = [&](std::size_t j, std::size_t side) {
    return row + j * block_values + side * 256;
  };
  __m512 high = _mm512_set1_ps(-INFINITY);
  for (std::size_t j = 0; j != strips; ++j)
    for (std::size_t side = 0; side != 2; ++side) {
      const auto position = (start + j) * tile_side + side * 16;
      const __m512 s = _mm512_load_ps(part(j, side));
      high =
        _mm512_mask_max_ps(high, seen_lanes(position, first, last), high, s);
    }
  constexpr float log2_e = 1.44269504f;
  const __m512 largest = _mm512_set1_ps(_mm512_reduce_max_ps(high));
  const __m512 factor = _mm512_set1_ps(scale * log2_e);
  __m512 sum = _mm512_setzero_ps();
  for (std::size_t j = 0; j != strips; ++j) {
    __m512 e[2];
    for (std::size_t side = 0; side != 2; ++side) {
      const auto position = (start + j) * tile_side + side * 16;
      const __m512 s = _mm512_load_ps(part(j, side));
      e[side] = _mm512_maskz_mov_ps(
        seen_lanes(position, first, last),
        power_of_two(_mm512_mul_ps(_mm512_sub_ps(s, largest), factor)));
      sum = _mm512_add_ps(sum, e[side]);
    }
    const auto upper =
      reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(e[1], e[0]));
    const __m512 back[2] = {
      _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm512_castsi512_si256(upper)), 16)),
      _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(upper, 1)), 16))};
    const auto lower = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(
      _mm512_sub_ps(e[1], back[1]), _mm512_sub_ps(e[0], back[0])));
    auto* strip = to + j * terms * step_values;
    _mm512_store_si512(strip, upper);
    _mm512_store_si512(strip + step_values, upper);
    _mm512_store_si512(strip + 2 * step_values, lower);
  }
  return _mm512_reduce_add_ps(sum);
}

struct split_sides {
  const bf16* keys;
  const bf16* values;
};

/// One head's queries [first, first + 32) of the new tokens.
void attend(const head_shape& s, matrix_view<float> o_TNH,
            matrix_view<const float> q_TNH, split_sides sides, std::size_t head,
            std::size_t first, scratch_memory& memory, features with) {
  const auto& shape = s.shape;
  const auto H = shape.head_size;
  const auto rows = std::min(tile_side, shape.tokens - first);
  const auto kv = head / (shape.heads / shape.kv_heads);
  const auto start = shape.first_key(s.past + first + 1) / tile_side;
  const auto strips = strips_of(s.past + first + rows) - start;
  const auto p_size = strips * terms * step_values;
  auto* scores = reinterpret_cast<float*>(
    memory.need(strips * block_values * sizeof(float)
                + block_values * sizeof(float) + (s.strip + p_size) * 2));
  auto* out = scores + strips * block_values;
  auto* q = reinterpret_cast<bf16*>(out + block_values);
  auto* p = q + s.strip;
  constexpr half order[terms] = {half::high, half::high, half::low};
  for (std::size_t term = 0; term != terms; ++term)
    for (std::size_t side = 0; side != 2; ++side)
      round_to_a(rows_of(q_TNH, head, H, first + side * 16, 16),
                 {q + term * s.head_strips * step_values + side * piece_values,
                  s.head_strips},
                 order[term]);
  const bf16_tiles tiles(with);
  bf16_tile_call call;
  std::fill_n(call.prefetch, prefetch_runs, q);
  call.add = false;
  call.a = q;
  call.steps = terms * s.head_strips;
  for (std::size_t j = 0; j != strips; ++j) {
    call.b = s.keys(sides.keys, kv, start + j);
    call.c = scores + j * block_values;
    tiles(call);
  }
  float sums[tile_side] = {};
  for (std::size_t r = 0; r != tile_side; ++r) {
    // Rows past the last see the same keys as the last; nothing reads them.
    const auto seen = s.past + first + std::min(r, rows - 1) + 1;
    sums[r] = softmax_row(scores, p, r, strips, start, shape.first_key(seen),
                          seen, shape.scale);
  }
  call.a = p;
  call.steps = terms * strips;
  call.c = out;
  for (std::size_t n = 0; n != s.head_strips; ++n) {
    call.b = s.values(sides.values, kv, n, start);
    tiles(call);
    for (std::size_t r = 0; r != rows; ++r) {
      auto* to = o_TNH.row(first + r) + head * H;
      const auto last = std::min(H, (n + 1) * tile_side);
      for (auto h = n * tile_side; h != last; ++h)
        to[h] = out[r / 16 * 512 + h % 32 / 16 * 256 + r % 16 * 16 + h % 16]
                / sums[r];
    }
  }
}

} // namespace

void tiled_attention(thread_team& team, many_rows_scratch& scratch,
                     matrix_view<float> o_TNH, matrix_view<const float> q_TNH,
                     matrix_view<const float> k_PKH,
                     matrix_view<const float> v_PKH,
                     const attention_shape& shape, features with) {
  const head_shape s{shape, k_PKH.rows - shape.tokens, k_PKH.rows};
  const auto side = shape.kv_heads * s.key_strips * s.strip;
  auto* keys = reinterpret_cast<bf16*>(scratch.x.need(2 * side * sizeof(bf16)));
  auto* values = keys + side;
  scratch.tasks.resize(
    std::max<std::size_t>(scratch.tasks.size(), team.size()));
  // Keys before every window are not read.
  const auto start = shape.first_key(s.past + 1) / tile_side;
  const auto strips = s.key_strips - start;
  team.run(shape.kv_heads * strips, [&](std::size_t task, unsigned) {
    split_keys(s, k_PKH, task / strips, start + task % strips, keys);
    split_values(s, v_PKH, task / strips, start + task % strips, values);
  });
  // The last queries see most keys, so they run first.
  const auto blocks = strips_of(shape.tokens);
  team.run(shape.heads * blocks, [&](std::size_t task, unsigned worker) {
    attend(s, o_TNH, q_TNH, {keys, values}, task / blocks,
           (blocks - 1 - task % blocks) * tile_side, scratch.tasks[worker],
           with);
  });
}

#else

void tiled_attention(thread_team&, many_rows_scratch&, matrix_view<float>,
                     matrix_view<const float>, matrix_view<const float>,
                     matrix_view<const float>, const attention_shape&,
                     features) {
}

#endif

} // namespace shoal::kernels::cpu
