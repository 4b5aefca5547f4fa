// tests/kernels/harness.hpp -- runs an operation on backends and compares.
//
// A test describes a call as a function from a backend to outputs; the harness
// runs it on cpu and on reference, or on teams of several sizes.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"
#include "tests/support/tolerance.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <iosfwd>
#include <vector>

namespace shoal::kernels {

std::ostream& operator<<(std::ostream& out, weight_type type);
std::ostream& operator<<(std::ostream& out, kv_type type);
std::ostream& operator<<(std::ostream& out, const attention_shape& s);

} // namespace shoal::kernels

namespace shoal::tests {

using floats = std::vector<float>;
using doubles = std::vector<double>;
using outputs = std::vector<floats>;
using call = std::function<outputs(kernels::backend&)>;

/// `count` values in [-1, 1), always the same for a seed.
floats random_values(std::size_t count, std::uint64_t seed);
/// The same, as doubles.
doubles random_doubles(std::size_t count, std::uint64_t seed);
/// `count` whole numbers in [low, high).
std::vector<std::int32_t> random_ids(std::size_t count, std::int32_t low,
                                     std::int32_t high, std::uint64_t seed);

/// All values as rows of `cols`.
template <class Scalar>
kernels::matrix_view<Scalar>
matrix(std::vector<Scalar>& values, std::size_t cols) {
  return {values.data(), values.size() / cols, cols};
}
template <class Scalar>
kernels::matrix_view<const Scalar>
matrix(const std::vector<Scalar>& values, std::size_t cols) {
  return {values.data(), values.size() / cols, cols};
}

/// A backend and its team of `threads`.
struct cpu_fixture {
  explicit cpu_fixture(unsigned threads = 2);
  kernels::thread_team team;
  std::unique_ptr<kernels::backend> cpu;
};

/// The largest difference relative to the largest magnitude of `expected`.
double relative_difference(const floats& got, const floats& expected);
double relative_difference(const doubles& got, const doubles& expected);

/// Calls `body` with reference, and with cpu held to each instruction set that
/// this machine has and the kernels were compiled for.
void for_each_backend(const std::function<void(kernels::backend&)>& body);

/// Calls `body` with each set of the instructions beyond Highway that this
/// machine has (kernels/cpu/isa/features.hpp).
void for_each_feature(const std::function<void()>& body);
/// Both: reference, and cpu with each instruction set and feature.
void for_each_backend_and_feature(
  const std::function<void(kernels::backend&)>& body);

/// cpu gives what reference gives.
void check_matches_reference(const call& run,
                             double tolerance = float_tolerance);
/// cpu gives the bits that reference gives.
void check_equals_reference(const call& run);
/// cpu gives the same bits with 1, 2, 3 and 4 threads.
void check_threads_change_nothing(const call& run);

/// `gradient` is that of sum(weight * value(x)) at x, checked along the
/// coordinates of x by central differences. `value` runs the loops of
/// reference/ on doubles: their formulas, with nothing rounded to float.
void check_gradient(const std::function<doubles(const doubles&)>& value,
                    const doubles& x, const doubles& weight,
                    const doubles& gradient);

} // namespace shoal::tests
