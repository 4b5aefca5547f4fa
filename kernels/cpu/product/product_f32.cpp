// kernels/cpu/product/product_f32.cpp -- panels of floats and their products.
//
// A panel of the left operand has one value of each of its rows for each k; a
// panel of the right operand has two registers. Missing rows and columns are 0.
#include "kernels/cpu/product/product.hpp"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/product/product_f32.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

/// Rows of a panel. With two registers of columns there are as many sums as
/// registers, less two for columns and one for a row: 32 registers of 512 bits,
/// 16 of fewer bits.
constexpr std::size_t panel_rows() {
  return hn::MaxLanes(tag()) == 16 ? 14 : 6;
}

/// Transposes 4 x 4 values: to[j * to_stride + i] = from[i * from_stride + j].
HWY_INLINE void turn_4(const float* from, std::size_t from_stride, float* to,
                       std::size_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i != 4; ++i)
    for (std::size_t j = 0; j != 4; ++j)
      to[j * to_stride + i] = from[i * from_stride + j];
#else
  const hn::FixedTag<float, 4> d;
  const auto a = hn::LoadU(d, from);
  const auto b = hn::LoadU(d, from + from_stride);
  const auto c = hn::LoadU(d, from + 2 * from_stride);
  const auto e = hn::LoadU(d, from + 3 * from_stride);
  const auto ab = hn::InterleaveLower(d, a, b);
  const auto ce = hn::InterleaveLower(d, c, e);
  const auto ab_up = hn::InterleaveUpper(d, a, b);
  const auto ce_up = hn::InterleaveUpper(d, c, e);
  hn::StoreU(hn::ConcatLowerLower(d, ce, ab), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, ce, ab), d, to + to_stride);
  hn::StoreU(hn::ConcatLowerLower(d, ce_up, ab_up), d, to + 2 * to_stride);
  hn::StoreU(hn::ConcatUpperUpper(d, ce_up, ab_up), d, to + 3 * to_stride);
#endif
}

/// Packs rows that are each contiguous along k: to[k * Width + i].
template <std::size_t Width>
void pack_turned(const float* from, std::size_t stride, std::size_t count,
                 std::size_t depth, float* to) {
  std::size_t k = 0;
  if (Width >= 4 && count == Width)
    for (; k + 4 <= depth; k += 4) {
      std::size_t i = 0;
      for (; i + 4 <= Width; i += 4)
        turn_4(from + i * stride + k, stride, to + k * Width + i, Width);
      if (i != Width) // the last four again, partly
        turn_4(from + (Width - 4) * stride + k, stride,
               to + k * Width + Width - 4, Width);
    }
  for (; k != depth; ++k)
    for (std::size_t i = 0; i != Width; ++i)
      to[k * Width + i] = i < count ? from[i * stride + k] : 0;
}

/// Packs one row of an operand that is contiguous across panels.
template <std::size_t Width>
HWY_INLINE void
pack_row(const float* from, std::size_t count, float* to, std::size_t step) {
  std::size_t i = 0;
  for (; i + Width <= count; i += Width, to += step)
    std::memcpy(to, from + i, Width * sizeof(float));
  if (i != count) {
    std::copy_n(from + i, count - i, to);
    std::fill_n(to + (count - i), Width - (count - i), 0.0f);
  }
}

/// Packs rows that are each contiguous along k.
template <std::size_t Width>
void pack_rows(const panel_source& s, float* to) {
  const std::size_t stride = s.from.stride;
  const std::size_t step = s.panel_bytes / sizeof(float);
  const float* const from = s.from.data + s.first * stride + s.first_k;
  for (std::size_t i = 0; i < s.count; i += Width)
    pack_turned<Width>(from + i * stride, stride, std::min(Width, s.count - i),
                       s.depth, to + i / Width * step);
}

template <std::size_t Width>
void pack(const panel_source& s, std::byte* to, bool along_k) {
  auto* const values = reinterpret_cast<float*>(to);
  if (along_k)
    return pack_rows<Width>(s, values);
  const std::size_t stride = s.from.stride;
  const std::size_t step = s.panel_bytes / sizeof(float);
  const float* const from = s.from.data + s.first_k * stride + s.first;
  for (std::size_t k = 0; k != s.depth; ++k)
    pack_row<Width>(from + k * stride, s.count, values + k * Width, step);
}

void pack_left_f32(const panel_source& s, std::byte* to) {
  pack<panel_rows()>(s, to, s.from.order == transposed::no);
}

void pack_right_f32(const panel_source& s, std::byte* to) {
  pack<2 * hn::MaxLanes(tag())>(s, to, s.from.order == transposed::yes);
}

/// Writes a tile, whose rows are `tile_stride` values apart, to c or adds it,
/// or adds it to `start` for each row if that is not null.
void finish_tile_rows(const float* tile, std::size_t tile_stride,
                      matrix_view<float> c, bool add, const float* start) {
  const tag d;
  for (std::size_t r = 0; r != c.rows; ++r) {
    const float* from = tile + r * tile_stride;
    float* const to = c.row(r);
    const float* const first = add ? to : start;
    each_vector(c.cols, [=](std::size_t i, std::size_t n) HWY_ATTR {
      auto v = load(d, from + i, n);
      if (first != nullptr)
        v = hn::Add(load(d, first + i, n), v);
      store(v, d, to + i, n);
    });
  }
}

