// kernels/cpu/inference/paged_attention.cpp -- attention of new tokens against a cache.
//
// A row is a query head of a token; the rows of a sequence and a key-value head
// are cut into blocks, each of which is one task. Positions are cut into tiles of
// four pages at multiples of 64, whatever the first one of the call or of a window
// is. For each tile of keys: the scores of all rows of the block. Then the softmax
// of each row. Then for each tile of values their sum with the probabilities,
// which is added to the output. Pages of floats are read where they lie; others
// become floats first, once for all rows of the block.
//
// every sum of a row has an order that depends on its position alone: a
// score is a sum over h, ascending; the exponentials of a row are added in
// lanes of positions, ascending; an output is the sum of a tile's positions,
// ascending, then of tiles, ascending. Keys that a row does not see take no
// part, so it may be computed beside rows that see them.
#include "kernels/reference/inference/paged_attention.hpp"

#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"
#include "kernels/inference/paged_check.hpp"
#include "kernels/inference/paged_layout.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/inference/paged_attention.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

#ifndef SHOAL_KERNELS_PAGED_ATTENTION
#define SHOAL_KERNELS_PAGED_ATTENTION
namespace shoal::kernels::cpu {

/// Positions of a tile: its keys or values of 64 numbers are 16 KiB.
inline constexpr std::size_t key_tile = 64;
inline constexpr std::size_t tile_pages = key_tile / kv_page_positions;
/// Rows of a block: their scores for 512 keys are 128 KiB, which stays in the
/// second-level cache together with a tile. More rows share a tile that becomes
/// floats.
inline constexpr std::size_t row_block_cached = 64;

/// A query head of a token.
struct cached_row {
  const float* q;
  float* o;
  std::size_t first, last; ///< the positions that it sees
};

/// The rows of a task, by rising position.
struct cached_block {
  const kv_pages& cache;
  const paged_layout& layout;
  const kv_page* pages = nullptr; ///< of the sequence
  std::size_t kv = 0;             ///< key-value head
  float scale = 0, softcap = 0;
  std::size_t count = 0;
  cached_row rows[row_block_cached];

  cached_block(const kv_pages& of, const paged_layout& by)
    : cache(of), layout(by) {}
  std::size_t first() const { return rows[0].first; }
  std::size_t last() const { return rows[count - 1].last; }
};

/// The floats of a tile's pages. Pages that no row sees point to another one.
struct tile_floats {
  const float* pages[tile_pages];
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

/// Prefetches a section of a page that is read one tile later: the processor's own
/// prefetcher does not know where that page is. One token against 4,096 of 16 heads
/// takes 1.1 ms in f32 and 0.54 ms in bf16 with it, 1.3 and 1.3 ms without (EPYC of
/// family 26, one thread, 2026-11).
HWY_INLINE void prefetch(const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(from + i);
}

/// Registers of `count` values, which is a multiple of 16, as floats.
void widen(const bf16* from, std::size_t count, float* to) {
  const tag d;
  const hn::RebindToUnsigned<tag> bits;
  const hn::Rebind<std::uint16_t, tag> half;
  const auto* const x = reinterpret_cast<const std::uint16_t*>(from);
  for (std::size_t i = 0; i != count; i += hn::Lanes(d))
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(
                                hn::PromoteTo(bits, hn::LoadU(half, x + i)))),
               d, to + i);
}

HWY_INLINE vec codes(const std::int8_t* from) {
  const tag d;
  const hn::RebindToSigned<tag> whole;
  const hn::Rebind<std::int8_t, tag> byte;
  return hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(byte, from)));
}

/// Keys of a page: each column of positions has its scales.
void widen_keys(const std::byte* part, const paged_layout& layout,
                std::size_t size, float* to) {
  const tag d;
  const auto* const scales = reinterpret_cast<const bf16*>(part);
  const auto* from = reinterpret_cast<const std::int8_t*>(part + layout.keys);
  HWY_ALIGN float scale[kv_page_positions];
  for (std::size_t h = 0; h != size;
       ++h, from += kv_page_positions, to += kv_page_positions) {
    if (h % block_cols == 0)
      widen(scales + h / block_cols * kv_page_positions, kv_page_positions,
            scale);
    for (std::size_t j = 0; j != kv_page_positions; j += hn::Lanes(d))
      hn::StoreU(hn::Mul(hn::Load(d, scale + j), codes(from + j)), d, to + j);
  }
}

/// Values of a page: each row has a scale for each block.
void widen_values(const std::byte* part, const paged_layout& layout,
                  float* to) {
  const tag d;
  const auto* scale = reinterpret_cast<const bf16*>(part + layout.value_scales);
  const auto* from = reinterpret_cast<const std::int8_t*>(part + layout.values);
  for (std::size_t j = 0; j != kv_page_positions; ++j)
    for (std::size_t b = 0; b != layout.blocks; ++b, ++scale) {
      const auto count =
        std::min(block_cols, layout.value_width - b * block_cols);
      const auto factor = hn::Set(d, to_float(*scale));
      for (std::size_t i = 0; i != count; i += hn::Lanes(d))
        hn::StoreU(hn::Mul(factor, codes(from + i)), d, to + i);
      from += count;
      to += count;
    }
}

