// tests/runtime/core/measure/address_watch_test.cpp -- addresses that come and go.
#include "runtime/core/measure/address_watch.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(address_watching)

using namespace shoal::core;

namespace {

using list = std::vector<std::string>;
constexpr nanoseconds appear = address_watch::appear_after;
constexpr nanoseconds vanish = address_watch::vanish_after;

void check(const std::optional<list>& got, const list& wanted) {
  BOOST_REQUIRE(got.has_value());
  BOOST_TEST(*got == wanted, boost::test_tools::per_element());
}

} // namespace

BOOST_AUTO_TEST_CASE(unchanged_addresses_are_never_reported_nor_due) {
  address_watch w({"a", "b"});
  w.observe(5, {"a", "b"});
  w.observe(6, {"b", "a"});
  BOOST_TEST(!w.due());
  BOOST_TEST(!w.take(vanish * 9));
}

BOOST_AUTO_TEST_CASE(a_new_address_is_told_when_it_has_stayed) {
  address_watch w({"a"});
  w.observe(10, {"b", "a"});
  BOOST_TEST(*w.due() == 10 + appear);
  BOOST_TEST(!w.take(9 + appear));
  check(w.take(10 + appear), {"b", "a"});
  BOOST_TEST(!w.due());
  BOOST_TEST(!w.take(vanish * 9));
}

BOOST_AUTO_TEST_CASE(one_that_comes_and_goes_is_not_told) {
  address_watch w({"a"});
  for (nanoseconds now = 0; now < 20 * appear; now += appear / 2) {
    w.observe(now, now / (appear / 2) % 2 == 0 ? list{"a", "b"} : list{"a"});
    BOOST_TEST(!w.take(now));
  }
}

BOOST_AUTO_TEST_CASE(one_that_is_gone_for_long_is_taken_back) {
  address_watch w({"a", "b"});
  w.observe(1, {"b"});
  BOOST_TEST(*w.due() == 1 + vanish);
  BOOST_TEST(!w.take(vanish));
  check(w.take(1 + vanish), {"b"});
  BOOST_TEST(!w.due());
}

BOOST_AUTO_TEST_CASE(one_that_returns_in_time_was_never_gone) {
  address_watch w({"a", "b"});
  w.observe(1, {"b"});
  w.observe(vanish, {"a", "b"});
  BOOST_TEST(!w.due());
  BOOST_TEST(!w.take(9 * vanish));
}

BOOST_AUTO_TEST_CASE(the_last_ones_stay_until_there_is_another) {
  address_watch w({"a"});
  w.observe(1, {});
  BOOST_TEST(!w.due());
  BOOST_TEST(!w.take(9 * vanish));
  w.observe(9 * vanish, {"b"});
  // Both changes are ripe at once: one view.
  check(w.take(9 * vanish + appear), {"b"});
  BOOST_TEST(!w.due());
}

BOOST_AUTO_TEST_CASE(peers_that_may_return_are_named_last) {
  address_watch w({"a"});
  w.observe(1, {"b"});
  check(w.take(1 + appear), {"b", "a"});
  check(w.take(1 + vanish), {"b"});
}

BOOST_AUTO_TEST_CASE(more_than_the_limit_are_passed_over) {
  address_watch w({"a"});
  list many;
  for (std::size_t i = 0; i < 2 * address_watch::addresses_max; ++i)
    many.push_back(std::to_string(i));
  w.observe(1, many);
  BOOST_TEST(w.take(1 + appear)->size() == address_watch::addresses_max + 1);
}

BOOST_AUTO_TEST_SUITE_END()
