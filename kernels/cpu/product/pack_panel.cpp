// kernels/cpu/product/pack_panel.cpp -- q8 and q4 from floats, for every target.
#include "kernels/cpu/product/pack_panel.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/product/pack_panel.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

using ints = hn::RebindToSigned<tag>;
using ivec = hn::Vec<ints>;

HWY_INLINE ivec bits_of(vec x) {
  return hn::BitCast(ints(), x);
}

HWY_INLINE vec float_of(ivec bits) {
  return hn::BitCast(tag(), bits);
}

/// The upper halves, as bits; NaN becomes the usual NaN.
HWY_INLINE ivec bf16_bits(vec x, ivec round_by) {
  const ints di;
  const auto rounded =
    hn::And(hn::Add(bits_of(x), round_by), hn::Set(di, -65536));
  return bits_of(hn::IfThenElse(hn::Eq(x, x), float_of(rounded),
                                float_of(hn::Set(di, 0x7fc00000))));
}

HWY_INLINE ivec bf16_nearest(vec x) {
  const ints di;
  const auto odd = hn::And(hn::ShiftRight<16>(bits_of(x)), hn::Set(di, 1));
  return bf16_bits(x, hn::Add(odd, hn::Set(di, 0x7fff)));
}

/// x where its magnitude is at least scale_min, else 0.
HWY_INLINE vec large_enough(vec x) {
  return hn::IfThenElseZero(hn::Ge(hn::Abs(x), hn::Set(tag(), scale_min)), x);
}

/// 1 / scale, and 0 for scales that are stored as 0 or NaN.
HWY_INLINE vec inverse(vec scale) {
  const tag d;
  return hn::IfThenElseZero(hn::Ge(hn::Abs(scale), hn::Set(d, scale_min)),
                            hn::Div(hn::Set(d, 1.0f), scale));
}

/// The values of input k for a block of outputs, at x + k * panel_rows.
HWY_INLINE vec input(const float* x, std::size_t k) {
  return hn::Load(tag(), x + k * panel_rows);
}

/// NaN in the lanes in which a value of the block is not finite, otherwise 0.
HWY_INLINE vec poison(const float* x) {
  auto sum = hn::Zero(tag());
  for (std::size_t k = 0; k != block_cols; ++k)
    sum = hn::Add(sum, hn::Mul(input(x, k), hn::Zero(tag())));
  return sum;
}

HWY_INLINE ivec scale_q8(const float* x) {
  const tag d;
  auto largest = hn::Zero(d);
  for (std::size_t k = 0; k != block_cols; ++k) {
    const auto size = hn::Abs(input(x, k));
    largest = hn::IfThenElse(hn::Gt(size, largest), size, largest);
  }
  const auto scale = large_enough(hn::Div(largest, hn::Set(d, 127.0f)));
  // Rounded up, so that no code exceeds 127.
  return bf16_bits(hn::Add(scale, poison(x)), hn::Set(ints(), 0xffff));
}

HWY_INLINE ivec code_q8(vec x, vec inverse_scale) {
  const tag d;
  auto q = hn::Mul(x, inverse_scale);
  q = hn::IfThenElseZero(hn::Eq(q, q), q); // values that are not finite
  q = hn::Min(hn::Max(q, hn::Set(d, -127.0f)), hn::Set(d, 127.0f));
  return hn::NearestInt(q);
}

constexpr float border_q4(int j) {
  return static_cast<float>(q4_codes[j] + q4_codes[j + 1]) * 0.5f;
}

/// Finds the level nearest to a value: the count of the 15 borders below it.
class q4_levels {
public:
  HWY_INLINE q4_levels() {
    if constexpr (!by_halves)
      return;
    HWY_ALIGN float tables[3][lanes_max] = {};
    for (int i = 0; i != lanes_max; ++i) {
      const int even = i % 8 * 2;
      tables[0][i] = border_q4(i % 4 * 4 + 1);
      tables[1][i] = border_q4(even);
      tables[2][i] = static_cast<float>(q4_codes[even + 1]) - tables[1][i];
    }
    third_ = hn::Load(tag(), tables[0]);
    fourth_ = hn::Load(tag(), tables[1]);
    to_code_ = hn::Load(tag(), tables[2]);
  }

