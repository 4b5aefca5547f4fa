// tests/actors/queue_sight_test.cpp -- which job is blamed for a long piece of
// work.
#include "actors/job/parts/queue_sight.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(queue_sight)

using namespace shoal;
using actors::busy_for;

namespace {

/// A queue with that piece in front.
struct shown_queue : runtime::device_queue {
  explicit shown_queue(piece_in_front p) : shown(p) {}
  void submit_pass(segments, std::function<void()>, label) override {}
  piece_in_front front() const override { return shown; }
  void close() override {}
  piece_in_front shown;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_job_is_blamed_for_its_own_work_and_for_nobodys) {
  constexpr core::job_id own = 7, other = 8, none = 0;
  for (const core::job_id job : {own, none}) {
    const shown_queue queue({1'000, job});
    BOOST_TEST(busy_for(queue, own, 31'000) == 30'000);
    BOOST_TEST(busy_for(queue, own, 1'000) == 1); // it has just begun
  }
  // However long the piece takes, but the queue counts as busy.
  const shown_queue others({1'000, other});
  BOOST_TEST(busy_for(others, own, 31'000) == 1);
  BOOST_TEST(busy_for(others, other, 31'000) == 30'000);
  BOOST_TEST(busy_for(others, 31'000) == 30'000); // of any job
}

BOOST_AUTO_TEST_CASE(an_empty_queue_is_not_busy) {
  const shown_queue queue({});
  BOOST_TEST(busy_for(queue, 7, 31'000) == 0);
  BOOST_TEST(busy_for(queue, 31'000) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
