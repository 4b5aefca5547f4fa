// tests/apps/terminal/slow_work_test.cpp -- lines about slow work, on a made-up clock.
#include "apps/terminal/slow_work.hpp"

#include <boost/test/unit_test.hpp>

#include <sstream>

BOOST_AUTO_TEST_SUITE(slow_work_tests)

using namespace std::chrono_literals;
using shoal::apps::slow_work;

namespace {

/// What is written about work of 70 s.
std::string written(bool terminal) {
  slow_work::clock::time_point now{};
  std::ostringstream out;
  {
    slow_work slow(out, terminal, [&] { return now; });
    for (int i = 0; i < 1000; ++i) {
      slow.at("reading text", std::uint64_t(i) << 20, 0);
      now += 1ms;
    }
    BOOST_TEST(out.str() == "");
    now += 1s;
    slow.at("reading text", 5u << 20, 0);
    for (int i = 0; i <= 700; ++i) {
      slow.at("evaluating", std::uint64_t(i), 700);
      now += 100ms;
    }
  }
  return out.str();
}

} // namespace

BOOST_AUTO_TEST_CASE(a_log_gets_a_line_now_and_then) {
  BOOST_TEST(written(false)
             == "shoal: reading text: 5 MiB\n"
                "shoal: evaluating: 42 %, 0:40 left\n"
                "shoal: evaluating: 85 %, 0:10 left\n");
}

BOOST_AUTO_TEST_CASE(a_terminal_has_one_line_that_is_gone_at_the_end) {
  const std::string all = written(true);
  BOOST_TEST(all.find('\n') == std::string::npos);
  BOOST_TEST(all.starts_with("shoal: reading text: 5 MiB\r\x1b[K"
                             "shoal: evaluating: 0 %, 1:09 left\r\x1b[K"));
  BOOST_TEST(all.ends_with("shoal: evaluating: 100 %\r\x1b[K"));
}

BOOST_AUTO_TEST_SUITE_END()