  HWY_INLINE ivec level(vec x) const {
    if constexpr (by_halves) {
      const auto n = half_level(x);
      return doubled(n, hn::Gt(x, of(fourth_, n)));
    }
    auto level = hn::Zero(ints());
    for (int j = 0; j != 15; ++j)
      level =
        hn::Sub(level, mask_bits(hn::Gt(x, hn::Set(tag(), border_q4(j)))));
    return level;
  }

  /// The code of the level.
  HWY_INLINE vec value(vec x) const {
    const tag d;
    if constexpr (by_halves) {
      // A code and its neighbour have the same distance to their border.
      const auto n = half_level(x);
      const auto border = of(fourth_, n);
      const auto below = hn::IfThenElseZero(hn::Le(x, border), hn::SignBit(d));
      return hn::Add(border, hn::Xor(of(to_code_, n), below));
    }
    auto value = hn::Set(d, q4_codes[0]);
    for (int j = 0; j != 15; ++j) {
      const auto up = hn::Set(d, static_cast<float>(q4_codes[j + 1])
                                   - static_cast<float>(q4_codes[j]));
      value = hn::Add(
        value, hn::IfThenElseZero(hn::Gt(x, hn::Set(d, border_q4(j))), up));
    }
    return value;
  }

private:
  static constexpr int lanes_max = hn::MaxLanes(tag());
  /// Whether a register holds the eight borders of the fourth comparison.
  static constexpr bool by_halves = lanes_max >= 8;

  /// -1 where true.
  static HWY_INLINE ivec mask_bits(hn::Mask<tag> m) {
    return bits_of(hn::VecFromMask(tag(), m));
  }
  static HWY_INLINE ivec doubled(ivec n, hn::Mask<tag> above) {
    return hn::Sub(hn::Add(n, n), mask_bits(above));
  }
  static HWY_INLINE vec of(vec table, ivec index) {
    return hn::TableLookupLanes(table, hn::IndicesFromVec(tag(), index));
  }

  /// Half the level, by three comparisons.
  HWY_INLINE ivec half_level(vec x) const {
    const tag d;
    const auto upper = hn::Gt(x, hn::Set(d, border_q4(7)));
    const auto border = hn::IfThenElse(upper, hn::Set(d, border_q4(11)),
                                       hn::Set(d, border_q4(3)));
    const auto n =
      doubled(hn::Sub(hn::Zero(ints()), mask_bits(upper)), hn::Gt(x, border));
    return doubled(n, hn::Gt(x, of(third_, n)));
  }

  vec third_, fourth_; ///< borders, by the level's bits before
  vec to_code_;        ///< from the fourth to the code above it
};

HWY_INLINE ivec scale_q4(const q4_levels& levels_of, const float* x) {
  const tag d;
  auto largest = hn::Zero(d);
  auto squares = hn::Zero(d);
  for (std::size_t k = 0; k != block_cols; ++k) {
    const auto v = input(x, k);
    largest = hn::IfThenElse(hn::Gt(hn::Abs(v), hn::Abs(largest)), v, largest);
    squares = hn::Add(squares, hn::Mul(v, v));
  }
  auto best = hn::Zero(d);
  auto best_error = squares; // of scale 0
  for (const float factor : q4_factors) {
    const auto inverse_scale =
      inverse(hn::Mul(largest, hn::Set(d, factor / 127.0f)));
    auto products = hn::Zero(d);
    auto levels = hn::Zero(d); // squares; whole numbers, so exact
    for (std::size_t k = 0; k != block_cols; ++k) {
      const auto v = input(x, k);
      const auto level = levels_of.value(hn::Mul(v, inverse_scale));
      products = hn::Add(products, hn::Mul(v, level));
      levels = hn::MulAdd(level, level, levels);
    }
    const auto scale = float_of(bf16_nearest(hn::Div(products, levels)));
    const auto error = hn::Add(
      hn::Sub(squares, hn::Mul(hn::Set(d, 2.0f), hn::Mul(scale, products))),
      hn::Mul(hn::Mul(scale, scale), levels));
    const auto better = hn::Lt(error, best_error);
    best = hn::IfThenElse(better, scale, best);
    best_error = hn::IfThenElse(better, error, best_error);
  }
  return bf16_nearest(hn::Add(large_enough(best), poison(x)));
}

