// tests/apps/chaos/chaos_rules_test.cpp -- faults by seed, and the losses of a
// run.
#include "apps/chaos/chaos.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>

BOOST_AUTO_TEST_SUITE(chaos_figures)

using namespace shoal::core;
using namespace shoal::core::chaos;

namespace {

constexpr nanoseconds second = 1'000'000'000;
const std::vector<fault_kind> every{all_kinds.begin(), all_kinds.end()};

std::vector<fault> faults(std::uint64_t seed, std::uint32_t peers, int count,
                          const std::vector<fault_kind>& kinds = every) {
  fault_sequence draw(seed, peers, kinds);
  std::vector<fault> out;
  for (int i = 0; i < count; ++i)
    out.push_back(draw.next());
  return out;
}

harm harmed(fault_kind kind, int from, int until, std::uint32_t permille = 0) {
  harm h;
  h.what = {kind, 0, {}, (until - from) * second, permille};
  h.from = from * second;
  h.until = until * second;
  return h;
}

/// A step each second of [first, last], but those of [dead, back).
record steady(int first, int last, int dead, int back) {
  record r;
  std::uint64_t step = 0;
  for (int t = first; t <= last; ++t)
    if (t < dead || t >= back)
      r.commits.push_back({++step, t * second});
  r.end = last * second;
  return r;
}

told_view
view_of(epoch number, std::size_t members, const std::string& digest = "d") {
  return {"shoal", number, digest, members, true};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_seed_gives_the_same_faults_again) {
  BOOST_TEST((faults(7, 4, 100) == faults(7, 4, 100)));
  BOOST_TEST((faults(7, 4, 100) != faults(8, 4, 100)));
}

BOOST_AUTO_TEST_CASE(the_values_of_a_seed_never_change) {
  const auto f = faults(1, 4, 4);
  std::string kinds;
  for (const fault& x : f)
    kinds += std::string(name_of(x.kind)) + std::to_string(x.peer) + " ";
  BOOST_TEST(kinds == "stop3 cut1 slow0 kill0 ");
}

BOOST_AUTO_TEST_CASE(each_round_has_every_kind_once) {
  const auto f = faults(3, 5, 400);
  for (std::size_t i = 0; i < f.size(); i += every.size()) {
    std::set<fault_kind> round;
    for (std::size_t k = 0; k < every.size(); ++k)
      round.insert(f[i + k].kind);
    BOOST_TEST(round.size() == every.size());
  }
}

BOOST_AUTO_TEST_CASE(faults_are_within_their_limits_and_reach_every_peer) {
  for (std::uint32_t peers : {2u, 3u, 8u}) {
    std::set<std::uint32_t> harmed;
    bool one = false, all = false;
    for (const fault& f : faults(peers, peers, 1000)) {
      harmed.insert(f.peer);
      BOOST_TEST(f.lasts >= lasts_min);
      BOOST_TEST(f.lasts <= lasts_max);
      if (f.kind == fault_kind::slow) {
        BOOST_TEST(f.runs_permille >= slow_permille_min);
        BOOST_TEST(f.runs_permille <= slow_permille_max);
      }
      if (f.kind != fault_kind::cut) {
        BOOST_TEST(!f.other.has_value());
        continue;
      }
      one = one || f.other;
      all = all || !f.other;
      if (f.other) {
        BOOST_TEST(*f.other < peers);
        BOOST_TEST(*f.other != f.peer);
      }
    }
    BOOST_TEST(harmed.size() == peers);
    BOOST_TEST(all);
    BOOST_TEST(one == (peers > 2)); // of two, one is all others
  }
}

BOOST_AUTO_TEST_CASE(only_the_kinds_asked_for_come) {
  for (const fault& f : faults(5, 3, 50, {fault_kind::stop}))
    BOOST_TEST((f.kind == fault_kind::stop));
}

BOOST_AUTO_TEST_CASE(kinds_have_names) {
  for (fault_kind kind : all_kinds)
    BOOST_TEST((kind_named(name_of(kind)) == kind));
  BOOST_TEST(!kind_named("burn"));
}

BOOST_AUTO_TEST_CASE(together_means_one_view_of_all_told_by_members) {
  view_watch w(2);
  BOOST_TEST(!w.together());
  w.told(0, view_of(3, 2));
  BOOST_TEST(!w.together());
  w.told(1, view_of(3, 2));
  BOOST_TEST(w.together());
  BOOST_TEST(w.newest() == 3u);
  told_view guest = view_of(3, 2);
  guest.member = false;
  w.told(1, guest);
  BOOST_TEST(!w.together());
  w.told(1, view_of(3, 2));
  w.told(0, view_of(4, 1, "e"));
  BOOST_TEST(!w.together());
  w.told(1, view_of(4, 1, "e"));
  BOOST_TEST(!w.together()); // one is missing
  w.told(0, view_of(5, 2, "f"));
  w.told(1, view_of(5, 2, "f"));
  BOOST_TEST(w.together());
  w.gone(1);
  BOOST_TEST(!w.together());
  BOOST_TEST(w.forks() == 0u);
}

BOOST_AUTO_TEST_CASE(two_views_of_one_number_are_a_fork) {
  view_watch w(2);
  w.told(0, view_of(3, 2));
  told_view other = view_of(3, 2, "x");
  other.shoal = "another"; // not the same shoal
  w.told(1, other);
  BOOST_TEST(w.forks() == 0u);
  w.told(1, view_of(3, 1, "x"));
  BOOST_TEST(w.forks() == 1u);
}

BOOST_AUTO_TEST_CASE(an_undisturbed_run_has_the_goodput_of_its_rate) {
  record r = steady(0, 100, 0, 0);
  BOOST_TEST(rate_of(r.commits, 10) == 10.0);
  const account a = make_account(r, {10, 4, 8}, 10);
  BOOST_TEST(a.goodput == 1.0, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(a.steps == 101u);
  BOOST_TEST(a.repeated == 0u);
  BOOST_TEST(a.missing == 0u);
  BOOST_TEST(a.after_all.count == 0u);
}

BOOST_AUTO_TEST_CASE(a_pause_is_the_longest_wait_that_a_fault_can_have_caused) {
  record r = steady(0, 100, 51, 60);
  r.harms = {harmed(fault_kind::kill, 20, 25),
             harmed(fault_kind::stop, 50, 55)};
  const account a = make_account(r, {10, 4, 8}, 10);
  BOOST_TEST(a.after_all.count == 2u);
  BOOST_TEST(a.after_all.longest == 10 * second);
  BOOST_TEST(a.after_all.median == 11 * second / 2);
  const pauses& kill = a.after[std::size_t(fault_kind::kill)];
  BOOST_TEST(kill.count == 1u);
  BOOST_TEST(kill.median == 1 * second);
  BOOST_TEST(kill.longest == 1 * second);
  BOOST_TEST(a.after[std::size_t(fault_kind::stop)].longest == 10 * second);
  BOOST_TEST(a.after[std::size_t(fault_kind::cut)].count == 0u);
}

BOOST_AUTO_TEST_CASE(a_run_that_stands_at_the_end_has_paused_until_then) {
  record r = steady(0, 10, 0, 0);
  r.harms = {harmed(fault_kind::kill, 9, 30)};
  r.end = 40 * second;
  const account a = make_account(r, {10, 4, 8}, 10);
  BOOST_TEST(a.after_all.longest == 30 * second);
}

BOOST_AUTO_TEST_CASE(goodput_is_of_the_capacity_that_was_left) {
  // A fifth of the time one of four is away, and nothing else is lost.
  record r = steady(0, 100, 0, 0);
  r.harms = {harmed(fault_kind::kill, 40, 60)};
  r.commits.resize(96); // 95 steps' worth: 80 + 20 * 3/4
  r.commits.back().at = 100 * second;
  BOOST_TEST(make_account(r, {10, 4, 8}, 10).goodput == 1.0,
             boost::test_tools::tolerance(1e-9));
  // Four on two processors: three can do as much.
  BOOST_TEST(make_account(r, {10, 4, 2}, 10).goodput == 0.95,
             boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(the_remaining_capacity_depends_on_the_fault) {
  const std::vector<harm> h = {harmed(fault_kind::kill, 0, 10),
                               harmed(fault_kind::slow, 10, 20, 300),
                               harmed(fault_kind::cut, 20, 30, 1000)};
  BOOST_TEST(left_at(h, 4, 5 * second) == 3.0);
  BOOST_TEST(left_at(h, 4, 15 * second) == 3.3,
             boost::test_tools::tolerance(1e-9));
  BOOST_TEST(left_at(h, 4, 25 * second) == 3.0);
  BOOST_TEST(left_at(h, 4, 30 * second) == 4.0);
  auto pair = h;
  pair[2].what.other = 1; // both may work, with others
  BOOST_TEST(left_at(pair, 4, 25 * second) == 4.0);
}

BOOST_AUTO_TEST_CASE(steps_run_again_or_never_told_are_counted) {
  record r;
  for (std::uint64_t step : {1, 2, 3, 4, 3, 4, 5, 8})
    r.commits.push_back({step, nanoseconds(r.commits.size()) * second});
  r.end = 7 * second;
  const account a = make_account(r, {10, 4, 8}, 10);
  BOOST_TEST(a.steps == 6u);
  BOOST_TEST(a.repeated == 2u);
  BOOST_TEST(a.missing == 2u);
}

BOOST_AUTO_TEST_CASE(steps_that_another_knows_are_not_missing) {
  record r;
  for (std::uint64_t step : {1, 2, 6})
    r.commits.push_back({step, nanoseconds(step) * second});
  r.end = 6 * second;
  // Two tell of a step at slightly different times: it was one.
  fill_in(r.commits, {{2, 2 * second + 1},
                      {3, 3 * second},
                      {5, 5 * second},
                      {5, 5 * second + 1}});
  BOOST_TEST(r.commits.size() == 5u);
  BOOST_TEST(r.commits[2].step == 3u);
  const account a = make_account(r, {10, 4, 8}, 10);
  BOOST_TEST(a.missing == 1u);
  BOOST_TEST(a.repeated == 0u);
  BOOST_TEST(a.steps == 5u);
}

BOOST_AUTO_TEST_CASE(without_a_step_there_is_no_goodput) {
  record r;
  r.end = second;
  r.harms = {harmed(fault_kind::kill, 0, 1)};
  const account a = make_account(r, {10, 4, 8}, 10);
  BOOST_TEST(a.goodput == 0.0);
  BOOST_TEST(a.after[0].count == 1u);
  BOOST_TEST(a.after_all.longest == 0);
}

BOOST_AUTO_TEST_SUITE_END()
