// tests/runtime/core/training/checkpoint_rounds_test.cpp -- the checkpoints of
// one assignment, by themselves.
#include "runtime/core/training/job/state/checkpoint_rounds.hpp"
#include "runtime/core/training/shards.hpp"
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_checkpoint_rounds)

namespace {

blob_digest manifest_of(std::uint64_t step) {
  blob_digest m{};
  m[0] = std::uint8_t(step);
  return m;
}

/// One of three replicas; 1 publishes, 1 and 2 keep.
struct one_of_three {
  explicit one_of_three(std::uint8_t self)
    : d(duty_under(place(), {7, 0}, peer(self))) {}

  static island_place place() {
    island_place a = make_place(3, 1);
    a.keepers = {id(1), id(2)};
    return a;
  }
  checkpoint_published published(std::uint64_t step) const {
    checkpoint_published m;
    m.header = d.header;
    m.checkpoint = {step, manifest_of(step), d.header.since};
    return m;
  }
  job_actions begin(std::uint64_t step) {
    job_actions out;
    rounds.begin(d, step, false, out);
    return out;
  }
  bool hear(const checkpoint_published& m, job_actions& out) {
    return rounds.take(d, peer(1), m, known, 0, out);
  }
  bool finish(std::uint64_t step, job_actions& out, bool complete = true) {
    job_event::checkpointed e;
    e.digest = d.header.digest;
    e.step = step;
    e.known = complete;
    if (complete)
      e.manifest = manifest_of(step);
    return rounds.take(d, e, step + 1, {peer(1), peer(2), peer(3)}, known, 0,
                       out);
  }
  void votes_say_unable(const std::vector<std::uint8_t>& peers) {
    std::map<peer_id, vote> votes;
    for (const std::uint8_t n : {1, 2, 3})
      votes[peer(n)].unable = std::ranges::find(peers, n) != peers.end();
    job_actions out;
    rounds.note(d, votes, 4, true, out);
  }

  duty d;
  checkpoint_rounds rounds{10, 1};
  known_checkpoints known;
};

} // namespace

BOOST_AUTO_TEST_CASE(the_checkpointer_publishes_unless_its_disk_refuses) {
  one_of_three p(1);
  auto run = all<act::run_checkpoint>(p.begin(5));
  BOOST_REQUIRE(run.size() == 1u);
  BOOST_TEST((run[0].publisher == peer(1)));
  BOOST_TEST(run[0].unable.empty());
  BOOST_TEST(p.rounds.publishing(p.d, 6));
  p.votes_say_unable({1});
  run = all<act::run_checkpoint>(p.begin(15));
  BOOST_TEST((run[0].publisher == peer(2)));
  BOOST_TEST((run[0].unable == std::vector{peer(1)}));
  BOOST_TEST(!p.rounds.publishing(p.d, 16));
}

/// Others may have published some long ago, which took long.
BOOST_AUTO_TEST_CASE(the_lag_is_that_of_the_peer_that_publishes) {
  one_of_three p(3);
  std::map<peer_id, vote> votes;
  for (const std::uint8_t n : {1, 2, 3})
    votes[peer(n)].checkpoint_lag = n;
  job_actions out;
  p.rounds.note(p.d, votes, 4, true, out);
  BOOST_TEST(p.rounds.agreed_lag() == 1u);
  votes[peer(1)].unable = true;
  p.rounds.note(p.d, votes, 5, true, out);
  BOOST_TEST(p.rounds.agreed_lag() == 2u);
  votes[peer(2)].checkpoint_lag = 0; // it has published none yet
  p.rounds.note(p.d, votes, 6, true, out);
  BOOST_TEST(p.rounds.agreed_lag() == 2u);
}

