// tests/runtime/core/cluster/rival_shoals_test.cpp -- which of two shoals that
// meet goes on.
#include "runtime/core/cluster/local/limits.hpp"
#include "runtime/core/cluster/local/rival_shoals.hpp"
#include "tests/runtime/core/cluster/cluster_local.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_rival_shoals {

using namespace shoal::tests;

namespace {

key_digest same_bytes(const cluster_key& key) {
  return key;
}

struct fixture {
  standing s{{1, 2}};
  key_ring keys{cluster_key{1}, same_bytes};
  former_shoals former{peer(1)};
  std::string cluster = "default";

  rival_shoals rivals(bool embedded = false) const {
    return {s.here(), keys, former, cluster, embedded};
  }

  /// Of shoal `of`, which could admit us.
  static hello from(std::uint8_t of) {
    hello h;
    h.cluster = "default";
    h.shoal = shoal_of(of);
    h.members = 2;
    h.joinable = true;
    h.key = {1};
    return h;
  }

  const contact& meet(std::uint8_t id, const hello& h) {
    s.connected.add(peer(id), 1);
    s.connected.hear(peer(id), h, s.now);
    return *s.connected.find(peer(id));
  }

  void run_job(job_id id) { s.current.jobs.emplace_back().id = id; }
};

} // namespace

} // namespace cluster_rival_shoals

BOOST_FIXTURE_TEST_SUITE(cluster_rival_shoals, cluster_rival_shoals::fixture)

BOOST_AUTO_TEST_CASE(of_two_equal_shoals_the_lower_id_goes_on) {
  BOOST_TEST((rivals().judge(meet(8, from(9))) == verdict::goes_on));
  BOOST_TEST((rivals().judge(meet(7, from(0))) == verdict::dissolves));
  BOOST_TEST((rivals(true).judge(meet(8, from(9))) == verdict::dissolves));
}

BOOST_AUTO_TEST_CASE(
  the_larger_shoal_and_then_the_one_with_more_to_keep_goes_on) {
  hello other = from(9);
  other.members = 3;
  BOOST_TEST((rivals().judge(meet(8, other)) == verdict::dissolves));
  s.current.invites.emplace_back();
  BOOST_TEST((rivals().judge(meet(8, other)) == verdict::goes_on));
  other.jobs = {5}; // one that has ended
  BOOST_TEST((rivals().judge(meet(8, other)) == verdict::dissolves));
}

BOOST_AUTO_TEST_CASE(two_shoals_that_run_jobs_stay_apart_and_say_so) {
  run_job(4);
  hello other = from(9);
  BOOST_TEST((rivals().judge(meet(8, other)) == verdict::stays_apart));
  BOOST_TEST(rivals().why_apart(meet(8, other)).empty()); // it can end
  other.jobs = {5};
  other.running = 1;
  BOOST_TEST(!rivals().why_apart(meet(8, other)).empty());
}

BOOST_AUTO_TEST_CASE(shoals_that_would_be_too_large_together_stay_two) {
  hello other = from(0);
  other.members = members_max - 1;
  BOOST_TEST((rivals().judge(meet(8, other)) == verdict::goes_on));
}

BOOST_AUTO_TEST_CASE(
  a_shoal_with_a_newer_key_goes_on_and_one_with_an_older_is_not_joined) {
  hello newer = from(9);
  newer.key = {2};
  newer.replaced = {{1}};
  BOOST_TEST((rivals().judge(meet(8, newer)) == verdict::dissolves));
  meet(7, from(0)); // goes before it, but by its id alone
  BOOST_TEST((rivals().best(0).first == peer(8)));
  keys.hold({3});
  view v;
  v.key = {3};
  keys.take_into_use(v);
  s.connected.remove(peer(8));
  BOOST_TEST(rivals().best(0).second == nullptr); // K-4
}

BOOST_AUTO_TEST_CASE(
  the_best_contact_is_of_the_shoal_that_goes_before_the_others) {
  meet(7, from(9));
  meet(8, from(5));
  meet(9, from(5));
  BOOST_TEST((rivals().best(0).first == peer(9)));
  BOOST_TEST((rivals().best(1).first == peer(8))); // another at each attempt
  s.now = hello_life + 1;
  BOOST_TEST(rivals().best(0).second == nullptr); // silent for too long
}

BOOST_AUTO_TEST_CASE(
  a_contact_of_another_cluster_or_of_our_shoal_admits_nobody) {
  hello other = from(0);
  other.cluster = "another";
  meet(8, other);
  meet(9, from(1));
  BOOST_TEST(rivals().best(0).second == nullptr);
  s.seated = false; // then our former shoal is one of them
  BOOST_TEST((rivals().best(0).first == peer(9)));
}

BOOST_AUTO_TEST_CASE(
  a_shoal_made_by_force_takes_our_jobs_only_if_all_came_back) {
  run_job(4);
  hello forced = from(9);
  forced.superseded = {{shoal_of(1), 5}};
  forced.jobs = {4};
  forced.running = 1;
  const contact& other = meet(8, forced);
  BOOST_TEST(rivals().superseding() == &other);
  // Our members of view 1 were never gone.
  BOOST_TEST((rivals().judge(other) == verdict::stays_apart));
  BOOST_TEST(rivals().why_apart(other).find("this shoal joins that one")
             != std::string::npos);
  for (member& m : s.current.members)
    m.id.incarnation = 6;
  // They have come since, but some of ours stayed until then.
  BOOST_TEST((rivals().judge(other) == verdict::stays_apart));
  s.current.outages = {4, 6};
  BOOST_TEST((rivals().judge(other) == verdict::stays_apart));
  s.current.outages = {4, 5, 6};
  BOOST_TEST(rivals().may_give_up_jobs(other));
  BOOST_TEST((rivals().judge(other) == verdict::dissolves));
  run_job(5); // which it does not have
  BOOST_TEST((rivals().judge(other) == verdict::stays_apart));
}

BOOST_AUTO_TEST_CASE(
  a_shoal_that_ours_replaced_yields_unless_it_runs_what_we_lack) {
  s.current.superseded = {{shoal_of(9), 5}};
  hello old = from(9);
  old.members = 7;
  BOOST_TEST((rivals().judge(meet(8, old)) == verdict::goes_on));
  old.jobs = {5};
  old.running = 1;
  BOOST_TEST((rivals().judge(meet(8, old)) == verdict::dissolves));
}

BOOST_AUTO_TEST_SUITE_END()
