// kernels/cpu/product/rows_float.cpp -- rows of f32 and bf16 times floats.
#include "kernels/cpu/product/rows.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/product/rows_float.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

using words = hn::RebindToUnsigned<tag>;

/// The sums of a tile, its columns of weights and one of activations: 29 of 32
/// registers, or 16 of 16.
constexpr std::size_t tile_tokens = hn::MaxLanes(tag()) == 16 ? 6 : 3;
static_assert(tile_tokens <= tile_tokens_max);

#if HWY_TARGET != HWY_SCALAR
/// Adds the blocks of four lanes by halves.
template <class D>
HWY_INLINE auto folded(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return folded(half,
                  hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}
#endif

/// Adds the lanes of each of four sums and writes the first `count` results.
HWY_INLINE void
finish_sums(const vec (&sums)[panel_outputs], float* to, std::size_t count) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t c = 0; c != count; ++c)
    to[c] = hn::GetLane(sums[c]);
#else
  const tag d;
  const hn::Repartition<double, tag> pairs;
  const auto both = [&](vec a, vec b) HWY_ATTR {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b),
                                      hn::InterleaveUpper(d, a, b)));
  };
  const auto low = both(sums[0], sums[1]);
  const auto high = both(sums[2], sums[3]);
  const auto four =
    hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, low, high)),
            hn::BitCast(d, hn::InterleaveUpper(pairs, low, high)));
  const hn::FixedTag<float, 4> d4;
  const auto results = folded(d, four);
  if (HWY_LIKELY(count == 4)) {
    hn::StoreU(results, d4, to);
    return;
  }
  HWY_ALIGN float part[4];
  hn::Store(results, d4, part);
  std::copy_n(part, count, to);
#endif
}

/// Reads a row of floats, a step at a time. One token reads `streams` rows at
/// the same time, with a software prefetch unless its distance is 0. Four rows
/// without one are as fast as any way from memory, and the fastest from a cache
/// (EPYC of family 26, 2026-11-26).
struct float_row {
  static constexpr std::size_t steps_together = 1;
  static constexpr std::size_t streams = 4, prefetch = 0;
  static const float* at(const packed_weight& w, std::size_t o) {
    return w.floats().row(o);
  }
  /// Steps from input i on, of which `left` exist.
  static HWY_INLINE void
  load_steps(const float* w, std::size_t left, vec (&to)[1]) {
    const tag d;
    to[0] = load(d, w, std::min(left, hn::Lanes(d)));
  }
};

/// Reads a row of bf16: even inputs, then odd ones. With AVX-512 one row after
/// the other is faster (two EPYC, 2026-11).
struct bf16_row {
  static constexpr std::size_t steps_together = 2;
#if HWY_TARGET <= HWY_AVX3
  static constexpr std::size_t streams = 1, prefetch = prefetch_bytes_wide;
#else
  static constexpr std::size_t streams = 4, prefetch = prefetch_bytes;
#endif
  static const bf16* at(const packed_weight& w, std::size_t o) {
    return w.halves().row(o);
  }
  static HWY_INLINE void
  load_steps(const bf16* w, std::size_t left, vec (&to)[2]) {
    const tag d;
    const words dw;
    hn::Vec<words> both;
    if (HWY_LIKELY(left >= 2 * hn::Lanes(d))) {
      both = hn::LoadU(dw, reinterpret_cast<const std::uint32_t*>(w));
    } else {
      HWY_ALIGN std::uint32_t part[hn::MaxLanes(tag())] = {};
      std::memcpy(part, w, left * sizeof(bf16));
      both = hn::Load(dw, part);
    }
    to[0] = hn::BitCast(d, hn::ShiftLeft<16>(both));
    to[1] = hn::BitCast(d, hn::And(both, hn::Set(dw, 0xffff0000u)));
  }
};

/// Adds the products of T tokens with Rows rows for the steps from input i on,
/// of which `left` exist. `x` is the first token's activation i.
template <class Row, std::size_t T, std::size_t Rows, class Value>
HWY_INLINE void
add_steps(vec (&sums)[T][Rows], const float* x, std::size_t stride,
          const Value* const (&w)[Rows], std::size_t i, std::size_t left) {
  const tag d;
  constexpr std::size_t together = Row::steps_together;
#pragma GCC unroll 4
  for (std::size_t r = 0; r != Rows; ++r) {
    vec steps[together];
    Row::load_steps(w[r] + i, left, steps);
#pragma GCC unroll 2
    for (std::size_t s = 0; s != together; ++s)
#pragma GCC unroll 6
      for (std::size_t t = 0; t != T; ++t)
        sums[t][r] =
          hn::MulAdd(steps[s], hn::LoadU(d, x + t * stride + s * hn::Lanes(d)),
                     sums[t][r]);
  }
}

