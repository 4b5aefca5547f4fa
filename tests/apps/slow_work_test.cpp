// tests/apps/slow_work_test.cpp -- lines about slow work, on a made-up clock.
#define BOOST_TEST_MODULE slow_work
#include "apps/slow_work.hpp"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace std::chrono_literals;
using shoal::apps::slow_work;

BOOST_AUTO_TEST_CASE(fast_work_is_silent_and_slow_work_is_not) {
  slow_work::clock::time_point now{};
  std::vector<std::string> said;
  slow_work slow([&](const std::string& line) { said.push_back(line); },
                 [&] { return now; });
  for (int i = 0; i < 1000; ++i) {
    slow.at("reading text", std::uint64_t(i) << 20, 0);
    now += 1ms;
  }
  BOOST_TEST(said.empty());
  now += 1s;
  slow.at("reading text", 5u << 20, 0);
  for (int i = 0; i < 1000; ++i) {
    slow.at("encoding text", std::uint64_t(i), 1000);
    now += 10ms;
  }
  const std::vector<std::string> want{"reading text: 5 MiB",
                                      "encoding text: 50 %"};
  BOOST_TEST(said == want, boost::test_tools::per_element());
}
