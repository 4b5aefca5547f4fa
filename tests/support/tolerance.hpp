// tests/support/tolerance.hpp -- permitted differences of results from their
// oracles.
//
// All are relative to the largest magnitude of the compared values, since
// single values may cancel to almost nothing.
#pragma once

namespace shoal::tests {

/// A float result whose sums may be in another order than the oracle's: some
/// tens of roundings of 2^-24.
inline constexpr double float_tolerance = 1e-5;

/// A gradient against central differences of a function that gives floats:
/// the error is about 2^-24 / step + step^2, which is least near 1e-2.
inline constexpr double difference_tolerance = 2e-3;
inline constexpr float difference_step = 1e-2f;

/// The same of formulas that are computed in double: the error is about
/// 2^-53 / step + step^2. The tolerance leaves room for values and third
/// derivatives of some hundreds.
inline constexpr double double_difference_tolerance = 1e-7;
inline constexpr double double_difference_step = 1e-5;

} // namespace shoal::tests