/// Stores the scales of the blocks 0 and 1.
HWY_INLINE void put_scales(ivec low, ivec high, std::byte* to) {
  const hn::RebindToUnsigned<tag> du;
  const auto first = hn::ShiftRight<16>(hn::BitCast(du, low));
  hn::StoreU(hn::Or(first, hn::BitCast(du, high)), du,
             reinterpret_cast<std::uint32_t*>(to));
}

/// Some outputs of a chunk, from the values x[input][output].
HWY_INLINE void chunk_q8(const float* x, std::byte* to) {
  const ints di;
  const ivec scales[2] = {scale_q8(x), scale_q8(x + block_cols * panel_rows)};
  put_scales(scales[0], scales[1], to);
  for (std::size_t block = 0; block != 2; ++block) {
    const auto factor = inverse(float_of(scales[block]));
    for (std::size_t g = 0; g != 8; ++g) {
      const auto code = [&](std::size_t j) HWY_ATTR {
        return hn::Add(
          code_q8(input(x, block * block_cols + 4 * g + j), factor),
          hn::Set(di, code_offset));
      };
      const auto group =
        hn::Or(hn::Or(code(0), hn::ShiftLeft<8>(code(1))),
               hn::Or(hn::ShiftLeft<16>(code(2)), hn::ShiftLeft<24>(code(3))));
      hn::StoreU(group, di,
                 reinterpret_cast<std::int32_t*>(to + scale_bytes
                                                 + 64 * (8 * block + g)));
    }
  }
}

HWY_INLINE void
chunk_q4(const q4_levels& levels, const float* x, std::byte* to) {
  const ints di;
  const ivec scales[2] = {scale_q4(levels, x),
                          scale_q4(levels, x + block_cols * panel_rows)};
  put_scales(scales[0], scales[1], to);
  const vec factors[2] = {inverse(float_of(scales[0])),
                          inverse(float_of(scales[1]))};
  for (std::size_t g = 0; g != 8; ++g) {
    auto group = hn::Zero(di);
    for (std::size_t j = 4; j-- != 0;)
      for (std::size_t block = 2; block-- != 0;) {
        const auto v = input(x, block * block_cols + 4 * g + j);
        group = hn::Or(hn::ShiftLeft<4>(group),
                       levels.level(hn::Mul(v, factors[block])));
      }
    hn::StoreU(group, di,
               reinterpret_cast<std::int32_t*>(to + scale_bytes + 64 * g));
  }
}

void pack_chunks(weight_type type, const float* rows, std::size_t stride,
                 std::byte* to) {
  const q4_levels levels;
  const auto lanes = hn::Lanes(tag());
  HWY_ALIGN float x[chunk_cols][panel_rows];
  for (std::size_t c = 0; c != stride / chunk_cols; ++c) {
    for (std::size_t n = 0; n != panel_rows; ++n)
      for (std::size_t k = 0; k != chunk_cols; ++k)
        x[k][n] = rows[n * stride + c * chunk_cols + k];
    auto* const chunk = to + c * chunk_bytes(type);
    for (std::size_t n = 0; n != panel_rows; n += lanes)
      if (type == weight_type::q8)
        chunk_q8(x[0] + n, chunk + 4 * n);
      else
        chunk_q4(levels, x[0] + n, chunk + 4 * n);
  }
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(pack_chunks);

void pack_panel(weight_type type, std::size_t panel, std::size_t rows,
                std::size_t cols, const row_reader& read,
                std::vector<float>& scratch, std::byte* to) {
  const auto stride = chunks_of(cols) * chunk_cols;
  if (scratch.size() < panel_rows * stride)
    scratch.resize(panel_rows * stride);
  for (std::size_t n = 0; n != panel_rows; ++n) {
    auto* const row = scratch.data() + n * stride;
    const bool real = panel * panel_rows + n < rows;
    if (real)
      read(panel * panel_rows + n, row);
    std::fill(row + (real ? cols : 0), row + stride, 0.0f);
  }
  HWY_DYNAMIC_DISPATCH(pack_chunks)(type, scratch.data(), stride, to);
}

} // namespace shoal::kernels::cpu
#endif
