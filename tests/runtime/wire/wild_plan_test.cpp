// tests/runtime/wire/wild_plan_test.cpp -- plans of whatever view passes the
// codec: a peer that holds the key can make all plan it.
#include "runtime/core/planning/plan.hpp"
#include "runtime/wire/codec.hpp"
#include "tests/runtime/wire/random_message.hpp"
#include "tests/runtime/wire/wild_view.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(wild_plans)

namespace cl = core::cluster;

/// As it comes from another peer.
static core::view sent(const core::view& v) {
  envelope out;
  BOOST_TEST_REQUIRE(
    !codec::decode(codec::encode(cl::message(cl::decided{v})), out));
  return std::get<cl::decided>(std::get<cl::message>(out)).value;
}

/// Plans it, and calls the functions on a plan; the next view holds the plan,
/// and is read again.
static void plan(core::view v) {
  const core::plan p = core::make_plan(v);
  BOOST_TEST((core::make_plan(v).jobs == p.jobs));
  for (const core::assignment& a : p.jobs) {
    const core::job_entry* j = core::find_job(v, a.job);
    BOOST_TEST_REQUIRE((j != nullptr && j->state == core::job_state::running));
    (void)core::never_fits(v, *j);
    (void)core::to_text(v, a);
    BOOST_TEST(a.islands.size() == islands_of(*j));
    for (const core::island_place& at : a.islands) {
      (void)core::undisturbed(v, at);
      if (at.replicas.empty())
        continue;
      BOOST_TEST(core::predict(v, a.job, at).step >= 0);
      BOOST_TEST(core::longest_wait(v, a.job, at) >= 0);
    }
  }
  v.previous = p.jobs;
  BOOST_TEST((sent(v) == v));
}

BOOST_AUTO_TEST_CASE(any_view_that_is_read_can_be_planned) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 engine(seed);
      plan(sent(tests::wild_view(
        [&](std::uint64_t n) { return n == 0 ? 0 : engine() % n; },
        seed % 50 == 0 ? 40 : 8)));
    }
}

BOOST_AUTO_TEST_CASE(random_messages_can_be_planned) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed)
  plan(sent(tests::random_message(seed).view()));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
