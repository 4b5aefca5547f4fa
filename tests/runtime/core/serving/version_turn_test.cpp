// tests/runtime/core/serving/version_turn_test.cpp -- when versions come and go.
#include "runtime/core/serving/version_turn.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::core {
BOOST_AUTO_TEST_SUITE(version_turns)

namespace {

using what = version_turn::what;
constexpr nanoseconds second = 1'000'000'000, start = 1000 * second;

version_state version(std::uint64_t step, bool ready = true) {
  return {step, ready, ready, false, start, start};
}

what at(nanoseconds later, const version_state& newest,
        const std::optional<version_state>& former,
        std::optional<std::uint64_t> checkpoint) {
  return turn_of(newest, former, checkpoint, start + later).to_do;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_checkpoint_waits_until_the_former_version_is_idle) {
  const auto newest = version(20);
  auto former = version(10);
  BOOST_TEST((at(0, newest, {}, 30) == what::next));
  BOOST_TEST((at(4 * second, newest, former, 30) == what::nothing));
  BOOST_TEST((at(5 * second, newest, former, 30) == what::next));
  BOOST_TEST(turn_of(newest, former, 30, start + 5 * second).keeps == 20u);
  former.streams = true;
  BOOST_TEST((at(500 * second, newest, former, 30) == what::nothing));
  BOOST_TEST((at(500 * second, newest, {}, 20) == what::nothing));
  BOOST_TEST((at(500 * second, newest, {}, {}) == what::nothing));
}

BOOST_AUTO_TEST_CASE(a_version_that_does_not_get_ready_is_replaced) {
  auto newest = version(20, false);
  const auto former = version(10);
  BOOST_TEST((at(59 * second, newest, former, 30) == what::nothing));
  BOOST_TEST((at(60 * second, newest, former, 30) == what::next));
  BOOST_TEST(turn_of(newest, former, 30, start + 60 * second).keeps == 10u);
  // Requests that waited for files that were gone kept it for ever.
  newest.streams = true;
  BOOST_TEST((at(60 * second, newest, former, 30) == what::next));
  newest.answers = true; // one of its pipelines
  BOOST_TEST((at(600 * second, newest, former, 30) == what::nothing));
  newest.streams = false;
  BOOST_TEST((at(60 * second, newest, former, 30) == what::next));
}

BOOST_AUTO_TEST_CASE(the_only_version_is_replaced_if_its_files_do_not_come) {
  auto newest = version(20, false); // it may just be large
  BOOST_TEST((at(299 * second, newest, {}, 30) == what::nothing));
  BOOST_TEST((at(300 * second, newest, {}, 30) == what::next));
  BOOST_TEST(turn_of(newest, {}, 30, start + 300 * second).keeps == 20u);
  BOOST_TEST((at(600 * second, newest, {}, 20) == what::nothing));
  newest.streams = true;
  BOOST_TEST((at(300 * second, newest, {}, 30) == what::next));
  // A former one that does not answer is no help, and in nobody's way.
  auto former = version(10, false);
  former.streams = true;
  BOOST_TEST((at(299 * second, newest, former, 30) == what::nothing));
  BOOST_TEST((at(300 * second, newest, former, 30) == what::next));
  BOOST_TEST(turn_of(newest, former, 30, start + 300 * second).keeps == 20u);
  newest = version(20);
  BOOST_TEST((at(59 * second, newest, former, 30) == what::nothing));
  BOOST_TEST((at(60 * second, newest, former, 30) == what::next));
  BOOST_TEST((at(59 * second, newest, former, 20) == what::nothing));
  BOOST_TEST((at(60 * second, newest, former, 20) == what::release));
}

BOOST_AUTO_TEST_CASE(a_former_version_without_streams_goes) {
  const auto newest = version(20);
  auto former = version(10);
  BOOST_TEST((at(59 * second, newest, former, {}) == what::nothing));
  BOOST_TEST((at(60 * second, newest, former, {}) == what::release));
  BOOST_TEST((at(60 * second, newest, former, 20) == what::release));
  BOOST_TEST(turn_of(newest, former, {}, start + 60 * second).keeps == 20u);
  BOOST_TEST((at(60 * second, version(20, false), former, {})
              == what::nothing)); // it is all there is
  BOOST_TEST((at(60 * second, newest, {}, {}) == what::nothing));
  former.streams = true;
  BOOST_TEST((at(600 * second, newest, former, {}) == what::nothing));
}

BOOST_AUTO_TEST_CASE(a_slow_client_makes_room_in_the_end) {
  const auto leaves = [](bool slow, bool next_waits, nanoseconds for_how_long) {
    return must_leave(slow, next_waits, start, start + for_how_long);
  };
  BOOST_TEST(leaves(true, true, 300 * second));
  BOOST_TEST(!leaves(true, true, 299 * second));
  BOOST_TEST(!leaves(false, true, 3000 * second));
  BOOST_TEST(!leaves(true, false, 3000 * second));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
