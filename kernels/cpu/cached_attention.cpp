// kernels/cpu/cached_attention.cpp -- attention of new tokens against a cache.
//
// A row is a query head of a token; the rows of a key-value head are cut into
// blocks, each of which is one task. Positions are cut into tiles at multiples
// of 64, whatever the first one of the call or of a window is. For each tile of
// keys: a copy of the keys with positions side by side, and the scores of all
// rows of the block. Then the softmax of each row. Then for each tile of values
// a copy of them, and their sum with the probabilities, which is added to the
// output. In the cache itself, rows of the same head may share a few sets of the
// processor's caches.
//
// every sum of a row has an order that depends on its position alone: a
// score is a sum over h, ascending; the exponentials of a row are added in
// lanes of positions, ascending; an output is the sum of a tile's positions,
// ascending, then of tiles, ascending. Keys that a row does not see take no
// part, so it may be computed beside rows that see them.
#include "kernels/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cached_attention.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

#ifndef SHOAL_KERNELS_CACHED_ATTENTION
#define SHOAL_KERNELS_CACHED_ATTENTION
namespace shoal::kernels::cpu {

/// Positions of a tile: its keys or values of 64 numbers are 16 KiB.
inline constexpr std::size_t key_tile = 64;
/// Rows of a block: their scores for 512 keys are 128 KiB, which stays in the
/// second-level cache together with a tile. More rows share the copy of a tile.
inline constexpr std::size_t row_block_cached = 64;

/// Values of a head, rounded up to whole registers of 16 lanes.
constexpr std::size_t padded_head(std::size_t size) {
  return (size + 15) / 16 * 16;
}

/// A query head of a token.
struct cached_row {
  const float* q;
  float* o;
  std::size_t first, last; ///< the positions that it sees
};

/// The rows of a task, by rising position.
struct cached_block {
  cached_row rows[row_block_cached];
  std::size_t count = 0;
  matrix_view<const float> k_PH, v_PH; ///< columns of the key-value head
  float scale, softcap;
};

} // namespace shoal::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

/// Rows and registers of positions or outputs that are computed at once: their
/// sums, a register for each column and one for the row's value are 29 of 32
/// registers, or 15 of 16.
constexpr std::size_t tile_rows = 6;
constexpr std::size_t tile_columns = hn::MaxLanes(tag()) == 16 ? 4 : 2;

/// Prefetches the row that is copied `rows_ahead` rows later: the processor's own
/// prefetcher does not follow rows that are far apart.
constexpr std::size_t rows_ahead = 16;
HWY_INLINE void
fetch_row(const float* row, std::size_t stride, std::size_t size) {
  for (std::size_t h = 0; h < size; h += 16)
    __builtin_prefetch(row + rows_ahead * stride + h);
}

#if HWY_TARGET != HWY_SCALAR
/// Writes the blocks of four lanes of v, each to the fourth column after the one
/// before.
template <class D>
HWY_INLINE void store_blocks(D d, hn::Vec<D> v, float* to) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    store_blocks(half, hn::LowerHalf(half, v), to);
    store_blocks(half, hn::UpperHalf(half, v), to + hn::Lanes(half) * key_tile);
  } else {
    hn::StoreU(v, d, to);
  }
}

/// A register of each of four keys to columns of four.
HWY_INLINE void turn_register(const float* k, std::size_t stride, float* to) {
  const tag d;
  const hn::Repartition<double, tag> pairs;
  const auto a = hn::LoadU(d, k), b = hn::LoadU(d, k + stride);
  const auto c = hn::LoadU(d, k + 2 * stride), e = hn::LoadU(d, k + 3 * stride);
  const auto both = [&](vec x, vec y, float* column) HWY_ATTR {
    const auto low = hn::BitCast(pairs, x), high = hn::BitCast(pairs, y);
    store_blocks(d, hn::BitCast(d, hn::InterleaveLower(pairs, low, high)),
                 column);
    store_blocks(d, hn::BitCast(d, hn::InterleaveUpper(pairs, low, high)),
                 column + key_tile);
  };
  both(hn::InterleaveLower(d, a, b), hn::InterleaveLower(d, c, e), to);
  both(hn::InterleaveUpper(d, a, b), hn::InterleaveUpper(d, c, e),
       to + 2 * key_tile);
}
#endif