/// One panel of rows times one of columns.
HWY_INLINE void
multiply_panels(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                std::size_t depth, float* c, std::size_t stride, bool add,
                const float* start) {
  constexpr std::size_t rows = panel_rows();
  const tag d;
  const std::size_t lanes = hn::Lanes(d);
  vec low[rows], high[rows];
#pragma GCC unroll 16
  for (std::size_t r = 0; r != rows; ++r)
    low[r] = high[r] = hn::Zero(d);
#pragma GCC unroll 16
  for (std::size_t r = 0; r != rows; ++r) { // prefetch c, needed after the sums
    hwy::Prefetch(c + r * stride);
    hwy::Prefetch(c + r * stride + lanes);
  }
  for (std::size_t k = 0; k != depth; ++k) {
    const vec b0 = hn::LoadU(d, b);
    const vec b1 = hn::LoadU(d, b + lanes);
#pragma GCC unroll 16
    for (std::size_t r = 0; r != rows; ++r) {
      const vec x = hn::Set(d, a[r]);
      low[r] = hn::MulAdd(x, b0, low[r]);
      high[r] = hn::MulAdd(x, b1, high[r]);
    }
    a += rows;
    b += 2 * lanes;
  }
  const vec s0 = start != nullptr ? hn::LoadU(d, start) : hn::Zero(d);
  const vec s1 = start != nullptr ? hn::LoadU(d, start + lanes) : hn::Zero(d);
#pragma GCC unroll 16
  for (std::size_t r = 0; r != rows; ++r) {
    float* const to = c + r * stride;
    if (add) {
      low[r] = hn::Add(hn::LoadU(d, to), low[r]);
      high[r] = hn::Add(hn::LoadU(d, to + lanes), high[r]);
    } else if (start != nullptr) {
      low[r] = hn::Add(s0, low[r]);
      high[r] = hn::Add(s1, high[r]);
    }
    hn::StoreU(low[r], d, to);
    hn::StoreU(high[r], d, to + lanes);
  }
}

void multiply_f32(const panel_product& p) {
  constexpr std::size_t rows = panel_rows();
  const std::size_t cols = 2 * hn::Lanes(tag());
  HWY_ALIGN float tile[rows * 2 * hn::MaxLanes(tag())];
  for (std::size_t r = 0; r < p.c.rows; r += rows) {
    const auto* a =
      reinterpret_cast<const float*>(p.left + r / rows * p.left_bytes);
    const bool all_rows = r + rows <= p.c.rows;
    for (std::size_t n = 0; n < p.c.cols; n += cols) {
      const auto* b =
        reinterpret_cast<const float*>(p.right + n / cols * p.right_bytes);
      const float* const start = p.start == nullptr ? nullptr : p.start + n;
      if (all_rows && n + cols <= p.c.cols) {
        multiply_panels(a, b, p.depth, p.c.row(r) + n, p.c.stride, p.add,
                        start);
        continue;
      }
      multiply_panels(a, b, p.depth, tile, cols, false, nullptr);
      finish_tile_rows(tile, cols,
                       p.c.slice_rows(r, std::min(p.c.rows, r + rows))
                         .slice_cols(n, std::min(p.c.cols, n + cols)),
                       p.add, start);
    }
  }
}

/// Rows and columns of a panel.
void panel_sizes(std::size_t* rows, std::size_t* cols) {
  *rows = panel_rows();
  *cols = 2 * hn::Lanes(tag());
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(pack_left_f32);
HWY_EXPORT(pack_right_f32);
HWY_EXPORT(multiply_f32);
HWY_EXPORT(panel_sizes);

namespace {

/// The panel of rows and two of columns pass through the first-level cache.
constexpr std::size_t f32_depth_max = 384;
/// Columns of a tile: 384 KiB of the second-level cache.
constexpr std::size_t f32_tile_cols = 256;

std::size_t f32_panel_bytes(std::size_t size, std::size_t depth) {
  return (size * depth * sizeof(float) + 63) / 64 * 64;
}

} // namespace

product_engine f32_engine() {
  product_engine e;
  HWY_DYNAMIC_DISPATCH(panel_sizes)(&e.left_rows, &e.right_cols);
  e.depth_max = f32_depth_max;
  e.tile_cols = f32_tile_cols;
  e.panel_bytes = f32_panel_bytes;
  e.pack_left = HWY_DYNAMIC_DISPATCH(pack_left_f32);
  e.pack_right = HWY_DYNAMIC_DISPATCH(pack_right_f32);
  e.multiply = HWY_DYNAMIC_DISPATCH(multiply_f32);
  return e;
}

} // namespace shoal::kernels::cpu
#endif
