// kernels/cpu/product/panels_i16.cpp -- products of many tokens with q8 and q4 as
// whole numbers of 16 bits.
//
// For processors that multiply pairs of 16 bits but neither bytes nor bf16 at
// the full rate of their vectors (AVX2): one multiplication is two products,
// while for floats it is one. Activations have the codes of 8 bits that
// panels.hpp promises, here in 16.
//
// A task is a range of panels and all tokens of a pass. The codes of a panel
// are widened once for several hundred inputs. They stay in the first-level
// cache while all tokens pass by. Sums of a block are exact.
#include "kernels/common/check.hpp"
#include "kernels/cpu/product/panels.hpp"
#include "kernels/inference/packed_layout.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/product/panels_i16.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

#ifndef SHOAL_KERNELS_PANELS_I16
#define SHOAL_KERNELS_PANELS_I16
namespace shoal::kernels::cpu {

/// Chunks of inputs of one pass: 16 KiB of widened codes.
inline constexpr std::size_t i16_chunks = 8;
/// Tokens whose activations are interleaved; the last ones may be zeros.
inline constexpr std::size_t i16_rows = 4;

/// Activations of some chunks of inputs: x = scale * code, in the order in
/// which they are read. In rows of a whole matrix, the activations of different
/// tokens would evict each other from the caches.
struct i16_activations {
  std::size_t groups; ///< of i16_rows tokens
  std::size_t blocks;
  std::int16_t* codes; ///< [groups][blocks][16 pairs][i16_rows][2]
  float* scales;       ///< [groups][blocks][i16_rows]
};

/// Memory of a task.
struct i16_task {
  std::int16_t* codes; ///< [2 * i16_chunks][16][16][2]: block, pair of inputs
  float* scales;       ///< [2 * i16_chunks][16]
  float* sums;         ///< [rows][16]
};

inline constexpr std::size_t i16_task_codes =
  i16_chunks * chunk_cols * panel_rows;
inline constexpr std::size_t i16_task_scales = i16_chunks * 2 * panel_rows;

} // namespace shoal::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4                          \
  || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

using ints = hn::RebindToSigned<tag>;
using words = hn::RebindToUnsigned<tag>;
using shorts = hn::Repartition<std::int16_t, tag>;
using bytes = hn::Repartition<std::uint8_t, tag>;

/// Registers of a panel's outputs, and tokens whose sums fill up to eight more.
constexpr std::size_t parts = panel_rows / hn::MaxLanes(tag());
constexpr std::size_t tile_rows = std::min(8 / parts, i16_rows);
static_assert(i16_rows % tile_rows == 0);

bool can_multiply_i16() {
  return true;
}

void round_block_i16(std::int16_t* codes, float* scale, const float* x) {
  const tag d;
  const hn::Rebind<std::int16_t, tag> d16;
  const auto lanes = hn::Lanes(d); // divides block_cols
  const auto rounding = rounding_of(x, block_cols, 127.0f);
  *scale = rounding.scale;
  for (std::size_t i = 0; i != block_cols; i += lanes) {
    const auto code =
      hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), rounding.inverse));
    hn::StoreU(hn::DemoteTo(d16, code), d16, codes + i);
  }
}

/// Widens the codes of `chunks` chunks of a panel.
void widen_i16(const i16_task& to, weight_type type, const std::byte* chunk,
               std::size_t chunks) {
  const words dw;
  const shorts ds;
  const bytes db;
  const tag d;
  const auto lanes = hn::Lanes(d);
  HWY_ALIGN std::uint8_t levels[hn::MaxLanes(bytes())];
  HWY_ALIGN std::uint8_t low[hn::MaxLanes(bytes())];
  HWY_ALIGN std::uint8_t high[hn::MaxLanes(bytes())];
  for (std::size_t i = 0; i != hn::Lanes(db); ++i) {
    levels[i] = static_cast<std::uint8_t>(q4_codes[i % 16] + code_offset);
    const auto from = static_cast<std::uint8_t>(i % 16 / 4 * 4 + i % 4 / 2);
    low[i] = i % 2 != 0 ? 0x80 : from;
    high[i] = i % 2 != 0 ? 0x80 : static_cast<std::uint8_t>(from + 2);
  }
  const auto table = hn::Load(db, levels);
  const auto first_pair = hn::Load(db, low);
  const auto second_pair = hn::Load(db, high);
  const auto nibble = hn::Set(dw, 0x0f0f0f0fu);
  const auto offset = hn::Set(ds, static_cast<std::int16_t>(code_offset));
  const auto upper = hn::Set(dw, 0xffff0000u);
  const auto put = [&](std::int16_t* to_codes, hn::Vec<bytes> codes) HWY_ATTR {
    const auto pair = [&](hn::Vec<bytes> which) HWY_ATTR {
      return hn::Sub(hn::BitCast(ds, hn::TableLookupBytesOr0(codes, which)),
                     offset);
    };
    hn::Store(pair(first_pair), ds, to_codes);
    hn::Store(pair(second_pair), ds, to_codes + 2 * panel_rows);
  };
  for (std::size_t c = 0; c != chunks; ++c, chunk += chunk_bytes(type)) {
    auto* const codes = to.codes + c * chunk_cols * panel_rows;
    constexpr std::size_t block = block_cols * panel_rows;
    for (std::size_t n = 0; n != panel_rows; n += lanes) {
      const auto word = [&](std::size_t at) HWY_ATTR {
        return hn::LoadU(
          dw, reinterpret_cast<const std::uint32_t*>(chunk + at + 4 * n));
      };
      const auto both = word(0);
      auto* const scales = to.scales + c * 2 * panel_rows + n;
      hn::Store(hn::BitCast(d, hn::ShiftLeft<16>(both)), d, scales);
      hn::Store(hn::BitCast(d, hn::And(both, upper)), d, scales + panel_rows);
      for (std::size_t g = 0; g != 8; ++g) {
        auto* const to_codes = codes + g * 4 * panel_rows + 2 * n;
        const auto w = word(scale_bytes + 64 * g);
        if (type == weight_type::q8) {
          put(to_codes, hn::BitCast(db, w));
          put(to_codes + block,
              hn::BitCast(db, word(scale_bytes + 64 * (8 + g))));
          continue;
        }
        const auto index0 = hn::BitCast(db, hn::And(w, nibble));
        const auto index1 =
          hn::BitCast(db, hn::And(hn::ShiftRight<4>(w), nibble));
        put(to_codes, hn::TableLookupBytes(table, index0));
        put(to_codes + block, hn::TableLookupBytes(table, index1));
      }
    }
  }
}