/// Copies `count` <= key_tile keys to columns: to[h * key_tile + j]. The columns
/// past the last are 0.
void turn_keys(const float* k, std::size_t stride, std::size_t count,
               std::size_t size, float* to) {
  for (std::size_t j = 0; j < count; j += 4, k += 4 * stride, to += 4) {
    const auto rows = std::min<std::size_t>(4, count - j);
    for (std::size_t r = 0; r != rows; ++r)
      fetch_row(k + r * stride, stride, size);
    std::size_t h = 0;
#if HWY_TARGET != HWY_SCALAR
    const auto lanes = hn::Lanes(tag());
    for (; rows == 4 && h + lanes <= size; h += lanes)
      turn_register(k + h, stride, to + h * key_tile);
#endif
    for (; h != size; ++h)
      for (std::size_t r = 0; r != 4; ++r)
        to[h * key_tile + r] = r < rows ? k[r * stride + h] : 0;
  }
  const auto whole = (count + 3) / 4 * 4;
  for (std::size_t h = 0; h != size && whole != key_tile; ++h)
    std::fill_n(to + h * key_tile, key_tile - whole, 0.0f);
}

/// Copies `count` rows of values to rows of `width` numbers, 0 past the last.
void copy_values(const float* v, std::size_t stride, std::size_t count,
                 std::size_t size, std::size_t width, float* to) {
  for (std::size_t j = 0; j != count; ++j, v += stride, to += width) {
    fetch_row(v, stride, size);
    std::fill(std::copy_n(v, size, to), to + width, 0.0f);
  }
}

/// The scores of `Rows` rows, `width` values apart, with a tile's keys.
template <std::size_t Rows>
void score_rows(float* s, std::size_t width, const cached_row* rows,
                const float* keys, std::size_t size, float scale) {
  const tag d;
  const auto lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, scale);
  const float* q[Rows];
  for (std::size_t r = 0; r != Rows; ++r)
    q[r] = rows[r].q;
  for (std::size_t j = 0; j != key_tile; j += tile_columns * lanes) {
    vec sums[Rows][tile_columns];
#pragma GCC unroll 6
    for (std::size_t r = 0; r != Rows; ++r)
#pragma GCC unroll 4
      for (std::size_t c = 0; c != tile_columns; ++c)
        sums[r][c] = hn::Zero(d);
    for (std::size_t h = 0; h != size; ++h) {
      const float* const from = keys + h * key_tile + j;
      vec columns[tile_columns];
#pragma GCC unroll 4
      for (std::size_t c = 0; c != tile_columns; ++c)
        columns[c] = hn::LoadU(d, from + c * lanes);
#pragma GCC unroll 6
      for (std::size_t r = 0; r != Rows; ++r) {
        const auto x = hn::Set(d, q[r][h]);
#pragma GCC unroll 4
        for (std::size_t c = 0; c != tile_columns; ++c)
          sums[r][c] = hn::MulAdd(x, columns[c], sums[r][c]);
      }
    }
#pragma GCC unroll 6
    for (std::size_t r = 0; r != Rows; ++r)
#pragma GCC unroll 4
      for (std::size_t c = 0; c != tile_columns; ++c)
        hn::StoreU(hn::Mul(sums[r][c], factor), d,
                   s + r * width + j + c * lanes);
  }
}

/// Turns scores [first, last) into exponentials of their distance from the
/// largest. The lanes beside them that share a register become 0. @returns the
/// sum of the exponentials
float softmax_scores(float* s, std::size_t first, std::size_t last,
                     float softcap) {
  const tag d;
  const auto lanes = hn::Lanes(d);
  const auto begin = first / lanes * lanes;
  const auto end = (last + lanes - 1) / lanes * lanes;
  if (softcap > 0) {
    const auto limit = hn::Set(d, softcap);
    const auto part = hn::Set(d, 1 / softcap);
    for (auto j = begin; j != end; j += lanes)
      hn::StoreU(
        hn::Mul(limit, hn::Tanh(d, hn::Mul(hn::LoadU(d, s + j), part))), d,
        s + j);
  }
  std::fill(s + begin, s + first, -INFINITY);
  std::fill(s + last, s + end, -INFINITY);
  auto high = hn::LoadU(d, s + begin);
  for (auto j = begin; j != end; j += lanes)
    high = hn::Max(high, hn::LoadU(d, s + j));
  const auto largest = hn::Set(d, hn::GetLane(hn::MaxOfLanes(d, high)));
  auto total = hn::Zero(d);
  for (auto j = begin; j != end; j += lanes) {
    const auto e = hn::Exp(d, hn::Sub(hn::LoadU(d, s + j), largest));
    total = hn::Add(total, e);
    hn::StoreU(e, d, s + j);
  }
  return sum_of(total);
}

/// Where the numbers of a tile and of some rows lie.
struct value_tile {
  const float* p; ///< probabilities, by row and position
  std::size_t p_width;
  const float* v;    ///< values, by position
  float* o;          ///< outputs, by row
  std::size_t width; ///< of rows of v and o: whole registers
};

