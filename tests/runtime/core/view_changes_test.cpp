// tests/runtime/core/view_changes_test.cpp -- each change of a view is
// reported.
#include "runtime/core/view.hpp"
#include "runtime/core/view_changes.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"

#include <functional>

namespace shoal::core {
BOOST_AUTO_TEST_SUITE(view_changes)

namespace {

/// Members a, b and c, and a job.
view of_three() {
  view v = make_view(3);
  for (std::size_t i = 0; i < 3; ++i)
    v.members[i].name = std::string(1, char('a' + i));
  v.jobs[0].name = "run";
  v.shoal[0] = 0xab;
  return v;
}

std::string after(const std::function<void(view&)>& change) {
  const view before = of_three();
  view now = before;
  ++now.number;
  change(now);
  return changes_text(before, now);
}

} // namespace

BOOST_AUTO_TEST_CASE(unchanged_values_are_not_reported) {
  BOOST_TEST(after([](view&) {}).empty());
  BOOST_TEST(after([](view& v) { v.previous.clear(); }).empty());
}

BOOST_AUTO_TEST_CASE(invites_are_made_and_used) {
  BOOST_TEST(after([](view& v) { v.invites.emplace_back(); })
             == "an invite was made");
  view before = of_three();
  before.invites.emplace_back();
  view now = before;
  now.invites[0].used_by = now.members[0].id.peer;
  BOOST_TEST(changes_text(before, now) == "an invite was withdrawn");
  now.invites[0].used_by = make_member(9).id.peer;
  BOOST_TEST(changes_text(before, now) == "an invite was used");
  BOOST_TEST(changes_text(before, of_three()).empty()); // it has expired, say
}

BOOST_AUTO_TEST_CASE(members_come_and_go) {
  BOOST_TEST(after([](view& v) { v.members.pop_back(); }) == "c is gone");
  BOOST_TEST(after([](view& v) {
               v.members.push_back(make_member(9));
               v.members.back().name = "d";
             })
             == "d joined");
  BOOST_TEST(after([](view& v) { ++v.members[1].id.incarnation; })
             == "b joined");
  BOOST_TEST(after([](view& v) { ++v.members[1].instance; })
             == "b started again");
  BOOST_TEST(after([](view& v) { v.members[0].state = member_state::leaving; })
             == "a is leaving");
  BOOST_TEST(after([](view& v) {
               v.stalled.push_back({v.members[1].id.peer, 1, v.number});
               v.members.erase(v.members.begin() + 1);
             })
             == "b was expelled");
  BOOST_TEST(after([](view& v) {
               v.revoked.push_back(v.members[0].id.peer);
               v.members.erase(v.members.begin());
             })
             == "a was revoked");
  view before = of_three();
  before.members[2].state = member_state::leaving;
  view now = before;
  now.members.pop_back();
  BOOST_TEST(changes_text(before, now) == "c left");
  now = before;
  now.shoal[0] = 0xcd;
  BOOST_TEST(changes_text(before, now) == "this peer joined another shoal");
  now.superseded.push_back({before.shoal, before.number});
  BOOST_TEST(
    changes_text(before, now)
    == "a new shoal, made by `recover --force` in place of the former");
}

BOOST_AUTO_TEST_CASE(a_full_disk_has_no_room_rather_than_one_of_a_byte) {
  view before = of_three();
  view now = before;
  before.members[1].device.disk_bytes = 1u << 30;
  now.members[1].device.disk_bytes = 1;
  BOOST_TEST(
    changes_text(before, now)
    == "the disk of b has no room for files of served models (had 1 GiB)");
  BOOST_TEST(changes_text(now, before)
             == "the disk of b has room for 1 GiB of files of served models "
                "(had none)");
}

BOOST_AUTO_TEST_CASE(new_measurements_are_reported_with_both_values) {
  BOOST_TEST(after([](view& v) { v.members[1].device.mflops = 50'000; })
             == "b got slower (50.0 GFLOP/s, was 100.0)");
  BOOST_TEST(after([](view& v) { v.members[1].device.mflops = 200'000; })
             == "b got faster (200.0 GFLOP/s, was 100.0)");
  BOOST_TEST(after([](view& v) {
               v.members[2].device.memory_bytes = 1u << 30;
             }).starts_with("c offers 1 GiB of memory (was "));
  BOOST_TEST(after([](view& v) {
               v.members[0].networks = {{"n", 1, 1000}};
             })
             == "the network of a was measured");
  BOOST_TEST(after([](view& v) {
               v.cuts = {{v.members[0].id, v.members[2].id}};
             })
             == "a and c cannot reach each other");
}

BOOST_AUTO_TEST_CASE(a_job_gets_changes_of_other_jobs_and_not_its_own) {
  const view before = of_three();
  view now = before;
  now.jobs.push_back(now.jobs[0]);
  now.jobs[1].id = 6;
  now.jobs[1].name = "more";
  BOOST_TEST(changes_text(before, now, 5) == "job more was submitted");
  BOOST_TEST(changes_text(before, now, 6).empty());
  view later = now;
  later.jobs[1].state = job_state::done;
  BOOST_TEST(changes_text(now, later, 5) == "job more ended");
  later = now;
  set_mark(later.jobs[0], {mark_kind::retried, 0, 7, 0});
  set_mark(later.jobs[1], {mark_kind::arrived, 0, 7, 0});
  BOOST_TEST(changes_text(now, later, 5)
             == "the job did not get under way and is set up anew, state of "
                "job more has arrived at its new peers");
}

BOOST_AUTO_TEST_CASE(many_changes_are_counted) {
  view before = of_three();
  view now = make_view(9);
  now.shoal = before.shoal;
  now.members.erase(now.members.begin(), now.members.begin() + 3);
  const std::string text = changes_text(before, now);
  BOOST_TEST(text.starts_with("a is gone, b is gone, c is gone, "));
  BOOST_TEST(text.ends_with(" joined and 5 other changes"));
}

// A new node printed three ids and four views before one that counted.
BOOST_AUTO_TEST_CASE(the_first_lines_of_a_node_say_what_happens) {
  view alone = of_three();
  alone.members.resize(1);
  alone.jobs.clear();
  BOOST_TEST(view_line({nullptr, alone, true, true})
             == "alone so far: looking for other peers, ready for work");
  BOOST_TEST(
    view_line({nullptr, alone, true, false})
    == "alone so far: waiting for peers that join this one, ready for work");
  view dissolved = alone;
  view now = of_three();
  now.shoal[0] = 0xcd;
  dissolved.dissolved_into = now.shoal;
  BOOST_TEST(view_line({&alone, dissolved, false, true})
             == "found shoal cd000000: this peer asks to join it");
  BOOST_TEST(view_line({&dissolved, now, true, true})
             == "joined shoal cd000000: 3 peers (a b c), 1 job");
  BOOST_TEST(view_line({nullptr, now, true, true})
             == "joined shoal cd000000: 3 peers (a b c), 1 job");
  view forced = now;
  forced.members.resize(1);
  forced.superseded.push_back({alone.shoal, alone.number});
  BOOST_TEST(view_line({&alone, forced, true, true})
             == "made shoal cd000000 in place of shoal ab000000, by `recover "
                "--force`: 1 peer (a), 1 job");
  view two = now;
  ++two.number;
  two.members.pop_back();
  BOOST_TEST(view_line({&now, two, true, true})
             == "view 11: 2 peers (a b), 1 job; c is gone");
  BOOST_TEST(view_line({&now, two, false, true})
             == "view 11: 2 peers (a b), 1 job; this peer is not in it");
  BOOST_TEST(view_line({nullptr, two, false, true})
             == "view 11: 2 peers (a b), 1 job; this peer asks to be admitted "
                "again");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