/// Adds the products of the blocks of tile_rows tokens, from x and x_scales on,
/// to their sums, or starts the sums.
HWY_INLINE void
add_tile(float* sums, const i16_task& w, std::size_t blocks,
         const std::int16_t* x, const float* x_scales, bool add) {
  const tag d;
  const ints di;
  const shorts ds;
  const auto lanes = hn::Lanes(d);
  const std::int16_t* codes = w.codes;
  const float* scales = w.scales;
  if (!add)
    std::fill_n(sums, tile_rows * panel_rows, 0.0f);
  for (std::size_t b = 0; b != blocks; ++b) {
    hn::Vec<ints> dots[tile_rows][parts];
#pragma GCC unroll 16
    for (std::size_t t = 0; t != tile_rows; ++t)
#pragma GCC unroll 16
      for (std::size_t i = 0; i != parts; ++i)
        dots[t][i] = hn::Zero(di);
        // Unrolled: otherwise GCC moves every sum between registers.
#pragma GCC unroll 4
    for (std::size_t k = 0; k != block_cols; k += 2) {
      hn::Vec<shorts> pairs[parts];
#pragma GCC unroll 16
      for (std::size_t i = 0; i != parts; ++i)
        pairs[i] = hn::Load(ds, codes + 2 * lanes * i);
      codes += 2 * panel_rows;
#pragma GCC unroll 16
      for (std::size_t t = 0; t != tile_rows; ++t) {
        std::int32_t pair;
        std::memcpy(&pair, x + 2 * t, sizeof pair);
        const auto both = hn::BitCast(ds, hn::Set(di, pair));
#pragma GCC unroll 16
        for (std::size_t i = 0; i != parts; ++i) {
          auto none = hn::Zero(di);
          dots[t][i] =
            hn::ReorderWidenMulAccumulate(di, pairs[i], both, dots[t][i], none);
        }
      }
      x += 2 * i16_rows;
    }
#pragma GCC unroll 16
    for (std::size_t t = 0; t != tile_rows; ++t) {
      const auto scale = hn::Set(d, x_scales[t]);
#pragma GCC unroll 16
      for (std::size_t i = 0; i != parts; ++i) {
        auto* const to = sums + t * panel_rows + i * lanes;
        const auto factors = hn::Mul(hn::Load(d, scales + i * lanes), scale);
        hn::Store(
          hn::MulAdd(hn::ConvertTo(d, dots[t][i]), factors, hn::Load(d, to)), d,
          to);
      }
    }
    x_scales += i16_rows;
    scales += panel_rows;
  }
}

void multiply_i16(const i16_task& task, const i16_activations& x, bool add) {
  for (std::size_t g = 0; g != x.groups; ++g)
    for (std::size_t t = 0; t != i16_rows; t += tile_rows)
      add_tile(task.sums + (g * i16_rows + t) * panel_rows, task, x.blocks,
               x.codes + g * x.blocks * block_cols * i16_rows + 2 * t,
               x.scales + g * x.blocks * i16_rows + t, add);
}

#else

bool can_multiply_i16() {
  return false;
}
void round_block_i16(std::int16_t*, float*, const float*) {
  // nop
}
void widen_i16(const i16_task&, weight_type, const std::byte*, std::size_t) {
  // nop
}
void multiply_i16(const i16_task&, const i16_activations&, bool) {
  // nop
}

