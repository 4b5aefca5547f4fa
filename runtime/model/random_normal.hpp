// runtime/model/random_normal.hpp -- normal numbers that are addressed by index.
//
// Value i of stream `key` is computed from (key, i) alone, by correctly rounded
// operations only (no libm). So it has the same bits on any machine, in any
// order and with any number of threads.
//
// Source: J. Salmon et al.: Parallel Random Numbers: As Easy as 1, 2, 3,
//         SC 2011 (Philox 4x32-10); G. Marsaglia, T. Bray: A Convenient
//         Method for Generating Normal Variables, SIAM Review 6 (1964). The
//         rejections of the polar method count up one word of the counter.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::model {

/// Philox 4x32-10.
std::array<std::uint32_t, 4>
philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// The key of a tensor's stream.
std::uint64_t stream_key(std::uint64_t seed, std::string_view name);

/// Sets into[i] to deviation * normal(key, first + i).
void fill_normal(std::span<float> into, std::uint64_t key, double deviation,
                 std::uint64_t first = 0);

/// Natural logarithm of a positive normal number, to 1e-14 relative, by
/// correctly rounded operations.
double portable_log(double x);

} // namespace shoal::model
