// tests/runtime/core/serving/pages_test.cpp -- pages of sequences, and shared ones.
#include "runtime/core/serving/pages.hpp"
#include "tests/runtime/core/serving/some_text.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace shoal::core;

namespace {

std::vector<token_id>
joined(std::vector<token_id> a, const std::vector<token_id>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A sequence of which all tokens have been computed.
page_pool::table filled(page_pool& pool, const std::vector<token_id>& tokens) {
  page_pool::table t = pool.begin(tokens);
  BOOST_REQUIRE(pool.grow(t, tokens.size()));
  pool.computed(t, tokens);
  return t;
}

} // namespace

BOOST_AUTO_TEST_SUITE(serving_pages)

BOOST_AUTO_TEST_CASE(a_sequence_has_a_page_for_each_sixteen_tokens) {
  page_pool pool(4);
  page_pool::table t = pool.begin(text(17));
  BOOST_TEST(t.pages().empty());
  BOOST_TEST(pool.grow(t, 17));
  BOOST_TEST(t.pages().size() == 2u);
  BOOST_TEST(pool.grow(t, 32)); // within the second page
  BOOST_TEST(t.pages().size() == 2u);
  BOOST_TEST(!pool.grow(t, 65));
  BOOST_TEST(t.pages().size() == 2u);
  BOOST_TEST(pool.available() == 2u);
  pool.end(t);
  BOOST_TEST(pool.available() == 4u);
  BOOST_TEST(pool.kept() == 0u); // nothing had been computed
}

BOOST_AUTO_TEST_CASE(full_pages_with_the_same_beginning_are_shared) {
  page_pool pool(8);
  page_pool::table a = filled(pool, text(40)); // 2 full pages and a half
  page_pool::table b = pool.begin(joined(text(32), text(10, 100)));
  BOOST_TEST(b.shared() == 2u);
  BOOST_TEST(b.pages()[0] == a.pages()[0]);
  BOOST_TEST(b.pages()[1] == a.pages()[1]);
  BOOST_TEST(pool.available() == 5u);
  page_pool::table c = pool.begin(joined(text(16), text(30, 200)));
  BOOST_TEST(c.shared() == 1u);
  pool.end(a);
  pool.end(b);
  pool.end(c);
  BOOST_TEST(pool.available() == 8u);
  BOOST_TEST(pool.kept() == 2u);
}

BOOST_AUTO_TEST_CASE(the_last_token_is_always_computed) {
  page_pool pool(8);
  page_pool::table a = filled(pool, text(32));
  BOOST_TEST(pool.match(text(32)) == 16u);
  BOOST_TEST(pool.match(text(33)) == 32u);
  BOOST_TEST(pool.match({}) == 0u);
  BOOST_TEST(pool.begin({}).pages().empty());
  pool.end(a);
}

BOOST_AUTO_TEST_CASE(pages_are_kept_until_they_are_needed_the_oldest_first) {
  page_pool pool(4);
  page_pool::table a = filled(pool, text(32)), b = filled(pool, text(32, 50));
  pool.end(a);
  pool.end(b);
  BOOST_TEST(pool.kept() == 4u);
  page_pool::table c = pool.begin(text(10, 90));
  BOOST_TEST(pool.grow(c, 16));
  BOOST_TEST(pool.match(text(33)) == 16u); // its last page has gone
  BOOST_TEST(pool.match(text(33, 50)) == 32u);
  BOOST_TEST(pool.grow(c, 32));
  BOOST_TEST(pool.match(text(33)) == 0u);
  BOOST_TEST(pool.match(text(33, 50)) == 32u);
  pool.end(c);
  BOOST_TEST(pool.available() == 4u);
}

BOOST_AUTO_TEST_CASE(pages_in_use_are_never_given_away) {
  page_pool pool(3);
  page_pool::table a = filled(pool, text(32));
  page_pool::table b = pool.begin(text(40)); // uses both
  pool.end(a);
  BOOST_TEST(pool.available() == 1u);
  page_pool::table c = pool.begin(text(1, 70));
  BOOST_TEST(!pool.grow(c, 17));
  BOOST_TEST(pool.grow(c, 16));
  BOOST_TEST(std::ranges::count(b.pages(), c.pages()[0]) == 0);
  pool.end(b);
  pool.end(c);
}

/// Two that compute the same at once: one page for both afterwards.
BOOST_AUTO_TEST_CASE(equal_pages_become_one) {
  page_pool pool(6);
  page_pool::table a = pool.begin(text(20)), b = pool.begin(text(20));
  BOOST_TEST(pool.grow(a, 20));
  BOOST_TEST(pool.grow(b, 20));
  pool.computed(a, text(20));
  BOOST_TEST(pool.available() == 2u);
  pool.computed(b, text(20));
  BOOST_TEST(pool.available() == 3u);
  BOOST_TEST(a.pages()[0] == b.pages()[0]);
  BOOST_TEST(a.pages()[1] != b.pages()[1]);
  pool.end(b);
  BOOST_TEST(pool.match(text(20)) == 16u);
  pool.end(a);
  BOOST_TEST(pool.available() == 6u);
}

BOOST_AUTO_TEST_SUITE_END()
