// tests/runtime/core/serving/pages_test.cpp -- pages of sequences, and shared ones.
#include "runtime/core/serving/pages.hpp"
#include "tests/runtime/core/serving/some_text.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>

BOOST_AUTO_TEST_SUITE(serving_pages)

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

// A window of 20: the row at position p sees from p - 19 on.
BOOST_AUTO_TEST_CASE(window_pages_are_those_that_the_next_rows_see) {
  page_pool pool(20, {5, 20});
  page_pool::table t = pool.begin(text(100));
  BOOST_TEST(pool.grow(t, 100, 30));
  BOOST_TEST(pool.windows_available() == 0u); // 5 of a ring for 30 rows
  pool.slide(t, 0, 30);
  BOOST_TEST(t.windows().size() == 2u);
  page_pool::table other = pool.begin(text(10, 500));
  BOOST_TEST(!pool.grow(other, 10));
  pool.slide(t, 30, 60); // sees from 11 on
  BOOST_TEST(t.windows().size() == 4u);
  pool.slide(t, 60, 90); // sees from 41 on: pages 0 and 1 are taken
  const auto w = t.windows();
  BOOST_TEST(w.size() == 6u);
  BOOST_TEST(std::set<page_id>(w.begin() + 2, w.end()).size() == 4u);
  BOOST_TEST(pool.grow(t, 91)); // it generates: fewer are enough
  pool.slide(t, 90, 91);
  BOOST_TEST(pool.grow(t, 92));
  BOOST_TEST(pool.windows_available() == 2u);
  BOOST_TEST(pool.grow(other, 10));
  pool.end(t);
  pool.end(other);
  BOOST_TEST(pool.windows_available() == 5u);
}

BOOST_AUTO_TEST_CASE(a_prefix_is_shared_as_far_as_its_window_is_there) {
  page_pool pool(40, {8, 20});
  const auto compute = [&](const std::vector<token_id>& tokens) {
    page_pool::table t = pool.begin(tokens);
    BOOST_REQUIRE(pool.grow(t, tokens.size(), 16));
    for (std::size_t at = t.shared() * page_tokens; at < tokens.size();) {
      const std::size_t end = std::min(at + 16, tokens.size());
      pool.slide(t, at, end);
      pool.computed(t, std::span(tokens).first(end));
      at = end;
    }
    return t;
  };
  page_pool::table t = compute(text(100));
  pool.end(t);
  // All six full pages, with the window pages that are kept of them.
  BOOST_TEST(pool.match(text(120)) == 96u);
  BOOST_TEST(pool.match(text(50)) == 48u);
  page_pool::table again = pool.begin(text(120));
  BOOST_TEST(again.windows().size() == 6u);
  BOOST_TEST(again.windows()[5] != again.windows()[4]);
  pool.end(again);
  // Another text needs all window pages: the oldest of the first one go, and
  // its other pages stay.
  page_pool::table other = compute(text(100, 500));
  pool.end(other);
  BOOST_TEST(pool.match(text(120, 500)) == 96u);
  BOOST_TEST(pool.match(text(120)) == 0u);
  BOOST_TEST(pool.kept() == 12u);
}

BOOST_AUTO_TEST_SUITE_END()
