// tests/transport/line_budget_test.cpp -- lines, with a clock of our own.
#include "transport/line_budget.hpp"

#include <boost/test/unit_test.hpp>

#include <random>
#include <vector>

namespace shoal::transport {

BOOST_AUTO_TEST_SUITE(line_budgets)

using namespace std::chrono_literals;

BOOST_AUTO_TEST_CASE(few_lines_pass_as_they_are) {
  line_budget b({3, 1});
  for (const char* line : {"a", "b", "c"})
    BOOST_TEST(b.pass(line, 100s).value() == line);
  BOOST_TEST(!b.rest(100s));
}

BOOST_AUTO_TEST_CASE(the_next_line_counts_the_lines_left_out) {
  line_budget b({2, 1});
  BOOST_TEST(b.pass("a", 5s).has_value());
  BOOST_TEST(b.pass("b", 5s).has_value());
  BOOST_TEST(!b.pass("c", 5s));
  BOOST_TEST(b.left_out() == 1);
  BOOST_TEST(b.pass("d", 6s).value() == "d (1 more line left out)");
  for (int i = 0; i < 40; ++i)
    BOOST_TEST(!b.pass("e", 6s + 999ms));
  BOOST_TEST(b.pass("f", 7s).value() == "f (40 more lines left out)");
  BOOST_TEST(b.pass("g", 20s).value() == "g");
}

BOOST_AUTO_TEST_CASE(the_count_is_reported_even_if_no_line_follows) {
  line_budget b({1, 1});
  BOOST_TEST(b.pass("a", 0s).has_value());
  BOOST_TEST(!b.pass("b", 0s));
  BOOST_TEST(!b.pass("c", 0s));
  BOOST_TEST(!b.rest(0s));
  BOOST_TEST(b.rest(1s).value() == "2 more lines like these left out");
  BOOST_TEST(!b.rest(9s));
}

// L-1 and L-2, for any order of events; the clock may stand, and go back.
BOOST_AUTO_TEST_CASE(the_limits_hold_for_any_flood) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      const line_limits limits{1 + random() % 30, 1 + random() % 5};
      line_budget b(limits);
      line_budget::time now = std::chrono::hours(random() % 1000);
      const auto start = now;
      std::uint64_t passed = 0, said = 0;
      const int count = 5000;
      for (int i = 0; i < count; ++i) {
        now += std::chrono::nanoseconds(random() % 2'000'000);
        const auto line =
          b.pass("x", now - std::chrono::nanoseconds(random() % 1000));
        if (!line)
          continue;
        ++passed;
        if (const auto at = line->find('('); at != std::string::npos)
          said += std::stoull(line->substr(at + 1));
      }
      const auto seconds = static_cast<std::uint64_t>((now - start) / 1s) + 1;
      BOOST_TEST(passed <= limits.burst + seconds * limits.per_second);
      BOOST_TEST(passed + said + b.left_out() == count);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::transport