#endif

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(can_multiply_i16);
HWY_EXPORT(round_block_i16);
HWY_EXPORT(widen_i16);
HWY_EXPORT(multiply_i16);

namespace {

/// Tokens of one pass: their sums for a panel are 32 KiB.
constexpr std::size_t pass_rows = 512;
/// The least number of multiply-adds in a task: some 10 us.
constexpr std::size_t task_products = 1 << 19;

std::size_t lines(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// Rounds block `block` of x_I, which is the row of token t.
void round_i16(const i16_activations& to, std::size_t t, std::size_t block,
               const float* x, std::size_t size) {
  float part[block_cols] = {};
  if (size != block_cols) {
    std::copy_n(x, size, part);
    x = part;
  }
  const auto index = t / i16_rows * to.blocks + block;
  std::int16_t codes[block_cols];
  HWY_DYNAMIC_DISPATCH(round_block_i16)
  (codes, to.scales + index * i16_rows + t % i16_rows, x);
  auto* next = to.codes + index * block_cols * i16_rows + 2 * (t % i16_rows);
  for (std::size_t k = 0; k != block_cols; k += 2, next += 2 * i16_rows)
    std::memcpy(next, codes + k, 2 * sizeof codes[0]);
}

} // namespace

bool has_i16_products() {
  return HWY_DYNAMIC_DISPATCH(can_multiply_i16)();
}

void panels_product_i16(thread_team& team, i16_scratch& scratch,
                        matrix_view<float> y_TO, matrix_view<const float> x_TI,
                        const packed_weight& w_OI) {
  const auto type = w_OI.type();
  SHOAL_KERNEL_ASSERT(type == weight_type::q8 || type == weight_type::q4);
  scratch.tasks.resize(
    std::max<std::size_t>(scratch.tasks.size(), team.size()));
  const auto chunks = chunks_of(x_TI.cols);
  const auto panels = panels_of(y_TO.cols);
  for (std::size_t t0 = 0; t0 < y_TO.rows; t0 += pass_rows) {
    const auto tokens = std::min(pass_rows, y_TO.rows - t0);
    const auto groups = (tokens + i16_rows - 1) / i16_rows;
    const auto rows = groups * i16_rows;
    const auto code_bytes =
      lines(rows * chunks * chunk_cols * sizeof(std::int16_t));
    auto* const memory =
      scratch.x.need(code_bytes + rows * 2 * chunks * sizeof(float));
    // The chunks from c to the next multiple of i16_chunks.
    const auto part = [&](std::size_t c) {
      return i16_activations{
        groups, 2 * std::min(i16_chunks, chunks - c),
        reinterpret_cast<std::int16_t*>(memory) + rows * chunk_cols * c,
        reinterpret_cast<float*>(memory + code_bytes) + rows * 2 * c};
    };
    team.run(groups, [&](std::size_t group, unsigned) {
      for (auto t = group * i16_rows; t != (group + 1) * i16_rows; ++t)
        for (std::size_t b = 0; b != 2 * chunks; ++b) {
          const auto c = b / 2 / i16_chunks * i16_chunks;
          const auto first = std::min(b * block_cols, x_TI.cols);
          const auto size = std::min(block_cols, x_TI.cols - first);
          round_i16(part(c), t, b - 2 * c,
                    t < tokens ? x_TI.row(t0 + t) + first : nullptr,
                    t < tokens ? size : 0);
        }
    });
    const auto each = std::max<std::size_t>(
      1, task_products / (rows * chunks * chunk_cols * panel_rows));
    team.run((panels + each - 1) / each, [&](std::size_t index, unsigned w) {
      auto* next = scratch.tasks[w].need(sizeof(std::int16_t) * i16_task_codes
                                         + sizeof(float) * i16_task_scales
                                         + rows * panel_rows * sizeof(float));
      i16_task task;
      task.codes = reinterpret_cast<std::int16_t*>(next);
      next += sizeof(std::int16_t) * i16_task_codes;
      task.scales = reinterpret_cast<float*>(next);
      next += sizeof(float) * i16_task_scales;
      task.sums = reinterpret_cast<float*>(next);
      const auto last = std::min(panels, (index + 1) * each);
      for (auto p = index * each; p != last; ++p) {
        const auto* panel = w_OI.data() + p * chunks * chunk_bytes(type);
        for (std::size_t c = 0; c < chunks; c += i16_chunks) {
          const auto count = std::min(i16_chunks, chunks - c);
          HWY_DYNAMIC_DISPATCH(widen_i16)
          (task, type, panel + c * chunk_bytes(type), count);
          HWY_DYNAMIC_DISPATCH(multiply_i16)(task, part(c), c != 0);
        }
        const auto o = p * panel_rows;
        const auto outputs = std::min(panel_rows, y_TO.cols - o);
        for (std::size_t t = 0; t != tokens; ++t)
          std::copy_n(task.sums + t * panel_rows, outputs,
                      y_TO.row(t0 + t) + o);
      }
    });
  }
}

} // namespace shoal::kernels::cpu
#endif
