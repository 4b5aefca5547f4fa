// tests/runtime/store/claimed_blobs_test.cpp -- how long a client's uploads are kept
// for a job that is not submitted yet.
#include "runtime/store/claimed_blobs.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(claims_of_clients)

using core::blob_digest;

BOOST_AUTO_TEST_CASE(a_claim_ends_with_the_view_that_lists_its_job) {
  claimed_blobs claims;
  const blob_digest blob{1}, other{2};
  const claimed_blobs::time now{};
  const auto none = [](core::job_id) { return false; };
  const auto seven = [](core::job_id job) { return job == 7; };
  claims.claim(1, blob, now);
  BOOST_TEST(claims.claimed(blob, seven, now));
  BOOST_TEST(!claims.claimed(other, none, now));
  claims.submitted(1, 7);
  BOOST_TEST(claims.claimed(blob, none, now));
  BOOST_TEST(!claims.claimed(blob, seven, now));
  claims.claim(2, blob, now); // another client, which has not submitted
  BOOST_TEST(claims.claimed(blob, seven, now));
  claims.claim(1, other, now); // of the same job
  BOOST_TEST(!claims.claimed(other, seven, now));
}

BOOST_AUTO_TEST_CASE(a_claim_ends_a_minute_after_the_last_upload) {
  claimed_blobs claims;
  const blob_digest blob{1}, later{2};
  const auto none = [](core::job_id) { return false; };
  const claimed_blobs::time now{};
  const auto last = now + std::chrono::seconds(50);
  claims.claim(1, blob, now);
  claims.claim(1, later, last);
  const auto end = last + claimed_blobs::claimed_for;
  BOOST_TEST(claims.claimed(blob, none, end - std::chrono::nanoseconds(1)));
  BOOST_TEST(!claims.claimed(blob, none, end));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
