// runtime/model/random_normal.cpp -- normal numbers that are addressed by index.
#include "runtime/model/random_normal.hpp"

#include <cmath>

namespace shoal::model {

std::array<std::uint32_t, 4>
philox(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ull * c[0];
    const std::uint64_t b = 0xCD9E8D57ull * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0],
         static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1],
         static_cast<std::uint32_t>(a)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

std::uint64_t stream_key(std::uint64_t seed, std::string_view name) {
  // FNV-1a over the name, then the seed through a finaliser of two
  // multiplications, so that the streams of neighbouring seeds are unrelated.
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char byte : name)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ull;
  std::uint64_t x = seed + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return hash ^ x ^ (x >> 31);
}

double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent); // [0.5, 1), exact
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  // log m = 2 atanh(s), |s| <= 0.1716; the first term left out is below 2e-17.
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double sum = 0;
  for (int n = 21; n >= 1; n -= 2)
    sum = sum * s2 + 1.0 / n;
  return exponent * 0.69314718055994530942 + 2 * s * sum;
}

namespace {

/// The two normal numbers of pair `index`.
std::array<double, 2> normal_pair(std::uint64_t key, std::uint64_t index) {
  const std::array<std::uint32_t, 2> k{static_cast<std::uint32_t>(key),
                                       static_cast<std::uint32_t>(key >> 32)};
  for (std::uint32_t attempt = 0;; ++attempt) {
    const auto r = philox({static_cast<std::uint32_t>(index),
                           static_cast<std::uint32_t>(index >> 32), attempt, 0},
                          k);
    auto unit = [](std::uint32_t high, std::uint32_t low) {
      const std::uint64_t bits = (std::uint64_t(high) << 32 | low) >> 11;
      return static_cast<double>(bits) * 0x1p-52 - 1.0; // [-1, 1)
    };
    const double u = unit(r[0], r[1]);
    const double v = unit(r[2], r[3]);
    const double s = u * u + v * v;
    if (s >= 1 || s < 0x1p-100)
      continue;
    const double factor = std::sqrt(-2 * portable_log(s) / s);
    return {u * factor, v * factor};
  }
}

} // namespace

void fill_normal(std::span<float> into, std::uint64_t key, double deviation,
                 std::uint64_t first) {
  std::size_t i = 0;
  while (i < into.size()) {
    const std::uint64_t at = first + i;
    const auto pair = normal_pair(key, at / 2);
    for (std::size_t half = at % 2; half < 2 && i < into.size(); ++half)
      into[i++] = static_cast<float>(deviation * pair[half]);
  }
}

} // namespace shoal::model
