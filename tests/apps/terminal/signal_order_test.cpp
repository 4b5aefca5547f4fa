// tests/apps/terminal/signal_order_test.cpp -- one press of Ctrl-C counts once.
#include "apps/terminal/signal_order.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(signal_order_tests)

using namespace std::chrono_literals;
using shoal::apps::signal_order;
using meaning = signal_order::meaning;

namespace {

const signal_order::clock::time_point begin{};

} // namespace

BOOST_AUTO_TEST_CASE(a_signal_that_arrives_twice_at_once_counts_once) {
  signal_order s;
  BOOST_TEST((s.take(begin) == meaning::first));
  BOOST_TEST((s.take(begin) == meaning::echo));
  BOOST_TEST((s.take(begin + 5ms) == meaning::echo));
}

BOOST_AUTO_TEST_CASE(a_later_signal_counts_however_many_echoes_came_before) {
  signal_order s;
  BOOST_TEST((s.take(begin) == meaning::first));
  for (auto t = 100ms; t < signal_order::apart_min; t += 100ms)
    BOOST_TEST((s.take(begin + t) == meaning::echo));
  BOOST_TEST((s.take(begin + signal_order::apart_min) == meaning::again));
  BOOST_TEST((s.take(begin + 1h) == meaning::again));
}

BOOST_AUTO_TEST_CASE(a_hangup_counts_first_and_never_again) {
  signal_order s;
  BOOST_TEST((s.take(begin, true) == meaning::first));
  BOOST_TEST((s.take(begin + 1h, true) == meaning::echo));
  BOOST_TEST((s.take(begin + 1h) == meaning::again));
}

BOOST_AUTO_TEST_SUITE_END()