/// Adds the products with whole rows.
template <class Row, std::size_t T, std::size_t Rows, class Value>
HWY_INLINE void add_rows(vec (&sums)[T][Rows], const row_activations& x,
                         const Value* const (&w)[Rows], std::size_t cols) {
  const std::size_t inputs = Row::steps_together * hn::Lanes(tag());
  const auto* from = reinterpret_cast<const float*>(x.data);
  const std::size_t stride = x.stride / sizeof(float);
  std::size_t i = 0;
  for (; i + inputs <= cols; i += inputs) {
#pragma GCC unroll 4
    for (std::size_t r = 0; r != Rows && Row::prefetch != 0; ++r)
      __builtin_prefetch(w[r] + i + Row::prefetch / sizeof(Value));
    add_steps<Row>(sums, from + i, stride, w, i, inputs);
  }
  if (i != cols)
    add_steps<Row>(sums, from + i, stride, w, i, cols - i);
}

template <class Row, std::size_t T>
void rows_in_place(matrix_view<float> y_TO, const row_activations& x,
                   const packed_weight& w_OI, std::size_t first,
                   std::size_t last) {
  constexpr std::size_t streams = T == 1 ? Row::streams : 1;
  using pointer = decltype(Row::at(w_OI, 0));
  for (auto o = first; o < last; o += panel_outputs) {
    const auto count = std::min(panel_outputs, last - o);
    vec sums[T][panel_outputs];
    for (auto& of_token : sums)
      for (auto& sum : of_token)
        sum = hn::Zero(tag());
    for (std::size_t c = 0; c < count; c += streams) {
      vec part[T][streams];
      pointer w[streams];
      for (std::size_t r = 0; r != streams; ++r) // the last again, if needed
        w[r] = Row::at(w_OI, o + std::min(c + r, count - 1));
      for (auto& of_token : part)
        for (auto& sum : of_token)
          sum = hn::Zero(tag());
      add_rows<Row, T, streams>(part, x, w, w_OI.cols());
      for (std::size_t t = 0; t != T; ++t)
        for (std::size_t r = 0; r != streams; ++r)
          sums[t][c + r] = part[t][r];
    }
    for (std::size_t t = 0; t != T; ++t)
      finish_sums(sums[t], y_TO.row(t) + o, count);
  }
}

template <class Row>
void in_place(matrix_view<float> y_TO, const row_activations& x,
              const packed_weight& w_OI, std::size_t first, std::size_t last) {
  switch (x.tokens) {
  case 1:
    return rows_in_place<Row, 1>(y_TO, x, w_OI, first, last);
  case 2:
    return rows_in_place<Row, 2>(y_TO, x, w_OI, first, last);
  case 3:
    return rows_in_place<Row, 3>(y_TO, x, w_OI, first, last);
  case 4:
    return rows_in_place<Row, 4>(y_TO, x, w_OI, first, last);
  case 5:
    return rows_in_place<Row, 5>(y_TO, x, w_OI, first, last);
  case 6:
    return rows_in_place<Row, 6>(y_TO, x, w_OI, first, last);
  default:
    return;
  }
}

/// The panel holds four rows step by step: [steps][panel_outputs][lanes].
template <class Row>
void pack_panel(const packed_weight& w_OI, std::size_t first, std::size_t steps,
                std::byte* to) {
  constexpr std::size_t together = Row::steps_together;
  const tag d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t cols = w_OI.cols();
  const std::size_t count = std::min(panel_outputs, w_OI.rows() - first);
  decltype(Row::at(w_OI, 0)) w[panel_outputs];
  for (std::size_t c = 0; c != count; ++c)
    w[c] = Row::at(w_OI, first + c);
  auto* next = reinterpret_cast<float*>(to);
  for (std::size_t i = 0; i < steps * lanes; i += together * lanes) {
    for (std::size_t c = 0; c != panel_outputs; ++c) {
      vec loaded[together];
      if (c < count) {
        __builtin_prefetch(w[c] + i + 512 / sizeof(*w[c]));
        Row::load_steps(w[c] + i, cols - i, loaded);
      } else {
        for (auto& v : loaded)
          v = hn::Zero(d);
      }
      for (std::size_t s = 0; s != together; ++s)
        hn::StoreU(loaded[s], d, next + (s * panel_outputs + c) * lanes);
    }
    next += together * panel_outputs * lanes;
  }
}

/// `steps` steps of a panel, from `w` on, of `T` tokens, from `x` on. Their
/// sums are in `memory`, unless they begin.
template <std::size_t T>
HWY_INLINE void
add_tile(vec (&sums)[T][panel_outputs], const float* HWY_RESTRICT x,
         std::size_t stride, const float* HWY_RESTRICT w, std::size_t steps) {
  const tag d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t s = 0; s != steps; ++s) {
    vec columns[panel_outputs];
#pragma GCC unroll 4
    for (std::size_t c = 0; c != panel_outputs; ++c)
      columns[c] = hn::LoadU(d, w + c * lanes);
#pragma GCC unroll 6
    for (std::size_t t = 0; t != T; ++t) {
      const vec row = hn::LoadU(d, x + t * stride);
#pragma GCC unroll 4
      for (std::size_t c = 0; c != panel_outputs; ++c)
        sums[t][c] = hn::MulAdd(columns[c], row, sums[t][c]);
    }
    w += panel_outputs * lanes;
    x += lanes;
  }
}