/// Adds the sums of `Rows` rows over positions [first[r], last[r]) of a tile to
/// `Columns` registers of outputs from h on.
/// @pre first and last rise with r, and all rows see a position
template <std::size_t Rows, std::size_t Columns>
HWY_INLINE void add_values(const value_tile& t, const std::size_t* first,
                           const std::size_t* last, std::size_t h) {
  const tag d;
  const auto lanes = hn::Lanes(d);
  const float* p[Rows];
  for (std::size_t r = 0; r != Rows; ++r)
    p[r] = t.p + r * t.p_width;
  const float* const v = t.v + h;
  vec sums[Rows][Columns];
#pragma GCC unroll 6
  for (std::size_t r = 0; r != Rows; ++r)
#pragma GCC unroll 4
    for (std::size_t c = 0; c != Columns; ++c)
      sums[r][c] = hn::Zero(d);
  const auto begin = first[Rows - 1], end = last[0];
#pragma GCC unroll 6
  for (std::size_t r = 0; r != Rows; ++r)
    for (auto j = first[r]; j != begin; ++j)
#pragma GCC unroll 4
      for (std::size_t c = 0; c != Columns; ++c)
        sums[r][c] =
          hn::MulAdd(hn::Set(d, p[r][j]),
                     hn::LoadU(d, v + j * t.width + c * lanes), sums[r][c]);
  for (auto j = begin; j != end; ++j) {
    vec columns[Columns];
#pragma GCC unroll 4
    for (std::size_t c = 0; c != Columns; ++c)
      columns[c] = hn::LoadU(d, v + j * t.width + c * lanes);
#pragma GCC unroll 6
    for (std::size_t r = 0; r != Rows; ++r) {
      const auto x = hn::Set(d, p[r][j]);
#pragma GCC unroll 4
      for (std::size_t c = 0; c != Columns; ++c)
        sums[r][c] = hn::MulAdd(x, columns[c], sums[r][c]);
    }
  }
#pragma GCC unroll 6
  for (std::size_t r = 0; r != Rows; ++r)
    for (auto j = end; j != last[r]; ++j)
#pragma GCC unroll 4
      for (std::size_t c = 0; c != Columns; ++c)
        sums[r][c] =
          hn::MulAdd(hn::Set(d, p[r][j]),
                     hn::LoadU(d, v + j * t.width + c * lanes), sums[r][c]);
#pragma GCC unroll 6
  for (std::size_t r = 0; r != Rows; ++r)
#pragma GCC unroll 4
    for (std::size_t c = 0; c != Columns; ++c) {
      float* const o = t.o + r * t.width + h + c * lanes;
      hn::StoreU(hn::Add(hn::LoadU(d, o), sums[r][c]), d, o);
    }
}

template <std::size_t Rows>
void value_rows(const value_tile& t, const std::size_t* first,
                const std::size_t* last) {
  const auto lanes = hn::Lanes(tag());
  std::size_t h = 0;
  for (; h + tile_columns * lanes <= t.width; h += tile_columns * lanes)
    add_values<Rows, tile_columns>(t, first, last, h);
  for (; h != t.width; h += lanes)
    add_values<Rows, 1>(t, first, last, h);
}

/// Calls body with the number of rows as a constant.
template <class Body>
HWY_INLINE void with_rows(std::size_t count, const Body& body) {
  switch (count) {
  case 1:
    return body(std::integral_constant<std::size_t, 1>());
  case 2:
    return body(std::integral_constant<std::size_t, 2>());
  case 3:
    return body(std::integral_constant<std::size_t, 3>());
  case 4:
    return body(std::integral_constant<std::size_t, 4>());
  case 5:
    return body(std::integral_constant<std::size_t, 5>());
  default:
    return body(std::integral_constant<std::size_t, 6>());
  }
}

/// Rows [r, r + @returns) see positions of a tile in common.
std::size_t together(const cached_block& b, std::size_t r,
                     std::size_t tile_first, std::size_t tile_last) {
  const auto end = std::min(b.rows[r].last, tile_last);
  std::size_t n = 1;
  while (n != tile_rows && r + n != b.count
         && std::max(b.rows[r + n].first, tile_first) < end)
    ++n;
  return n;
}

