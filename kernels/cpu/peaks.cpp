// kernels/cpu/peaks.cpp -- loops that do one thing only.
#include "kernels/peaks.hpp"

#include "kernels/cpu/isa/features.hpp"
#include "kernels/cpu/product/panels.hpp"
#include "kernels/inference/packed_layout.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <chrono>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/peaks.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

/// @returns operations done; `sink` keeps the compiler from removing them
double add_products(std::size_t rounds, float* sink) {
  const tag d;
  const auto factor = hn::Set(d, 0.999f);
  const auto more = hn::Set(d, 0.001f);
  // Twelve sums more than hide the latency of 4 cycles on two units. They begin
  // with different values; otherwise the compiler would compute one for all.
  const auto all = [=](float x) HWY_ATTR { return hn::Set(d, x); };
  auto s0 = all(0), s1 = all(1), s2 = all(2), s3 = all(3), s4 = all(4),
       s5 = all(5);
  auto s6 = all(6), s7 = all(7), s8 = all(8), s9 = all(9), s10 = all(10);
  auto s11 = all(11);
  for (std::size_t i = 0; i != rounds; ++i) {
    s0 = hn::MulAdd(s0, factor, more);
    s1 = hn::MulAdd(s1, factor, more);
    s2 = hn::MulAdd(s2, factor, more);
    s3 = hn::MulAdd(s3, factor, more);
    s4 = hn::MulAdd(s4, factor, more);
    s5 = hn::MulAdd(s5, factor, more);
    s6 = hn::MulAdd(s6, factor, more);
    s7 = hn::MulAdd(s7, factor, more);
    s8 = hn::MulAdd(s8, factor, more);
    s9 = hn::MulAdd(s9, factor, more);
    s10 = hn::MulAdd(s10, factor, more);
    s11 = hn::MulAdd(s11, factor, more);
  }
  auto sum = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)),
                     hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
  sum = hn::Add(sum, hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)));
  *sink = sum_of(sum);
  return static_cast<double>(rounds * 12 * 2 * hn::Lanes(d));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3

double add_pairs_i16(std::size_t rounds, float* sink) {
  const hn::RebindToSigned<tag> d;
  const hn::Repartition<std::int16_t, tag> d16;
  const auto factor = hn::Set(d16, 3);
  // A sum is a factor of its next product: otherwise the compiler would move
  // the product, which is always the same, out of the loop.
  const auto step = [=](auto s) HWY_ATTR {
    auto none = hn::Zero(d);
    return hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, s), factor, s,
                                         none);
  };
  const auto all = [=](int x) HWY_ATTR { return hn::Set(d, x); };
  auto s0 = all(0), s1 = all(1), s2 = all(2), s3 = all(3), s4 = all(4),
       s5 = all(5);
  auto s6 = all(6), s7 = all(7), s8 = all(8), s9 = all(9), s10 = all(10);
  auto s11 = all(11);
  for (std::size_t i = 0; i != rounds; ++i) {
    s0 = step(s0);
    s1 = step(s1);
    s2 = step(s2);
    s3 = step(s3);
    s4 = step(s4);
    s5 = step(s5);
    s6 = step(s6);
    s7 = step(s7);
    s8 = step(s8);
    s9 = step(s9);
    s10 = step(s10);
    s11 = step(s11);
  }
  auto sum = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)),
                     hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
  sum = hn::Add(sum, hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)));
  *sink = static_cast<float>(hn::GetLane(hn::SumOfLanes(d, sum)));
  return static_cast<double>(rounds * 12 * 2 * hn::Lanes(d16));
}

#else

double add_pairs_i16(std::size_t, float*) {
  return 0;
}

#endif

