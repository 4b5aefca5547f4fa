// tests/runtime/core/training/ledger_test.cpp -- the findings of an audit of a
// run.
#include "runtime/core/training/ledger.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

BOOST_AUTO_TEST_SUITE(ledger)

using namespace shoal::core;

namespace {

constexpr std::size_t length = 4;
constexpr std::uint32_t microbatches = 2, samples = 6;

/// Another text in every window.
void text(std::uint64_t window, std::span<std::int32_t> targets) {
  for (std::size_t i = 0; i < targets.size(); ++i)
    targets[i] = std::int32_t(window * length + i);
}

/// What a run that does as it should reports.
std::vector<used_data> honest(const data_order& order, std::uint64_t steps) {
  std::vector<used_data> log;
  for (std::uint64_t s = 1; s <= steps; ++s) {
    std::vector<std::uint64_t> digests;
    for (std::uint32_t m = 0; m < microbatches; ++m) {
      std::vector<std::int32_t> batch(samples / microbatches * length);
      for (std::uint32_t b = 0; b < samples / microbatches; ++b)
        text(order.sample(s, m * samples / microbatches + b),
             std::span(batch).subspan(b * length, length));
      digests.push_back(digest_of_sample(batch));
    }
    log.push_back({s, digest_of_step(digests)});
  }
  return log;
}

audit look(const data_order& order, const std::vector<used_data>& log) {
  return audit_run(order, microbatches, length, log, text);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_run_that_does_as_it_should_is_proven) {
  for (const std::uint64_t windows : {6u, 7u, 100u, 1000u}) {
    const data_order order(3, windows, samples);
    const audit a = look(order, honest(order, 50));
    BOOST_TEST(a.proven());
    BOOST_TEST(a.steps == 50u);
    BOOST_TEST(a.samples == 300u);
    BOOST_TEST(a.epochs == 300u / windows);
  }
}

BOOST_AUTO_TEST_CASE(mistakes_are_named) {
  const data_order order(3, 100, samples);
  auto log = honest(order, 20);
  log[4].data ^= 1;
  log[7].data = 0;
  log.erase(log.begin() + 11);
  const audit a = look(order, log);
  BOOST_TEST(!a.proven());
  BOOST_TEST(a.other.listed == std::vector<std::uint64_t>{5},
             boost::test_tools::per_element());
  BOOST_TEST(a.unknown.listed == std::vector<std::uint64_t>{8},
             boost::test_tools::per_element());
  BOOST_TEST(a.missing.listed == std::vector<std::uint64_t>{12},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_step_that_used_the_samples_of_another_is_found) {
  const data_order order(3, 100, samples);
  auto log = honest(order, 20);
  log[9].data = log[8].data;
  BOOST_TEST(look(order, log).other.listed == std::vector<std::uint64_t>{10},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(of_steps_that_were_run_again_the_last_counts) {
  const data_order order(3, 100, samples);
  auto log = honest(order, 20);
  const auto again = log[14];
  log[14].data ^= 1; // lost, and with it the mistake
  log.push_back(again);
  BOOST_TEST(look(order, log).proven());
}

BOOST_AUTO_TEST_CASE(another_seed_or_order_of_microbatches_is_another_digest) {
  const data_order order(3, 100, samples), other(4, 100, samples);
  const auto log = honest(order, 20);
  BOOST_TEST(look(other, log).other.count == 20u);
  const std::uint64_t ab[] = {1, 2}, ba[] = {2, 1};
  BOOST_TEST(digest_of_step(ab) != digest_of_step(ba));
}

// The audit once made a list of all steps between: it ended with its memory.
BOOST_AUTO_TEST_CASE(steps_far_apart_are_counted_not_listed) {
  const data_order order(3, 20, samples);
  auto log = honest(order, 1);
  log.push_back({1'000'000'000'000, 5});
  const audit a = look(order, log);
  BOOST_TEST(a.missing.count == 999'999'999'998u);
  BOOST_TEST(a.missing.listed.size() == findings::listed_max);
  BOOST_TEST(a.missing.listed.front() == 2u);
  BOOST_TEST(a.other.listed == std::vector<std::uint64_t>{1'000'000'000'000},
             boost::test_tools::per_element());
  BOOST_TEST(!a.proven());
}

BOOST_AUTO_TEST_CASE(nothing_proves_nothing) {
  const data_order order(3, 100, samples);
  BOOST_TEST(!look(order, {}).proven());
}

BOOST_AUTO_TEST_SUITE_END()