/// For the status, which names them.
BOOST_AUTO_TEST_CASE(disks_that_refuse_are_known_from_votes_and_checkpoints) {
  one_of_three p(1);
  BOOST_TEST(p.rounds.refusing(p.d).empty());
  p.votes_say_unable({3});
  BOOST_TEST((p.rounds.refusing(p.d) == std::vector{peer(3)}));
  p.votes_say_unable({});
  BOOST_TEST(p.rounds.refusing(p.d).empty());
  // A peer that does not vote, or whose store refuses a published one.
  one_of_three q(2);
  job_actions out;
  checkpoint_published m = q.published(5);
  m.unable = {peer(3)};
  (void)q.hear(m, out);
  (void)q.rounds.take(q.d, ev::keep_refused{m.checkpoint}, out);
  BOOST_TEST((q.rounds.refusing(q.d) == std::vector{peer(2)}));
  q.d.participants = {peer(1)};
  BOOST_TEST((q.rounds.refusing(q.d) == std::vector{peer(2), peer(3)}));
}

/// It was passed over until the plan changed.
BOOST_AUTO_TEST_CASE(a_keeper_whose_disk_refused_is_tried_again) {
  one_of_three p(2);
  job_actions out;
  std::uint64_t step = 5;
  const auto publish = [&] {
    out.clear();
    step += 10;
    (void)p.hear(p.published(step), out);
    return !all<act::keep_checkpoint>(out).empty();
  };
  const auto refuse = [&] {
    (void)p.rounds.take(p.d, ev::keep_refused{p.published(step).checkpoint},
                        out);
  };
  BOOST_TEST(publish());
  std::vector<int> passed; // checkpoints that were left to others
  for (int tries = 0; tries < 7; ++tries) {
    refuse();
    passed.push_back(0);
    while (!publish()) {
      ++passed.back();
      const auto sent = all<act::send>(out);
      BOOST_TEST_REQUIRE(!sent.empty());
      BOOST_TEST(std::get<have_checkpoint>(sent[0].message).refused);
      BOOST_TEST_REQUIRE(passed.back() < 100);
    }
  }
  BOOST_TEST((passed == std::vector{1, 3, 7, 15, 31, 63, 63}));
  // Once it has kept one, a refusal is a new one.
  p.known.hold(p.published(step).checkpoint, peer(2));
  out.clear();
  BOOST_TEST(p.rounds.held(p.d, p.published(step).checkpoint, p.known, out));
  BOOST_TEST(p.rounds.refusing(p.d).empty());
  BOOST_TEST(publish());
  refuse();
  BOOST_TEST(!publish());
  BOOST_TEST(publish());
}

BOOST_AUTO_TEST_CASE(a_result_is_sent_to_all_others_and_held) {
  one_of_three p(1);
  (void)p.begin(5);
  job_actions out;
  BOOST_TEST(p.finish(5, out));
  BOOST_TEST(all<act::send>(out).size() == 2u);
  BOOST_TEST(all<act::checkpoint_known>(out).size() == 1u);
  BOOST_TEST(p.known.newest().step == 5u);
  BOOST_TEST(p.rounds.told(5));
  BOOST_TEST(!p.rounds.told(6));
}

BOOST_AUTO_TEST_CASE(a_failure_does_not_replace_a_later_checkpoint) {
  one_of_three p(1);
  (void)p.begin(5);
  (void)p.begin(15);
  job_actions out;
  BOOST_TEST(p.finish(15, out));
  out.clear();
  BOOST_TEST(!p.finish(5, out, false));
  BOOST_TEST(out.empty());
}

BOOST_AUTO_TEST_CASE(a_keeper_fetches_what_was_published_and_reports_it) {
  one_of_three p(2);
  job_actions out;
  BOOST_TEST(p.hear(p.published(5), out));
  const auto keep = all<act::keep_checkpoint>(out);
  BOOST_REQUIRE(keep.size() == 1u);
  BOOST_TEST((keep[0].at == peer(1)));
  BOOST_TEST(!p.rounds.kept(p.d, 5, 0));
  out.clear();
  p.known.hold(keep[0].checkpoint, peer(2));
  BOOST_TEST(p.rounds.held(p.d, keep[0].checkpoint, p.known, out));
  BOOST_TEST(p.rounds.kept(p.d, 5, 0));
  const auto sent = all<act::send>(out);
  BOOST_REQUIRE(sent.size() == 2u);
  BOOST_TEST(!std::get<have_checkpoint>(sent[0].message).refused);
}