void read_floats(const float* from, std::size_t count, float* sink) {
  const tag d;
  const auto lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (std::size_t i = 0; i != count; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::Load(d, from + i));
    s1 = hn::Add(s1, hn::Load(d, from + i + lanes));
    s2 = hn::Add(s2, hn::Load(d, from + i + 2 * lanes));
    s3 = hn::Add(s3, hn::Load(d, from + i + 3 * lanes));
  }
  *sink = sum_of(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels {

namespace cpu {

HWY_EXPORT(add_products);
HWY_EXPORT(add_pairs_i16);
HWY_EXPORT(read_floats);

namespace {

#if defined(__x86_64__)

/// Twelve sums in registers: the compiler keeps the operands of an inline
/// assembler instruction there.
#define SHOAL_TWELVE(DO)                                                       \
  DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define SHOAL_BEGIN(N) __m512 s##N = _mm512_set1_ps(N);
#define SHOAL_BEGIN_INT(N) __m512i s##N = _mm512_set1_epi32(N);
#define SHOAL_PAIRS(N)                                                         \
  asm volatile("vdpbf16ps %1, %1, %0" : "+v"(s##N) : "v"(one));
#define SHOAL_BYTES(N)                                                         \
  asm volatile("vpdpbusd %1, %1, %0" : "+v"(s##N) : "v"(one));

__attribute__((target("avx512f,avx512bf16"))) double
pair_products(std::size_t rounds) {
  const __m512i one = _mm512_set1_epi16(0x3f80);
  SHOAL_TWELVE(SHOAL_BEGIN)
  for (std::size_t i = 0; i != rounds; ++i) {
    SHOAL_TWELVE(SHOAL_PAIRS)
  }
  return static_cast<double>(rounds * 12 * 64);
}

__attribute__((target("avx512f,avx512vnni"))) double
byte_products(std::size_t rounds) {
  const __m512i one = _mm512_set1_epi8(1);
  SHOAL_TWELVE(SHOAL_BEGIN_INT)
  for (std::size_t i = 0; i != rounds; ++i) {
    SHOAL_TWELVE(SHOAL_BYTES)
  }
  return static_cast<double>(rounds * 12 * 128);
}

__attribute__((target("amx-tile,amx-bf16"))) double
tile_products(std::size_t rounds) {
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } static constexpr all;
  // Numbers of all kinds: with zeros the units take less power, and some
  // processors run faster than they ever do on a model.
  alignas(64) std::uint16_t values[4][512];
  std::uint32_t state = 1;
  for (auto& piece : values)
    for (auto& value : piece) {
      state = state * 1664525 + 1013904223;
      value = static_cast<std::uint16_t>(0x3c00 | (state >> 16 & 0x83ff));
    }
  asm volatile("" : : "r"(values) : "memory");
  _tile_loadconfig(&all);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, values[0], 64);
  _tile_loadd(5, values[1], 64);
  _tile_loadd(6, values[2], 64);
  _tile_loadd(7, values[3], 64);
  for (std::size_t i = 0; i != rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return static_cast<double>(rounds * 4 * 16 * 16 * 32 * 2);
}

#else

double pair_products(std::size_t) {
  return 0;
}
double byte_products(std::size_t) {
  return 0;
}
double tile_products(std::size_t) {
  return 0;
}

#endif

double portable_products(peak which, std::size_t rounds) {
  float sink = 0;
  const double done = which == peak::f32
                        ? HWY_DYNAMIC_DISPATCH(add_products)(rounds, &sink)
                        : HWY_DYNAMIC_DISPATCH(add_pairs_i16)(rounds, &sink);
  volatile float kept = sink;
  static_cast<void>(kept);
  return done;
}

double products(peak which, std::size_t rounds) {
  const features with = usable_features();
  switch (which) {
  case peak::f32:
  case peak::int16:
    return portable_products(which, rounds);
  case peak::bf16:
    return with.amx    ? tile_products(rounds)
           : with.bf16 ? pair_products(rounds)
                       : 0;
  case peak::int8:
    return with.vnni ? byte_products(rounds) : 0;
  }
  return 0;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
    .count();
}

} // namespace

} // namespace cpu

double measure_peak(thread_team& team, peak which) {
  // Some 5 ms per thread; the first run only wakes the units.
  constexpr std::size_t rounds = 200'000;
  double best = 0;
  for (int run = 0; run != 3; ++run) {
    std::vector<double> done(team.size());
    const auto start = std::chrono::steady_clock::now();
    team.run(team.size(), [&](std::size_t task, unsigned) {
      done[task] = cpu::products(which, rounds);
    });
    double sum = 0;
    for (double d : done)
      sum += d;
    best = std::max(best, sum / cpu::seconds_since(start));
  }
  return best;
}

std::string instruction_of(peak which) {
  const cpu::features with = cpu::usable_features();
  switch (which) {
  case peak::f32:
    return "FMA";
  case peak::bf16:
    return with.amx ? "AMX" : with.bf16 ? "vdpbf16ps" : "";
  case peak::int16:
    return cpu::portable_products(which, 1) > 0 ? "vpmaddwd" : "";
  case peak::int8:
    return with.vnni ? "vpdpbusd" : "";
  }
  return "";
}

// The same choice as packed_matmul() makes (cpu/packed_weight.cpp).
peak peak_of_products(weight_type type) {
  const auto with = cpu::usable_features();
  switch (type) {
  case weight_type::f32:
    return peak::f32;
  case weight_type::bf16:
    return with.bf16 ? peak::bf16 : peak::f32;
  case weight_type::q8:
  case weight_type::q4:
    break;
  }
  return with.vnni                 ? peak::int8
         : cpu::has_i16_products() ? peak::int16
                                   : peak::f32;
}

read_meter::read_meter(std::size_t bytes) : bytes_(bytes / 4096 * 4096) {
  auto memory = allocate_packed(bytes_);
  std::memset(memory.get(), 0, bytes_);
  memory_ = std::move(memory);
}

double read_meter::measure(thread_team& team) {
  // A part is as large as one or a few tasks of a product of few tokens.
  constexpr std::size_t part = std::size_t{256} << 10;
  const std::size_t parts = (bytes_ + part - 1) / part;
  std::vector<float> sinks(parts);
  const auto start = std::chrono::steady_clock::now();
  team.run(parts, [&](std::size_t task, unsigned) {
    const std::size_t first = task * part;
    const std::size_t size = std::min(part, bytes_ - first);
    HWY_DYNAMIC_DISPATCH(cpu::read_floats)
    (reinterpret_cast<const float*>(memory_.get() + first),
     size / sizeof(float), &sinks[task]);
  });
  return static_cast<double>(bytes_) / cpu::seconds_since(start);
}

} // namespace shoal::kernels
#endif
