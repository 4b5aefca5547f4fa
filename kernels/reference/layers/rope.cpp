// kernels/reference/layers/rope.cpp -- rotation of floats, and the table.
#include "kernels/reference/layers/rope.hpp"

#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::kernels {

namespace {

constexpr double pi = 3.14159265358979323846;

/// The pair whose wave makes `turns` turns within the original length.
double pair_of(double turns, std::size_t head_size, double theta,
               const rope_scaling& s) {
  return static_cast<double>(head_size)
         * std::log(s.original / (turns * 2 * pi)) / (2 * std::log(theta));
}

/// The share of the unscaled frequency in that of pair i.
double yarn_share(std::size_t i, std::size_t head_size, double theta,
                  const rope_scaling& s) {
  const auto last = static_cast<double>(head_size) - 1;
  auto low =
    std::max(std::floor(pair_of(s.beta_fast, head_size, theta, s)), 0.0);
  auto high =
    std::min(std::ceil(pair_of(s.beta_slow, head_size, theta, s)), last);
  if (low == high)
    high += 0.001;
  auto ramp = (static_cast<double>(i) - low) / (high - low);
  return 1 - std::min(std::max(ramp, 0.0), 1.0);
}

/// Rounded to float at the same points as in transformers: an angle of several
/// hundred turns depends on every bit of the frequency.
float scaled_frequency(float power, std::size_t i, std::size_t head_size,
                       double theta, const rope_scaling& s) {
  using rule = rope_scaling::rule;
  const auto frequency = 1.0f / power;
  const auto factor = static_cast<float>(s.factor);
  if (s.type == rule::linear)
    return frequency / factor;
  if (s.type == rule::yarn) {
    const auto share = static_cast<float>(yarn_share(i, head_size, theta, s));
    return 1.0f / (factor * power) * (1 - share) + frequency * share;
  }
  if (s.type != rule::llama3)
    return frequency;
  const auto wave = static_cast<float>(2 * pi) / frequency;
  const auto original = static_cast<float>(s.original);
  const auto low = static_cast<float>(s.low_freq_factor);
  const auto high = static_cast<float>(s.high_freq_factor);
  if (wave > static_cast<float>(s.original / s.low_freq_factor))
    return frequency / factor;
  if (wave < static_cast<float>(s.original / s.high_freq_factor))
    return frequency;
  const auto smooth = (original / wave - low) / (high - low);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

} // namespace

rope_table make_rope_table(std::size_t head_size, std::size_t positions,
                           double theta, const rope_scaling& scaling) {
  SHOAL_KERNEL_ASSERT(head_size != 0 && head_size % 2 == 0 && theta > 0);
  SHOAL_KERNEL_ASSERT(scaling.factor >= 1 && scaling.original >= 1
                      && scaling.low_freq_factor > 0
                      && scaling.high_freq_factor > scaling.low_freq_factor);
  auto half = head_size / 2;
  const bool stretched = scaling.type == rope_scaling::rule::yarn;
  const double size = stretched ? scaling.attention_factor : 1;
  rope_table table;
  table.head_size = head_size;
  table.positions = positions;
  table.cos_PH2.resize(positions * half);
  table.sin_PH2.resize(positions * half);
  for (std::size_t i = 0; i != half; ++i) {
    auto exponent = static_cast<float>(2 * i) / static_cast<float>(head_size);
    auto power = static_cast<float>(std::pow(theta, double{exponent}));
    auto frequency = scaled_frequency(power, i, head_size, theta, scaling);
    for (std::size_t p = 0; p != positions; ++p) {
      auto angle = static_cast<float>(p) * frequency;
      auto index = p * half + i;
      table.cos_PH2[index] = static_cast<float>(std::cos(double{angle}) * size);
      table.sin_PH2[index] = static_cast<float>(std::sin(double{angle}) * size);
    }
  }
  return table;
}

namespace reference {

namespace {

void check(matrix_view<const float> x_TNH,
           vector_view<const std::int32_t> positions_T,
           const rope_table& table) {
  SHOAL_KERNEL_ASSERT(positions_T.size == x_TNH.rows
                      && x_TNH.cols % table.head_size == 0);
  for (std::size_t t = 0; t != positions_T.size; ++t)
    SHOAL_KERNEL_ASSERT(positions_T[t] >= 0
                        && static_cast<std::size_t>(positions_T[t])
                             < table.positions);
}

} // namespace

void reference_backend::rope(matrix_view<float> x_TNH,
                             vector_view<const std::int32_t> positions_T,
                             const rope_table& table) {
  check(x_TNH, positions_T, table);
  loops::rotate<float>(x_TNH, positions_T, table, 1);
}

void reference_backend::rope_backward(
  matrix_view<float> dx_TNH, vector_view<const std::int32_t> positions_T,
  const rope_table& table) {
  check(dx_TNH, positions_T, table);
  loops::rotate<float>(dx_TNH, positions_T, table, -1);
}

} // namespace reference

} // namespace shoal::kernels
