// kernels/reference/inference/pack_block.cpp -- a block of 32 weights in q8 or q4.
#include "kernels/reference/inference/pack_block.hpp"

#include <cmath>
#include <cstring>

namespace shoal::kernels::reference {

namespace {

/// NaN if one of the values is not finite, else 0.
float poison(const float* w) {
  float sum = 0;
  for (std::size_t k = 0; k != block_cols; ++k)
    sum += w[k] * 0.0f;
  return sum;
}

/// Rounds up to the nearest number of 16 bits. @pre x is positive or NaN
bf16 to_bf16_upwards(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return x != x ? to_bf16(x)
                : bf16{static_cast<std::uint16_t>((bits + 0xffff) >> 16)};
}

/// 1 / scale, and 0 for scales that are stored as 0 or NaN.
float inverse(float scale) {
  return std::abs(scale) >= scale_min ? 1.0f / scale : 0.0f;
}

/// The nearest whole number, ties to even, of less than 2^22 in magnitude; the
/// library's function is a call on machines without SSE 4.
float nearest(float x) {
  constexpr float whole = 12582912.0f; // 1.5 * 2^23: no place for a fraction
  return (x + whole) - whole;
}

/// The number of the level nearest to x: the count of borders below x.
int level_of(float x) {
  int level = 0;
  for (int j = 0; j != 15; ++j)
    level += x > static_cast<float>(q4_codes[j] + q4_codes[j + 1]) * 0.5f;
  return level;
}

/// Sums that tell how well a choice of levels fits.
struct fit {
  float products = 0; ///< of values and levels
  float levels = 0;   ///< squares; whole numbers

  fit(const float* w, float inverse_scale) {
    for (std::size_t k = 0; k != block_cols; ++k) {
      const float level = q4_codes[level_of(w[k] * inverse_scale)];
      products += w[k] * level;
      levels += level * level;
    }
  }
};

/// First scales the value of the largest magnitude to the outermost level, 127,
/// times one of q4_factors; then finds the best scale for the resulting levels.
float scale_q4(const float* w) {
  float largest = 0;
  float squares = 0;
  for (std::size_t k = 0; k != block_cols; ++k) {
    largest = std::abs(w[k]) > std::abs(largest) ? w[k] : largest;
    squares += w[k] * w[k];
  }
  float best = 0;
  float best_error = squares;
  for (const float factor : q4_factors) {
    const fit f(w, inverse(largest * (factor / 127.0f)));
    const float scale = to_float(to_bf16(f.products / f.levels));
    const float error =
      squares - 2.0f * (scale * f.products) + scale * scale * f.levels;
    if (error < best_error) {
      best = scale;
      best_error = error;
    }
  }
  return std::abs(best) >= scale_min ? best : 0.0f;
}

} // namespace

packed_block pack_block_q8(const float* w) {
  float largest = 0;
  for (std::size_t k = 0; k != block_cols; ++k)
    largest = std::abs(w[k]) > largest ? std::abs(w[k]) : largest;
  const float scale = largest / 127.0f;
  packed_block out;
  // Upwards, so that no code exceeds 127.
  out.scale = to_bf16_upwards((scale >= scale_min ? scale : 0.0f) + poison(w));
  const float factor = inverse(to_float(out.scale));
  for (std::size_t k = 0; k != block_cols; ++k) {
    float code = nearest(w[k] * factor);
    code = code != code     ? 0.0f
           : code > 127.0f  ? 127.0f
           : code < -127.0f ? -127.0f
                            : code;
    out.codes[k] =
      static_cast<std::uint8_t>(static_cast<int>(code) + code_offset);
  }
  return out;
}

packed_block pack_block_q4(const float* w) {
  packed_block out;
  out.scale = to_bf16(scale_q4(w) + poison(w));
  const float factor = inverse(to_float(out.scale));
  for (std::size_t k = 0; k != block_cols; ++k)
    out.codes[k] = static_cast<std::uint8_t>(level_of(w[k] * factor));
  return out;
}

} // namespace shoal::kernels::reference