/// Where keys or values lie in the part of a page.
struct section {
  std::size_t first, last; ///< bytes
};

/// Calls body(page of the tile, its part) for the pages of a tile that rows see;
/// the others get the floats of the first one.
template <class Body>
HWY_INLINE tile_floats each_page(const cached_block& b, std::size_t tile,
                                 section read, const Body& body) {
  const auto part = [&](std::size_t page) {
    return part_of(b.cache, b.layout, b.pages[page], b.kv);
  };
  const auto first = std::max(tile, b.first()) / kv_page_positions;
  const auto last =
    (std::min(tile + key_tile, b.last()) - 1) / kv_page_positions;
  const auto end = (b.last() - 1) / kv_page_positions + 1;
  tile_floats out;
  for (auto page = first; page <= last; ++page) {
    if (page + tile_pages < end)
      prefetch(part(page + tile_pages) + read.first, read.last - read.first);
    out.pages[page % tile_pages] = body(page % tile_pages, part(page));
  }
  for (std::size_t p = 0; p != tile_pages; ++p)
    if (p < first % tile_pages || p > last % tile_pages)
      out.pages[p] = out.pages[first % tile_pages];
  return out;
}

/// Keys of a tile: value h of position j of page p is pages[p][h * 16 + j].
tile_floats keys_of(const cached_block& b, std::size_t tile, float* memory) {
  const auto count = b.cache.head_size * kv_page_positions;
  const section keys{0, b.layout.value_scales};
  return each_page(b, tile, keys,
                   [&](std::size_t p, const std::byte* part) -> const float* {
                     const auto* const from = part + b.layout.keys;
                     float* const to = memory + p * count;
                     if (b.cache.type == kv_type::f32)
                       return reinterpret_cast<const float*>(from);
                     if (b.cache.type == kv_type::bf16)
                       widen(reinterpret_cast<const bf16*>(from), count, to);
                     else
                       widen_keys(part, b.layout, b.cache.head_size, to);
                     return to;
                   });
}

/// Values of a tile: those of position j of page p begin at
/// pages[p][j * value_width].
tile_floats values_of(const cached_block& b, std::size_t tile, float* memory) {
  const auto count = b.layout.value_width * kv_page_positions;
  const section values{b.layout.value_scales, b.layout.bytes};
  return each_page(b, tile, values,
                   [&](std::size_t p, const std::byte* part) -> const float* {
                     const auto* const from = part + b.layout.values;
                     float* const to = memory + p * count;
                     if (b.cache.type == kv_type::f32)
                       return reinterpret_cast<const float*>(from);
                     if (b.cache.type == kv_type::bf16)
                       widen(reinterpret_cast<const bf16*>(from), count, to);
                     else
                       widen_values(part, b.layout, to);
                     return to;
                   });
}