/// Three parts, each in two of three stores.
BOOST_AUTO_TEST_CASE(keepers_that_share_the_parts_fetch_their_own) {
  island_place a = one_of_three::place();
  a.part_keepers = {id(1), id(2), id(3)};
  const auto share = [&](std::uint8_t n) {
    return parts_kept_by(peer(n), a, 3, {});
  };
  const auto lacks = [&](std::uint8_t n) {
    part_set out(part_range{0, 3});
    out.remove(share(n));
    return out;
  };
  one_of_three p(2);
  p.d = duty_under(a, {7, 0}, peer(2));
  job_actions out;
  (void)p.hear(p.published(5), out);
  const auto keep = all<act::keep_checkpoint>(out);
  BOOST_REQUIRE(keep.size() == 1u);
  BOOST_TEST((keep[0].parts == share(2)));
  out.clear();
  const checkpoint_ref made = keep[0].checkpoint;
  p.known.hold(made, peer(2), lacks(2));
  BOOST_TEST(p.rounds.held(p.d, made, p.known, out));
  const auto sent = all<act::send>(out);
  BOOST_REQUIRE(sent.size() == 2u);
  BOOST_TEST(
    (std::get<have_checkpoint>(sent[0].message).lacks == lacks(2).runs()));
  BOOST_TEST(!p.rounds.kept(p.d, 5, 0)); // 1 has gathered its parts, 3 has none
  (void)p.rounds.take(p.d, peer(3), {p.d.header, made, false, lacks(3).runs()},
                      p.known, out);
  BOOST_TEST(p.rounds.kept(p.d, 5, 0));
}

/// What a peer refuses is shared by the others; its publisher says so.
BOOST_AUTO_TEST_CASE(the_parts_of_a_peer_that_refuses_go_to_others) {
  island_place a = one_of_three::place();
  a.part_keepers = {id(1), id(2), id(3)};
  one_of_three p(1);
  p.d = duty_under(a, {7, 0}, peer(1));
  (void)p.begin(5);
  job_actions out;
  job_event::checkpointed e;
  e.digest = p.d.header.digest;
  e.step = 5;
  e.known = true;
  e.manifest = manifest_of(5);
  e.lacks = part_set(part_range{0, 3});
  e.lacks.remove(parts_gathered_by(peer(1), a, 3, {}));
  BOOST_REQUIRE(!e.lacks.empty());
  (void)p.rounds.take(p.d, e, 6, {peer(1), peer(2), peer(3)}, p.known, 0, out);
  const checkpoint_ref made = p.known.newest();
  out.clear();
  (void)p.rounds.take(p.d, peer(3), {p.d.header, made, true, {}}, p.known, out);
  const auto keep = all<act::keep_checkpoint>(out);
  BOOST_REQUIRE(keep.size() == 1u); // now 1 and 2 have all
  BOOST_TEST(keep[0].parts.size() == 3u);
  p.known.hold(made, peer(1));
  BOOST_TEST(p.rounds.held(p.d, made, p.known, out));
  BOOST_TEST(!p.rounds.kept(p.d, 5, 0));
  (void)p.rounds.take(p.d, peer(2), {p.d.header, made, false, {}}, p.known,
                      out);
  BOOST_TEST(p.rounds.kept(p.d, 5, 0));
}