/// Steps whose activations stay in the first-level cache: 24 KiB, or 12.
constexpr std::size_t block_steps = 1024 / hn::MaxLanes(tag());

template <std::size_t T>
void multiply_tokens(matrix_view<float> y_TO, const row_activations& x,
                     const row_panels& w, float* memory) {
  const tag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* from = reinterpret_cast<const float*>(x.data);
  const std::size_t stride = x.stride / sizeof(float);
  for (std::size_t first = 0; first < w.steps; first += block_steps) {
    const std::size_t steps = std::min(block_steps, w.steps - first);
    const bool ends = first + steps == w.steps;
    float* kept = memory;
    for (std::size_t o = 0; o < y_TO.cols; o += panel_outputs) {
      const auto* panel =
        reinterpret_cast<const float*>(w.data + o / panel_outputs * w.bytes)
        + first * panel_outputs * lanes;
      vec sums[T][panel_outputs];
#pragma GCC unroll 6
      for (std::size_t t = 0; t != T; ++t)
#pragma GCC unroll 4
        for (std::size_t c = 0; c != panel_outputs; ++c)
          sums[t][c] = first == 0
                         ? hn::Zero(d)
                         : hn::LoadU(d, kept + (t * panel_outputs + c) * lanes);
      add_tile<T>(sums, from + first * lanes, stride, panel, steps);
      if (ends) {
        const std::size_t count = std::min(panel_outputs, y_TO.cols - o);
#pragma GCC unroll 6
        for (std::size_t t = 0; t != T; ++t)
          finish_sums(sums[t], y_TO.row(t) + o, count);
        kept += T * panel_outputs * lanes;
        continue;
      }
#pragma GCC unroll 6
      for (std::size_t t = 0; t != T; ++t)
#pragma GCC unroll 4
        for (std::size_t c = 0; c != panel_outputs; ++c)
          hn::StoreU(sums[t][c], d, kept + (t * panel_outputs + c) * lanes);
      kept += T * panel_outputs * lanes;
    }
  }
}

void multiply(matrix_view<float> y_TO, const row_activations& x,
              const row_panels& w, std::byte* sums) {
  auto* const memory = reinterpret_cast<float*>(sums);
  switch (x.tokens) {
  case 1:
    return multiply_tokens<1>(y_TO, x, w, memory);
  case 2:
    return multiply_tokens<2>(y_TO, x, w, memory);
  case 3:
    return multiply_tokens<3>(y_TO, x, w, memory);
  case 4:
    return multiply_tokens<std::min(tile_tokens, std::size_t{4})>(y_TO, x, w,
                                                                  memory);
  case 5:
    return multiply_tokens<std::min(tile_tokens, std::size_t{5})>(y_TO, x, w,
                                                                  memory);
  case 6:
    return multiply_tokens<tile_tokens>(y_TO, x, w, memory);
  default:
    return;
  }
}

void pack_floats(const float* x, std::size_t cols, std::size_t steps,
                 std::byte* to) {
  auto* const floats = reinterpret_cast<float*>(to);
  std::copy_n(x, cols, floats);
  std::fill(floats + cols, floats + steps * hn::Lanes(tag()), 0.0f);
}

/// Even inputs of two registers, then odd ones.
void pack_pairs(const float* x, std::size_t cols, std::size_t steps,
                std::byte* to) {
  const std::size_t lanes = hn::Lanes(tag());
  auto* floats = reinterpret_cast<float*>(to);
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const tag d;
  for (; i + 2 * lanes <= cols; i += 2 * lanes, floats += 2 * lanes) {
    const auto low = hn::LoadU(d, x + i);
    const auto high = hn::LoadU(d, x + i + lanes);
    hn::StoreU(hn::ConcatEven(d, high, low), d, floats);
    hn::StoreU(hn::ConcatOdd(d, high, low), d, floats + lanes);
  }
#endif
  for (; i != steps * lanes; i += 2 * lanes, floats += 2 * lanes)
    for (std::size_t k = 0; k != 2 * lanes; ++k)
      floats[k % 2 * lanes + k / 2] = i + k < cols ? x[i + k] : 0.0f;
}

void engine_f32(row_engine* e) {
  const std::size_t lanes = hn::Lanes(tag());
  *e = {tile_tokens,
        lanes,
        lanes * sizeof(float),
        1,
        tile_tokens * panel_outputs * lanes * sizeof(float),
        pack_floats,
        in_place<float_row>,
        nullptr,
        pack_panel<float_row>,
        multiply};
}

void engine_bf16(row_engine* e) {
  engine_f32(e);
  e->steps_together = 2;
  e->pack_x = pack_pairs;
  e->in_place = in_place<bf16_row>;
  e->pack_panel = pack_panel<bf16_row>;
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(engine_f32);
HWY_EXPORT(engine_bf16);

row_engine float_engine(weight_type type) {
  row_engine e;
  if (type == weight_type::f32)
    HWY_DYNAMIC_DISPATCH(engine_f32)(&e);
  else
    HWY_DYNAMIC_DISPATCH(engine_bf16)(&e);
  return e;
}

} // namespace shoal::kernels::cpu
#endif
