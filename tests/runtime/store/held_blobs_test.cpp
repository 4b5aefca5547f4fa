// tests/runtime/store/held_blobs_test.cpp -- how long a pledge to keep a blob lasts.
#include "runtime/store/held_blobs.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(pledges)

using namespace shoal::runtime;
using shoal::core::blob_digest;

namespace {

bool none_ended(shoal::core::job_id) {
  return false;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_pledge_ends) {
  held_blobs held;
  const blob_digest blob{1};
  const held_blobs::time now{};
  held.pledge(blob, 1, now);
  held.pledge(blob, 1, now + std::chrono::seconds(1));
  const auto end = now + std::chrono::seconds(1) + store::pledged_for;
  BOOST_TEST(held.pledged(blob, none_ended, end - std::chrono::nanoseconds(1)));
  BOOST_TEST(!held.pledged(blob, none_ended, end));
}

/// The files of a model that had ended held the room of the next one for a minute, on
/// each peer that other peers had asked to keep them.
BOOST_AUTO_TEST_CASE(a_pledge_ends_with_its_job) {
  held_blobs held;
  const blob_digest blob{1}, after{1, 1};
  const held_blobs::time now{};
  held.pledge(blob, 1, now);
  held.pledge(after, 3, now);
  const auto ended = [](shoal::core::job_id job) { return job == 1; };
  BOOST_TEST(held.pledged(blob, none_ended, now));
  BOOST_TEST(!held.pledged(blob, ended, now));
  held.pledge(blob, 2, now); // the same files, for another job
  BOOST_TEST(held.pledged(blob, ended, now));
}

BOOST_AUTO_TEST_CASE(a_blob_is_pledged_to_a_bounded_number_of_jobs) {
  held_blobs held;
  const blob_digest blob{1};
  const held_blobs::time now{};
  for (shoal::core::job_id job = 1; job <= held_blobs::pledges_max; ++job)
    BOOST_TEST(held.pledge(blob, job, now));
  BOOST_TEST(!held.pledge(blob, 1000, now));
  BOOST_TEST(held.pledge(blob, 1, now)); // again
  BOOST_TEST(held.pledge({2}, 1000, now));
  BOOST_TEST(held.pledge(blob, 1000, now + store::pledged_for));
}

BOOST_AUTO_TEST_SUITE_END()
