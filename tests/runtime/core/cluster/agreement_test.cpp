// tests/runtime/core/cluster/agreement_test.cpp -- how long ballots are waited
// for.
#include "runtime/core/cluster/agreement.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_agreement {

using namespace shoal::core;
using namespace shoal::core::cluster;

namespace {

constexpr nanoseconds ms = 1'000'000;

peer_id peer(std::uint8_t n) {
  peer_id id{};
  id[0] = n;
  return id;
}

/// Three voters; `self` is not the one whose turn is first.
struct fixture {
  view base;
  peer_id self{};
  peer_id other{};
  std::optional<agreement> a;
  actions out;

  fixture() {
    base.number = 4;
    for (std::uint8_t n = 1; n <= 3; ++n) {
      member m;
      m.id = {peer(n), 1};
      base.members.push_back(m);
    }
    self = first_turn(base) == peer(1) ? peer(2) : peer(1);
    other = peer(3);
    a.emplace(agreement_config{self, 1});
    a->follow(base, true, nullptr);
  }

  view next() const {
    view v = base;
    ++v.number;
    return v;
  }

  /// Time at which a ballot that starts now without any answer is over.
  nanoseconds given_up(nanoseconds now) {
    a->propose(next(), now, out);
    while (a->deadline() != time_max) {
      now = a->deadline();
      a->on_tick(now, out);
    }
    return now;
  }
};

} // namespace

} // namespace cluster_agreement

BOOST_FIXTURE_TEST_SUITE(cluster_agreement, cluster_agreement::fixture)

BOOST_AUTO_TEST_CASE(each_ballot_in_vain_doubles_the_next_up_to_a_limit) {
  nanoseconds now = ms;
  for (const nanoseconds wanted :
       {300, 600, 1200, 2400, 4800, 9600, 10'000, 10'000}) {
    BOOST_TEST(a->timeout() == wanted * ms);
    const nanoseconds end = given_up(now);
    BOOST_TEST(end >= now + wanted * ms);
    BOOST_TEST(end <= now + wanted * ms + 100 * ms);
    now = std::max(end, a->quiet_until());
  }
  base.number = 5;
  a->follow(base, true, nullptr);
  BOOST_TEST(a->timeout() == 300 * ms); // for another view all begins anew
}

BOOST_AUTO_TEST_CASE(a_ballot_waits_for_measured_round_trips) {
  a->expect_round_trip(100 * ms);
  BOOST_TEST(a->timeout() == 300 * ms);
  a->expect_round_trip(400 * ms);
  BOOST_TEST(a->timeout() == 800 * ms);
  BOOST_TEST(given_up(ms) >= 800 * ms);
  BOOST_TEST(a->timeout() == 1600 * ms);
  a->expect_round_trip(9000 * ms);
  BOOST_TEST(a->timeout() == 18'000 * ms); // no limit is below the required
                                           // time
}

/// Two slow disks are no reason to ask for something else.
BOOST_AUTO_TEST_CASE(a_proposal_stays_until_it_is_refused) {
  const peer_id first = first_turn(base);
  a.emplace(agreement_config{first, 1});
  a->follow(base, true, nullptr);
  a->propose(next(), ms, out);
  std::size_t asked = 0;
  nanoseconds now = ms;
  while (now < 5000 * ms) {
    out.clear();
    a->on_tick(now = a->deadline(), out);
    asked += out.size();
  }
  BOOST_TEST(asked >= 5u);
  BOOST_TEST(asked <= 15u);
  a->on(self, accepted{base.shoal, base.number, {0, first}, 1}, now, out);
  BOOST_TEST(a->has_decided());
  a->follow(base, true, nullptr);
  a->propose(next(), now, out);
  a->on(self, refused{base.shoal, base.number, {0, first}, {3, other}}, now,
        out);
  BOOST_TEST(a->deadline() == a->quiet_until());
}

/// A slow proposer is not overtaken again and again.
BOOST_AUTO_TEST_CASE(a_ballot_of_another_that_was_in_vain_counts_as_well) {
  a->on(other, prepare{base.shoal, base.number, {1, other}}, ms, out);
  BOOST_TEST(!a->may_propose(200 * ms));
  BOOST_TEST(a->timeout() == 300 * ms);
  const nanoseconds quiet = a->quiet_until();
  BOOST_TEST(quiet >= 300 * ms);
  a->propose(next(), quiet, out);
  BOOST_TEST(a->timeout() == 600 * ms);
  a->on(other, prepare{base.shoal, base.number, {7, other}}, quiet, out);
  BOOST_TEST(a->quiet_until() >= quiet + 600 * ms);
}

BOOST_AUTO_TEST_SUITE_END()
