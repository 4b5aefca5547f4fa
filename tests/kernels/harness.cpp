// tests/kernels/harness.cpp -- comparison of backends.
#include "tests/kernels/harness.hpp"

#include "kernels/cpu/isa/features.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <ostream>
#include <set>
#include <string>
#include <utility>

namespace shoal::kernels {

std::ostream& operator<<(std::ostream& out, kv_type type) {
  return out << name_of(type);
}
std::ostream& operator<<(std::ostream& out, weight_type type) {
  return out << name_of(type);
}

std::ostream& operator<<(std::ostream& out, const attention_shape& s) {
  return out << "B " << s.batch << " T " << s.tokens << " N " << s.heads
             << " K " << s.kv_heads << " H " << s.head_size << " W " << s.window
             << " cap " << s.softcap;
}

} // namespace shoal::kernels

namespace shoal::tests {

floats random_values(std::size_t count, std::uint64_t seed) {
  kernels::sampling_generator generator{seed * 7919 + 1};
  floats values(count);
  for (auto& value : values)
    value = static_cast<float>(generator.next_unit() * 2 - 1);
  return values;
}

doubles random_doubles(std::size_t count, std::uint64_t seed) {
  const auto values = random_values(count, seed);
  return {values.begin(), values.end()};
}

std::vector<std::int32_t> random_ids(std::size_t count, std::int32_t low,
                                     std::int32_t high, std::uint64_t seed) {
  kernels::sampling_generator generator{seed * 7919 + 2};
  std::vector<std::int32_t> ids(count);
  for (auto& id : ids)
    id = low
         + static_cast<std::int32_t>(generator.next_unit()
                                     * static_cast<double>(high - low));
  return ids;
}

cpu_fixture::cpu_fixture(unsigned threads)
  : team(threads), cpu(kernels::make_cpu_backend(team)) {
  // nop
}

namespace {

template <class Scalar>
double difference(const std::vector<Scalar>& got,
                  const std::vector<Scalar>& expected) {
  BOOST_REQUIRE_EQUAL(got.size(), expected.size());
  double worst = 0;
  double largest = 1e-30;
  for (std::size_t i = 0; i != got.size(); ++i) {
    auto apart = std::abs(double{got[i]} - expected[i]);
    worst = std::isfinite(apart) ? std::max(worst, apart) : INFINITY;
    if (!std::isfinite(worst))
      break;
    largest = std::max(largest, std::abs(double{expected[i]}));
  }
  return worst / largest;
}

} // namespace

double relative_difference(const floats& got, const floats& expected) {
  return difference(got, expected);
}

double relative_difference(const doubles& got, const doubles& expected) {
  return difference(got, expected);
}

namespace {

bool same_bits(const outputs& a, const outputs& b) {
  return a.size() == b.size()
         && std::equal(
           a.begin(), a.end(), b.begin(), [](const floats& x, const floats& y) {
             return x.size() == y.size()
                    && std::memcmp(x.data(), y.data(), x.size() * sizeof(float))
                         == 0;
           });
}

} // namespace

namespace {

/// Calls `body` once for each instruction set that this machine has and the
/// kernels were compiled for, with a backend that is held to it. Each is kept: a
/// new one would fill megabytes of scratch memory, and what a call has left
/// there must not matter to the next. A backend asks for the features once, so
/// there is one for each limit of them, too.
template <class Body>
void for_each_target(Body body) {
  using kernels::cpu::usable_features;
  static std::map<std::pair<std::int64_t, std::string>, cpu_fixture> kept;
  for (auto target : hwy::SupportedAndGeneratedTargets())
    BOOST_TEST_CONTEXT(hwy::TargetName(target)) {
      hwy::SetSupportedTargetsForTest(target);
      body(*kept[{target, to_string(usable_features())}].cpu);
    }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

} // namespace

void for_each_backend(const std::function<void(kernels::backend&)>& body) {
  BOOST_TEST_CONTEXT("reference")
  body(*kernels::make_reference_backend());
  for_each_target([&](kernels::backend& cpu) { body(cpu); });
}

void for_each_feature(const std::function<void()>& body) {
  using kernels::cpu::features;
  features before;
  bool first = true;
  for (auto limit : {features{}, features{true, false, false},
                     features{true, true, false}, features{true, true, true}}) {
    kernels::cpu::limit_features(limit);
    const auto now = kernels::cpu::usable_features();
    if (first || !(now == before)) {
      BOOST_TEST_CONTEXT("features " << to_string(now)) {
        body();
      }
    }
    before = now;
    first = false;
  }
}

void for_each_backend_and_feature(
  const std::function<void(kernels::backend&)>& body) {
  BOOST_TEST_CONTEXT("reference")
  body(*kernels::make_reference_backend());
  std::set<std::pair<std::int64_t, std::string>> done; // most have no features
  for_each_feature([&] {
    for_each_target([&](kernels::backend& cpu) {
      if (done
            .emplace(hwy::SupportedTargets(),
                     to_string(kernels::cpu::usable_features()))
            .second)
        body(cpu);
    });
  });
}

void check_matches_reference(const call& run, double tolerance) {
  auto expected = run(*kernels::make_reference_backend());
  for_each_target([&](kernels::backend& cpu) {
    auto got = run(cpu);
    BOOST_REQUIRE_EQUAL(got.size(), expected.size());
    for (std::size_t i = 0; i != got.size(); ++i)
      BOOST_TEST_CONTEXT("output " << i)
    BOOST_TEST(relative_difference(got[i], expected[i]) <= tolerance);
  });
}

void check_equals_reference(const call& run) {
  auto expected = run(*kernels::make_reference_backend());
  for_each_target(
    [&](kernels::backend& cpu) { BOOST_TEST(same_bits(run(cpu), expected)); });
}

void check_threads_change_nothing(const call& run) {
  static std::map<std::string, cpu_fixture> kept;
  auto& fixture = kept[to_string(kernels::cpu::usable_features())];
  fixture.team.resize(1);
  auto expected = run(*fixture.cpu);
  for (unsigned threads : {2u, 3u, 4u}) {
    fixture.team.resize(threads);
    BOOST_TEST_CONTEXT("threads " << threads)
    BOOST_TEST(same_bits(run(*fixture.cpu), expected));
  }
}

void check_gradient(const std::function<doubles(const doubles&)>& value,
                    const doubles& x, const doubles& weight,
                    const doubles& gradient) {
  auto loss = [&](const doubles& at) {
    auto y = value(at);
    BOOST_REQUIRE_EQUAL(y.size(), weight.size());
    return std::inner_product(y.begin(), y.end(), weight.begin(), 0.0);
  };
  BOOST_REQUIRE_EQUAL(gradient.size(), x.size());
  doubles expected(x.size());
  for (std::size_t i = 0; i != x.size(); ++i) {
    auto moved = x;
    moved[i] = x[i] + double_difference_step;
    auto above = loss(moved);
    auto high = moved[i];
    moved[i] = x[i] - double_difference_step;
    auto below = loss(moved);
    expected[i] = (above - below) / (high - moved[i]);
  }
  BOOST_TEST(relative_difference(gradient, expected)
             <= double_difference_tolerance);
}

} // namespace shoal::tests
