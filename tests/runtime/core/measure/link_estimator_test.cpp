// tests/runtime/core/measure/link_estimator_test.cpp -- latency and bandwidth
// of a link.
#include "runtime/core/measure/link_estimator.hpp"

#include <boost/test/unit_test.hpp>

#include <array>

BOOST_AUTO_TEST_SUITE(link_estimator)

using shoal::core::link_estimator;
constexpr std::uint64_t mib = 1 << 20;

BOOST_AUTO_TEST_CASE(nothing_is_known_before_traffic) {
  link_estimator m;
  BOOST_TEST(m.latency_ns() == 0u);
  BOOST_TEST(m.bytes_per_s() == 0u);
}

BOOST_AUTO_TEST_CASE(a_small_transfer_alone_tells_latency_and_no_bandwidth) {
  link_estimator m;
  m.ended(m.started(1000), 5000, 64, true);
  BOOST_TEST(m.latency_ns() == 2000u);
  BOOST_TEST(m.bytes_per_s() == 0u);
}

BOOST_AUTO_TEST_CASE(a_measurement_gets_old) {
  link_estimator m;
  m.ended(m.started(1000), 5000, 64, true);
  BOOST_TEST(m.age_ns(5000) == 0);
  BOOST_TEST(m.age_ns(9000) == 4000);
  m.ended(m.started(9000), 10'000, 100'000, true); // tells nothing
  BOOST_TEST(m.age_ns(10'000) == 5000);
  m.ended(m.started(10'000), 1'010'000, mib, true);
  BOOST_TEST(m.age_ns(1'010'000) == 0);
}

BOOST_AUTO_TEST_CASE(overlapped_or_failed_transfers_tell_no_latency) {
  link_estimator m;
  const auto a = m.started(0);
  const auto b = m.started(10);
  m.ended(b, 50, 64, true);
  m.ended(a, 90, 64, true);
  m.ended(m.started(100), 900, 64, false);
  BOOST_TEST(m.latency_ns() == 0u);
}

BOOST_AUTO_TEST_CASE(transfers_at_once_share_the_time_they_take) {
  link_estimator m;
  const auto a = m.started(0);
  const auto b = m.started(0);
  m.ended(a, 900'000, mib, true);
  m.ended(b, 1'000'000, mib, true); // 2 MiB in a millisecond
  BOOST_TEST(m.bytes_per_s() == 2 * mib * 1000);
}

BOOST_AUTO_TEST_CASE(pauses_do_not_count) {
  link_estimator m;
  m.ended(m.started(0), 1'000'000, mib, true);
  m.ended(m.started(9'000'000'000), 9'001'000'000, mib, true);
  BOOST_TEST(m.bytes_per_s() == mib * 1000);
}

BOOST_AUTO_TEST_CASE(a_link_that_never_pauses_is_measured) {
  link_estimator m;
  m.started(0); // never ends
  std::int64_t now = 0;
  for (int i = 0; i < 64; ++i) {
    const auto t = m.started(now);
    m.ended(t, now += 1'000'000, mib, true);
  }
  BOOST_TEST(m.bytes_per_s() == mib * 1000);
}

BOOST_AUTO_TEST_CASE(receivers_that_are_late_make_no_link_slow) {
  link_estimator m;
  std::int64_t now = 0;
  for (int i = 0; i < 64; ++i) { // it has room at once every eighth time
    const auto t = m.started(now);
    m.ended(t, now += i % 8 == 0 ? 1'000'000 : 50'000'000, mib, true);
  }
  BOOST_TEST(m.bytes_per_s() == mib * 1000);
}

// A cable that was throttled during a run was shown, and planned with, at its
// former speed for minutes.
BOOST_AUTO_TEST_CASE(a_fast_link_that_becomes_slow_is_noticed_in_two_windows) {
  link_estimator m;
  std::int64_t now = 0;
  const auto send = [&](std::int64_t ns, std::uint64_t bytes) {
    const auto t = m.started(now);
    m.ended(t, now += ns, bytes, true);
    now += 100'000'000; // computes
  };
  for (int i = 0; i < 64; ++i)
    send(1'000'000, mib);
  send(30'000'000'000, 4 * mib);
  BOOST_TEST(m.bytes_per_s() == mib * 1000);
  send(31'000'000'000, 4 * mib);
  BOOST_TEST(m.bytes_per_s() == 4 * mib / 30);
  send(90'000'000'000, 4 * mib); // the receiver was late: no news
  BOOST_TEST(m.bytes_per_s() == 4 * mib / 30);
  send(4'000'000, 4 * mib); // as fast as before, at once
  BOOST_TEST(m.bytes_per_s() == mib * 1000);
}

// 1 MB/s, and always four tensors of 10 MB in transit: one window of 64 MiB
// would take more than a minute.
BOOST_AUTO_TEST_CASE(
  a_slow_link_that_never_pauses_is_noticed_in_tens_of_seconds) {
  constexpr std::uint64_t bytes = 10'000'000, rate = 1'000'000;
  link_estimator m;
  std::int64_t now = 0;
  for (int i = 0; i < 64; ++i) {
    const auto t = m.started(now);
    m.ended(t, now += 1'000'000, mib, true);
  }
  BOOST_TEST(m.bytes_per_s() == mib * 1000);
  const std::int64_t slow_since = now;
  std::array<link_estimator::ticket, 4> under_way;
  for (auto& t : under_way)
    t = m.started(now);
  for (std::size_t i = 0; m.bytes_per_s() > 2 * rate; ++i) {
    now += std::int64_t(bytes / rate) * 1'000'000'000;
    BOOST_TEST_REQUIRE(now - slow_since <= 60'000'000'000);
    m.ended(under_way[i % 4], now, bytes, true);
    under_way[i % 4] = m.started(now);
  }
  BOOST_TEST(m.bytes_per_s() > rate / 3);
}

BOOST_AUTO_TEST_CASE(delays_that_differ_or_are_short_make_no_link_slow) {
  link_estimator m;
  std::int64_t now = 0;
  const auto send = [&](std::int64_t ns) {
    const auto t = m.started(now);
    m.ended(t, now += ns, mib, true);
  };
  send(1'000'000);
  for (std::int64_t s : {9, 3, 8, 2, 6, 1, 9})
    send(s * 1'000'000'000);
  BOOST_TEST(m.bytes_per_s() == mib * 1000);
  for (int i = 0; i < 8; ++i)
    send(50'000'000);
  BOOST_TEST(m.bytes_per_s() == mib * 1000);
}

// Bytes of the second one were sent in the first one's window.
BOOST_AUTO_TEST_CASE(a_window_counts_what_started_in_it) {
  link_estimator m;
  const auto a = m.started(0);
  const auto b = m.started(0);
  m.ended(a, 1'000'000'000, 64 * mib, true);
  m.ended(b, 1'001'000'000, 64 * mib, true);
  BOOST_TEST(m.bytes_per_s() <= 128 * mib);
}

BOOST_AUTO_TEST_CASE(a_change_is_followed) {
  link_estimator m;
  std::int64_t now = 0;
  const auto send = [&](std::int64_t ns, std::uint64_t bytes) {
    const auto t = m.started(now);
    m.ended(t, now += ns, bytes, true);
  };
  send(1'000'000, mib);
  send(2'000, 8);
  for (int i = 0; i < 60; ++i) {
    send(4'000'000, mib);
    send(200'000, 8);
  }
  BOOST_TEST(m.bytes_per_s() == mib * 250);
  BOOST_TEST(m.latency_ns() == 100'000u);
}

BOOST_AUTO_TEST_SUITE_END()