/// `memory` has room for the scores of all rows, which begin at position
/// `begin`, in rows of `width`, and then for a tile of keys or values and for
/// the outputs of all rows, in rows of padded_head() values.
void attend_block(const cached_block& b, std::size_t begin, std::size_t width,
                  float* memory) {
  const auto size = b.k_PH.cols;
  auto* const keys = memory + b.count * width;
  auto* const values = keys;
  const auto o_width = padded_head(size);
  auto* const outputs = keys + key_tile * o_width;
  const auto end = b.rows[b.count - 1].last;
  const auto sees = [&](std::size_t r, std::size_t tile) {
    return b.rows[r].first < tile + key_tile && b.rows[r].last > tile;
  };
  for (auto tile = begin; tile < end; tile += key_tile) {
    turn_keys(b.k_PH.row(tile), b.k_PH.stride, std::min(key_tile, end - tile),
              size, keys);
    for (std::size_t r = 0; r < b.count; r += tile_rows) {
      const auto n = std::min(tile_rows, b.count - r);
      // The first row begins first, and the last one sees most.
      if (b.rows[r].first >= tile + key_tile || b.rows[r + n - 1].last <= tile)
        continue;
      with_rows(n, [&](auto rows) HWY_ATTR {
        score_rows<rows()>(memory + r * width + (tile - begin), width,
                           &b.rows[r], keys, size, b.scale);
      });
    }
  }
  float sums[row_block_cached];
  for (std::size_t r = 0; r != b.count; ++r) {
    sums[r] = softmax_scores(memory + r * width, b.rows[r].first - begin,
                             b.rows[r].last - begin, b.softcap);
  }
  std::fill_n(outputs, b.count * o_width, 0.0f);
  for (auto tile = begin; tile < end; tile += key_tile) {
    const auto tile_end = tile + key_tile;
    copy_values(b.v_PH.row(tile), b.v_PH.stride, std::min(key_tile, end - tile),
                size, o_width, values);
    for (std::size_t r = 0; r != b.count;) {
      if (!sees(r, tile)) {
        ++r;
        continue;
      }
      const auto n = together(b, r, tile, tile_end);
      std::size_t first[tile_rows], last[tile_rows];
      for (std::size_t i = 0; i != n; ++i) {
        first[i] = std::max(b.rows[r + i].first, tile) - tile;
        last[i] = std::min(b.rows[r + i].last, tile_end) - tile;
      }
      const value_tile t{memory + r * width + (tile - begin), width, values,
                         outputs + r * o_width, o_width};
      with_rows(n, [&](auto rows)
                     HWY_ATTR { value_rows<rows()>(t, first, last); });
      r += n;
    }
  }
  const tag d;
  for (std::size_t r = 0; r != b.count; ++r) {
    const float* const o = outputs + r * o_width;
    float* const to = b.rows[r].o;
    const auto factor = hn::Set(d, 1.0f / sums[r]);
    each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
      store(hn::Mul(hn::LoadU(d, o + i), factor), d, to + i, n);
    });
  }
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(attend_block);

void cpu_backend::attention_cached(matrix_view<float> o_TNH,
                                   matrix_view<const float> q_TNH,
                                   matrix_view<const float> k_PKH,
                                   matrix_view<const float> v_PKH,
                                   const attention_shape& shape) {
  check_attention_cached(o_TNH, q_TNH, k_PKH, v_PKH, shape);
  const auto T = shape.tokens;
  const auto N = shape.heads, K = shape.kv_heads, H = shape.head_size;
  if (T == 0)
    return;
  const auto past = k_PKH.rows - T;
  const auto group = N / K;
  const auto blocks = (T * group + row_block_cached - 1) / row_block_cached;
  // The last blocks see most keys. They run first, so that no thread ends up
  // alone with a long one.
  const auto task = [&](std::size_t index, unsigned worker) {
    const auto kv = index / blocks;
    const auto first = (blocks - 1 - index % blocks) * row_block_cached;
    cached_block b;
    b.k_PH = k_PKH.slice_cols(kv * H, (kv + 1) * H);
    b.v_PH = v_PKH.slice_cols(kv * H, (kv + 1) * H);
    b.scale = shape.scale;
    b.softcap = shape.softcap;
    b.count = std::min(row_block_cached, T * group - first);
    for (std::size_t r = 0; r != b.count; ++r) {
      const auto t = (first + r) / group;
      const auto column = (kv * group + (first + r) % group) * H;
      const auto seen = past + t + 1;
      b.rows[r] = {q_TNH.row(t) + column, o_TNH.row(t) + column,
                   shape.first_key(seen), seen};
    }
    const auto begin = b.rows[0].first / key_tile * key_tile;
    const auto width =
      (b.rows[b.count - 1].last - begin + key_tile - 1) / key_tile * key_tile;
    auto* const memory = attention_[worker].at_least(
      (b.count * width + (key_tile + b.count) * padded_head(H))
      * sizeof(float));
    HWY_DYNAMIC_DISPATCH(attend_block)
    (b, begin, width, reinterpret_cast<float*>(memory));
  };
  if (attention_.size() < team_.size())
    attention_.resize(team_.size());
  // Reading a short cache takes less time than waking a second thread.
  if (T * k_PKH.rows * N * H < task_values)
    for (std::size_t index = 0; index != K * blocks; ++index)
      task(index, 0);
  else
    team_.run(K * blocks, task);
}

} // namespace shoal::kernels::cpu
#endif