BOOST_AUTO_TEST_CASE(a_peer_that_does_not_keep_fetches_nothing) {
  one_of_three p(3);
  job_actions out;
  (void)p.hear(p.published(5), out);
  BOOST_TEST(all<act::keep_checkpoint>(out).empty());
  BOOST_TEST(all<act::checkpoint_known>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(another_peer_keeps_what_a_keeper_refuses) {
  one_of_three p(3);
  job_actions out;
  (void)p.hear(p.published(5), out);
  out.clear();
  const have_checkpoint refused{p.d.header, p.published(5).checkpoint, true};
  BOOST_TEST(p.rounds.take(p.d, peer(2), refused, p.known, out));
  BOOST_TEST(all<act::keep_checkpoint>(out).size() == 1u);
  out.clear();
  BOOST_TEST(!p.rounds.take(p.d, peer(2), refused, p.known, out)); // again
  BOOST_TEST(out.empty());
}

BOOST_AUTO_TEST_CASE(a_keeper_that_refuses_tells_the_sealers) {
  one_of_three p(2);
  job_actions out;
  (void)p.hear(p.published(5), out);
  out.clear();
  BOOST_TEST(!p.rounds.take(p.d, {{4, manifest_of(4), 2}}, out)); // another
  BOOST_TEST(p.rounds.take(p.d, {p.published(5).checkpoint}, out));
  const auto sent = all<act::send>(out);
  BOOST_REQUIRE(sent.size() == 2u);
  BOOST_TEST(std::get<have_checkpoint>(sent[0].message).refused);
}

BOOST_AUTO_TEST_CASE(the_end_waits_for_a_second_store_for_a_time) {
  one_of_three p(1);
  (void)p.begin(5);
  job_actions out;
  (void)p.finish(5, out);
  const nanoseconds longest = checkpoint_rounds::keep_wait_max;
  BOOST_TEST(!p.rounds.kept(p.d, 5, longest - 1));
  BOOST_TEST(p.rounds.kept(p.d, 5, longest));
  const have_checkpoint have{p.d.header, p.published(5).checkpoint, false};
  BOOST_TEST(p.rounds.take(p.d, peer(2), have, p.known, out));
  BOOST_TEST(p.rounds.kept(p.d, 5, 0));
  p.rounds.halt(); // of another assignment nothing is known yet
  BOOST_TEST(!p.rounds.told(5));
}

BOOST_AUTO_TEST_CASE(the_end_waits_little_for_stores_that_refuse) {
  one_of_three p(1);
  p.votes_say_unable({2, 3});
  (void)p.begin(5);
  job_actions out;
  (void)p.finish(5, out);
  const nanoseconds longest = checkpoint_rounds::refused_wait_max;
  const have_checkpoint refused{p.d.header, p.published(5).checkpoint, true};
  BOOST_TEST(p.rounds.take(p.d, peer(3), refused, p.known, out));
  BOOST_TEST(
    !p.rounds.kept(p.d, 5, longest)); // 2 tries again: it may have room
  BOOST_TEST(p.rounds.take(p.d, peer(2), refused, p.known, out));
  BOOST_TEST(!p.rounds.kept(p.d, 5, longest - 1));
  BOOST_TEST(p.rounds.kept(p.d, 5, longest));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_in_a_single_store_is_made_again) {
  one_of_three p(1);
  resume_decision to;
  to.version = {5, 2};
  to.checkpoint = p.published(5).checkpoint;
  BOOST_TEST(p.rounds.resume(to, 0));
  to.checkpointed = true;
  BOOST_TEST(!p.rounds.resume(to, 0));
  to.checkpointed = false;
  to.version.step = 6; // of another step it can not be
  BOOST_TEST(!p.rounds.resume(to, 0));
}

BOOST_AUTO_TEST_CASE(the_last_one_is_handed_over_if_others_can_make_it) {
  one_of_three p(1);
  BOOST_TEST(p.rounds.hands_over(p.d, 5));
  p.votes_say_unable({1}); // then others make it anyway
  BOOST_TEST(!p.rounds.hands_over(p.d, 5));
  p.votes_say_unable({2, 3});
  BOOST_TEST(!p.rounds.hands_over(p.d, 5));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
