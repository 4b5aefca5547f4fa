// runtime/model/gguf/gguf_blocks.cpp -- one function for each kind of block.
#include "runtime/model/gguf/gguf_blocks.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/model/files/safetensors.hpp" // widen

#include <cstring>

namespace shoal::model::gguf {

namespace {

using byte = std::uint8_t;

float half(const byte* at) {
  float out = 0;
  widen(stored_type::f16, reinterpret_cast<const std::byte*>(at), {&out, 1});
  return out;
}

void q8_0(const byte* from, float* y) {
  const float d = half(from);
  for (int i = 0; i < 32; ++i)
    y[i] = d * float(static_cast<std::int8_t>(from[2 + i]));
}

void q4_0(const byte* from, float* y) {
  const float d = half(from);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * float((from[2 + i] & 0xf) - 8);
    y[i + 16] = d * float((from[2 + i] >> 4) - 8);
  }
}

/// Scale and minimum of group `i`, 6 bits each, of the 12 bytes of all groups.
struct group {
  float scale, minimum;
};
group group_of(const byte* s, int i) {
  if (i < 4)
    return {float(s[i] & 63), float(s[i + 4] & 63)};
  return {float((s[i + 4] & 0xf) | ((s[i - 4] >> 6) << 4)),
          float((s[i + 4] >> 4) | ((s[i] >> 6) << 4))};
}

/// @param high bits above the low 4, one for each value in each byte; null: none
void q45_k(const byte* from, const byte* high, const byte* low, float* y) {
  const float d = half(from), m = half(from + 2);
  for (int i = 0; i < 8; ++i) {
    const group g = group_of(from + 4, i);
    const float scale = d * g.scale, minimum = m * g.minimum;
    for (int k = 0; k < 32; ++k) {
      const byte pair = low[i / 2 * 32 + k];
      int q = i % 2 == 0 ? pair & 0xf : pair >> 4;
      if (high != nullptr && (high[k] >> i & 1) != 0)
        q += 16;
      y[i * 32 + k] = scale * float(q) - minimum;
    }
  }
}

void q6_k(const byte* from, float* y) {
  const float d = half(from + 208);
  for (int part = 0; part < 2; ++part) {
    const byte* low = from + part * 64;
    const byte* high = from + 128 + part * 32;
    const byte* scales = from + 192 + part * 8;
    for (int g = 0; g < 4; ++g)
      for (int k = 0; k < 32; ++k) {
        const byte pair = low[g % 2 * 32 + k];
        const int q =
          ((g < 2 ? pair & 0xf : pair >> 4) | ((high[k] >> 2 * g & 3) << 4))
          - 32;
        const float scale =
          d * float(static_cast<std::int8_t>(scales[2 * g + k / 16]));
        y[part * 128 + g * 32 + k] = scale * float(q);
      }
  }
}

} // namespace

void to_floats(block_type type, std::span<const std::byte> from,
               std::span<float> into) {
  const block_size size = size_of(type);
  SHOAL_ASSERT(size.bytes != 0 && into.size() % size.values == 0
               && from.size() == into.size() / size.values * size.bytes);
  switch (type) {
  case block_type::f32:
    return widen(stored_type::f32, from.data(), into);
  case block_type::f16:
    return widen(stored_type::f16, from.data(), into);
  case block_type::bf16:
    return widen(stored_type::bf16, from.data(), into);
  default:
    break;
  }
  const auto* at = reinterpret_cast<const byte*>(from.data());
  float* y = into.data();
  for (; y != into.data() + into.size(); at += size.bytes, y += size.values)
    switch (type) {
    case block_type::q8_0:
      q8_0(at, y);
      break;
    case block_type::q4_0:
      q4_0(at, y);
      break;
    case block_type::q4_k:
      q45_k(at, nullptr, at + 16, y);
      break;
    case block_type::q5_k:
      q45_k(at, at + 16, at + 48, y);
      break;
    default:
      q6_k(at, y);
    }
}

} // namespace shoal::model::gguf
