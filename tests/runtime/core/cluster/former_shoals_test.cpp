// tests/runtime/core/cluster/former_shoals_test.cpp -- last views of dissolved
// shoals, and the peers that must learn of them.
#include "runtime/core/cluster/local/former_shoals.hpp"
#include "runtime/core/cluster/local/limits.hpp"
#include "tests/runtime/core/cluster/cluster_local.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(cluster_former_shoals)

using namespace shoal::tests;

namespace {

view with(std::uint8_t of, epoch number, std::vector<std::uint8_t> members) {
  view v;
  v.shoal = shoal_of(of);
  v.number = number;
  for (std::uint8_t n : members)
    v.members.emplace_back().id.peer = peer(n);
  return v;
}

view ended(std::uint8_t of, std::vector<std::uint8_t> members) {
  view v = with(of, 7, std::move(members));
  v.dissolved_into = shoal_of(99);
  return v;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_late_member_gets_only_newer_news) {
  former_shoals f(peer(1));
  f.remember(ended(1, {1, 2}));
  BOOST_TEST(f.newer(shoal_of(1), 6) != nullptr);
  BOOST_TEST(f.newer(shoal_of(1), 7) == nullptr);
  BOOST_TEST(f.newer(shoal_of(2), 1) == nullptr);
}

BOOST_AUTO_TEST_CASE(one_view_of_each_shoal_and_the_newest_shoals_are_kept) {
  former_shoals f(peer(1));
  f.remember(with(1, 3, {1}));
  f.remember(ended(1, {1}));
  BOOST_TEST(f.views().size() == 1);
  BOOST_TEST(f.dissolved(shoal_of(1)) != nullptr);
  for (std::uint8_t n = 2; n <= former_max + 1; ++n)
    f.remember(ended(n, {1}));
  BOOST_TEST(f.views().size() == former_max);
  BOOST_TEST(f.dissolved(shoal_of(1)) == nullptr);
}

BOOST_AUTO_TEST_CASE(a_shoal_that_sent_us_away_goes_on) {
  former_shoals f(peer(1));
  f.remember(with(1, 3, {2, 3}));
  BOOST_TEST(f.dissolved(shoal_of(1)) == nullptr);
  BOOST_TEST(!f.others_depend_on_us(with(2, 8, {1})));
}

BOOST_AUTO_TEST_CASE(a_late_member_depends_on_us_if_too_few_others_know) {
  former_shoals f(peer(1));
  f.remember(ended(1, {1, 2, 3, 4, 5}));
  BOOST_TEST(f.others_depend_on_us(with(2, 8, {1, 2, 3})));
  BOOST_TEST(!f.others_depend_on_us(with(2, 8, {1, 2, 3, 4})));
  BOOST_TEST(!f.others_depend_on_us(with(2, 8, {1, 2, 3, 4, 5})));
  // In no other shoal yet: no member of the old one is with us.
  BOOST_TEST(f.others_depend_on_us(ended(1, {1, 2, 3, 4, 5})));
}

BOOST_AUTO_TEST_CASE(a_former_member_of_it_may_be_late_too) {
  former_shoals f(peer(1));
  view last = ended(1, {1, 2});
  last.lapsed = {peer(9)};
  f.remember(last);
  BOOST_TEST(f.others_depend_on_us(with(2, 8, {1, 2})));
  BOOST_TEST(!f.others_depend_on_us(with(2, 8, {1, 2, 9})));
}

BOOST_AUTO_TEST_CASE(received_news_is_passed_on_only_when_we_leave) {
  former_shoals f(peer(1));
  f.remember(ended(1, {2, 3}));
  f.remember(ended(2, {1, 3}));
  const view ours = with(3, 8, {1});
  BOOST_TEST(f.known_to_us_alone(ours, true).size() == 2);
  const auto own = f.known_to_us_alone(ours, false);
  BOOST_TEST_REQUIRE(own.size() == 1);
  BOOST_TEST((own[0]->shoal == shoal_of(2)));
}

BOOST_AUTO_TEST_CASE(it_is_due_some_time_after_another_shoal_was_joined) {
  former_shoals f(peer(1));
  f.joined_another(5);
  BOOST_TEST(f.due() == time_max); // nothing to tell
  f.remember(ended(1, {1, 2}));
  f.joined_another(5);
  BOOST_TEST(f.due() == 5 + former_patience);
  f.told();
  BOOST_TEST(f.due() == time_max);
}

BOOST_AUTO_TEST_CASE(shoals_that_came_over_count_as_superseded_and_ours_never) {
  former_shoals f(peer(1));
  view last = ended(1, {1, 2});
  last.superseded = {{shoal_of(5), 3}, {shoal_of(99), 4}};
  f.remember(last);
  view ours = with(2, 8, {1});
  ours.superseded = {{shoal_of(6), 2}, {shoal_of(2), 1}};
  const std::vector<superseded_shoal> expected = {{shoal_of(5), 3},
                                                  {shoal_of(6), 2}};
  BOOST_TEST((f.superseded(ours) == expected));
}

BOOST_AUTO_TEST_SUITE_END()