/// The scores of `Rows` rows, `width` values apart, with a tile's keys.
template <std::size_t Rows>
void score_rows(float* s, std::size_t width, const cached_row* rows,
                const tile_floats& keys, std::size_t size, float scale) {
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
    const float* from[tile_columns];
    for (std::size_t c = 0; c != tile_columns; ++c) {
      const auto position = j + c * lanes;
      from[c] =
        keys.pages[position / kv_page_positions] + position % kv_page_positions;
    }
    for (std::size_t h = 0; h != size; ++h) {
      vec columns[tile_columns];
#pragma GCC unroll 4
      for (std::size_t c = 0; c != tile_columns; ++c)
        columns[c] = hn::LoadU(d, from[c] + h * kv_page_positions);
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
  const tile_floats& v; ///< values
  float* o;             ///< outputs, by row
  std::size_t width;    ///< of rows of v and o: whole registers

  const float* values(std::size_t j) const {
    return v.pages[j / kv_page_positions] + j % kv_page_positions * width;
  }
};

/// Adds positions [first, last) of a tile to the sums of one row.
template <std::size_t Columns>
HWY_INLINE void
add_alone(const value_tile& t, const float* p, std::size_t first,
          std::size_t last, std::size_t h, vec (&sums)[Columns]) {
  const tag d;
  for (auto j = first; j != last; ++j) {
    const float* const v = t.values(j) + h;
#pragma GCC unroll 4
    for (std::size_t c = 0; c != Columns; ++c)
      sums[c] = hn::MulAdd(hn::Set(d, p[j]), hn::LoadU(d, v + c * hn::Lanes(d)),
                           sums[c]);
  }
}

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
  vec sums[Rows][Columns];
#pragma GCC unroll 6
  for (std::size_t r = 0; r != Rows; ++r)
#pragma GCC unroll 4
    for (std::size_t c = 0; c != Columns; ++c)
      sums[r][c] = hn::Zero(d);
  const auto begin = first[Rows - 1], end = last[0];
#pragma GCC unroll 6
  for (std::size_t r = 0; r != Rows; ++r)
    add_alone(t, p[r], first[r], begin, h, sums[r]);
  for (auto j = begin; j != end; ++j) {
    const float* const v = t.values(j) + h;
    vec columns[Columns];
#pragma GCC unroll 4
    for (std::size_t c = 0; c != Columns; ++c)
      columns[c] = hn::LoadU(d, v + c * lanes);
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
    add_alone(t, p[r], end, last[r], h, sums[r]);
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
/// the outputs of all rows, in rows of value_width.
void attend_block(const cached_block& b, std::size_t begin, std::size_t width,
                  float* memory) {
  const auto size = b.cache.head_size;
  const auto o_width = b.layout.value_width;
  auto* const floats = memory + b.count * width;
  auto* const outputs = floats + key_tile * o_width;
  const auto end = b.last();
  const auto sees = [&](std::size_t r, std::size_t tile) {
    return b.rows[r].first < tile + key_tile && b.rows[r].last > tile;
  };
  for (auto tile = begin; tile < end; tile += key_tile) {
    const auto keys = keys_of(b, tile, floats);
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
    const auto values = values_of(b, tile, floats);
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

void cpu_backend::append_paged(const kv_pages& cache,
                               matrix_view<const float> k_TKH,
                               matrix_view<const float> v_TKH,
                               std::span<const paged_rows> sequences) {
  check_append_paged(cache, k_TKH, v_TKH, sequences);
  for_ranges(team_, k_TKH.rows, 4 * k_TKH.cols,
             [&](std::size_t first, std::size_t last) {
               reference::append_rows(cache, k_TKH, v_TKH, sequences, first,
                                      last);
             });
}

namespace {

/// The rows of a sequence and a key-value head that one task computes.
struct attention_task {
  const paged_rows* sequence;
  std::size_t begin; ///< the sequence's first row in the call
  std::size_t kv;
  std::size_t first, count; ///< rows of heads

  std::size_t cost(std::size_t group) const {
    return count * (sequence->first + (first + count - 1) / group + 1);
  }
};

std::vector<attention_task>
tasks_of(std::span<const paged_rows> sequences, const attention_shape& shape) {
  const auto group = shape.heads / shape.kv_heads;
  std::vector<attention_task> out;
  std::size_t begin = 0;
  for (const paged_rows& s : sequences) {
    for (std::size_t kv = 0; kv != shape.kv_heads; ++kv)
      for (std::size_t first = 0; first < s.rows * group;
           first += row_block_cached)
        out.push_back({&s, begin, kv, first,
                       std::min(row_block_cached, s.rows * group - first)});
    begin += s.rows;
  }
  // The longest run first, so that no thread ends up alone with one.
  std::ranges::stable_sort(
    out, std::ranges::greater(),
    [&](const attention_task& t) { return t.cost(group); });
  return out;
}

} // namespace

void cpu_backend::attention_paged(matrix_view<float> o_TNH,
                                  matrix_view<const float> q_TNH,
                                  const kv_pages& cache,
                                  std::span<const paged_rows> sequences,
                                  const attention_shape& shape) {
  check_attention_paged(o_TNH, q_TNH, cache, sequences, shape);
  const auto H = shape.head_size;
  const auto group = shape.heads / shape.kv_heads;
  const paged_layout layout(cache.type, H);
  const auto tasks = tasks_of(sequences, shape);
  const auto task = [&](std::size_t index, unsigned worker) {
    const attention_task& t = tasks[index];
    cached_block b(cache, layout);
    b.pages = t.sequence->pages.data;
    b.kv = t.kv;
    b.scale = shape.scale;
    b.softcap = shape.softcap;
    b.count = t.count;
    for (std::size_t r = 0; r != b.count; ++r) {
      const auto row = (t.first + r) / group;
      const auto column = (t.kv * group + (t.first + r) % group) * H;
      const auto seen = t.sequence->first + row + 1;
      b.rows[r] = {q_TNH.row(t.begin + row) + column,
                   o_TNH.row(t.begin + row) + column, shape.first_key(seen),
                   seen};
    }
    const auto begin = b.first() / key_tile * key_tile;
    const auto width = (b.last() - begin + key_tile - 1) / key_tile * key_tile;
    auto* const memory = attention_[worker].at_least(
      (b.count * width + (key_tile + b.count) * layout.value_width)
      * sizeof(float));
    HWY_DYNAMIC_DISPATCH(attend_block)
    (b, begin, width, reinterpret_cast<float*>(memory));
  };
  if (attention_.size() < team_.size())
    attention_.resize(team_.size());
  std::size_t products = 0;
  for (const attention_task& t : tasks)
    products += t.cost(group) * H;
  // Reading a short cache takes less time than waking a second thread.
  if (products < task_values)
    for (std::size_t index = 0; index != tasks.size(); ++index)
      task(index, 0);
  else
    team_.run(tasks.size(), task);
}

} // namespace shoal::kernels::cpu
#endif
