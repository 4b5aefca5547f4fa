// tests/runtime/core/serving/router_test.cpp -- where sequences are sent to.
#include "runtime/core/serving/router.hpp"
#include "tests/runtime/core/serving/some_text.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(serving_router)

using namespace shoal::core;

namespace {

constexpr std::uint64_t room = 10'000, speed = 1000;

std::optional<std::uint32_t> island(std::uint32_t i) {
  return i;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_pipeline_that_is_free_first_is_chosen) {
  serve_router r;
  BOOST_TEST(!r.choose(text(10), 10));
  r.set({{0, 5, room, 300, speed}, {1, 5, room, 100, speed}});
  BOOST_TEST((r.choose(text(10), 10) == island(1)));
  r.set({{0, 5, room, 300, 10 * speed}, {1, 5, room, 100, speed}});
  BOOST_TEST((r.choose(text(10), 10) == island(0)));
}

BOOST_AUTO_TEST_CASE(a_new_pipeline_without_a_speed_gets_its_part) {
  serve_router r;
  r.set({{0, 5, room, 300, speed}, {1, 5, room, 0, 0}});
  BOOST_TEST((r.choose(text(10), 10) == island(1)));
  r.set({{0, 5, room, 0, 0}, {1, 5, room, 300, 0}});
  BOOST_TEST((r.choose(text(10), 10) == island(0)));
}

BOOST_AUTO_TEST_CASE(what_was_sent_waits_there) {
  serve_router r;
  r.set({{0, 5, room, 0, speed}, {1, 5, room, 50, speed}});
  BOOST_TEST((r.choose(text(100), 10) == island(0)));
  r.sent(0, text(100));
  BOOST_TEST((r.choose(text(100, 500), 10) == island(1)));
}

BOOST_AUTO_TEST_CASE(sequences_with_the_same_beginning_meet) {
  serve_router r;
  r.set({{0, 5, room, 0, speed}, {1, 5, room, 0, speed}});
  r.sent(1, text(100));
  r.set({{0, 5, room, 0, speed}, {1, 5, room, 20, speed}}); // nearly computed
  BOOST_TEST(r.cached(1, text(100)) == 96u);
  BOOST_TEST(r.cached(1, text(40)) == 32u);
  BOOST_TEST(r.cached(1, text(100, 1)) == 0u);
  BOOST_TEST((r.choose(text(120), 10) == island(1)));
  // Until the queue costs more than computing them again.
  r.set({{0, 5, room, 0, speed}, {1, 5, room, 97, speed}});
  BOOST_TEST((r.choose(text(120), 10) == island(0)));
}

BOOST_AUTO_TEST_CASE(long_sequences_go_where_there_is_room) {
  serve_router r;
  r.set({{0, 5, 200, 0, speed}, {1, 5, room, 5000, speed}});
  BOOST_TEST((r.choose(text(100), 100) == island(0)));
  BOOST_TEST((r.choose(text(100), 101) == island(1)));
  BOOST_TEST(!r.choose(text(100), room));
  // A short one leaves the large cache to others.
  r.set({{0, 5, room, 0, speed}, {1, 5, 200, 0, speed}});
  BOOST_TEST((r.choose(text(10), 10) == island(1)));
}

BOOST_AUTO_TEST_CASE(a_pipeline_with_another_place_has_an_empty_cache) {
  serve_router r;
  r.set({{0, 5, room, 0, speed}, {1, 5, room, 0, speed}});
  r.sent(0, text(64));
  r.sent(1, text(64));
  r.sent(7, text(64)); // there is none
  r.set({{0, 6, room, 0, speed}, {1, 5, room, 0, speed}});
  BOOST_TEST(r.cached(0, text(64)) == 0u);
  BOOST_TEST(r.cached(1, text(64)) == 64u);
  BOOST_TEST(r.cached(7, text(64)) == 0u);
}

BOOST_AUTO_TEST_CASE(the_oldest_is_forgotten) {
  serve_router r;
  r.set({{0, 5, room, 0, speed}});
  const std::size_t pages = 1024;
  for (std::size_t i = 0; i <= serve_router::remembered_max / pages; ++i)
    r.sent(0, text(pages * page_tokens, token_id(i * 100'000)));
  BOOST_TEST(r.cached(0, text(16)) == 0u);
  BOOST_TEST(r.cached(0, text(16, 100'000)) == 16u);
}

BOOST_AUTO_TEST_SUITE_END()
