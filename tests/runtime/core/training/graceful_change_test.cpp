// tests/runtime/core/training/graceful_change_test.cpp -- a change of
// assignment that can wait for the end of a step does, and no longer than that.
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(graceful_change)

namespace {

constexpr nanoseconds took = 300'000'000;

/// Peer 1 of a pipeline of two, in step 2; step 1 took `took`.
struct in_a_step {
  island_place place = make_place(1, 2);
  job_core core{make_config(1, 2)};

  in_a_step() {
    (void)core.step(ev::blobs_held{}, 0);
    (void)core.step(show(place), 0);
    (void)core.step(ev::halted{digest(place)}, 0);
    (void)core.step(ev::received{peer(2), make_seal(place, {}, {})}, 0);
    (void)core.step(ev::loaded{digest(place), 0}, 0);
    const auto out = core.step(ev::loaded{digest(place), 1}, 0);
    BOOST_REQUIRE(all<act::run_step>(out).size() == 1u);
    end_step(1, took);
    BOOST_REQUIRE(core.now_in() == job_core::phase::running);
    BOOST_REQUIRE(core.step_in_progress() == 2u);
  }

  ev::received vote_of_other(std::uint64_t step) const {
    const ev::prepared e = make_prepared(place, 2, 2, step);
    vote v;
    v.header = header_of(place);
    v.step = step;
    v.units = e.units;
    v.losses = e.losses;
    return {peer(2), v};
  }
  job_actions end_step(std::uint64_t step, nanoseconds now) {
    (void)core.step(make_prepared(place, 2, 1, step), now);
    job_actions out = core.step(vote_of_other(step), now);
    BOOST_REQUIRE(all<act::apply>(out).size() == 1u);
    for (auto& a : core.step(ev::applied{step}, now))
      out.push_back(a);
    return out;
  }
  /// The same, and a third peer that shall get a copy of all.
  island_place with_a_third(epoch since = 5) const {
    island_place b = place;
    b.since = since;
    b.sealers.push_back(id(3));
    b.arriving = {{id(3), 0, 4}};
    return b;
  }
  bool halts(const island_place& next, bool calm) {
    ev::view_changed e = show(next);
    e.calm = calm;
    return !all<act::halt>(core.step(e, took)).empty();
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(the_step_in_progress_is_finished_first) {
  in_a_step run;
  const island_place next = run.with_a_third();
  BOOST_TEST(!run.halts(next, true));
  BOOST_TEST(run.core.under().digest == digest(run.place));
  (void)run.core.step(ev::tick{}, 3 * took);
  BOOST_TEST((run.core.now_in() == job_core::phase::running));
  const auto out = run.end_step(2, 2 * took);
  const auto halt = all<act::halt>(out);
  BOOST_REQUIRE(halt.size() == 1u);
  BOOST_TEST(halt[0].digest == digest(next));
  BOOST_TEST(all<act::committed>(out).size() == 1u);
  BOOST_TEST(all<act::run_step>(out).empty());
  BOOST_TEST(run.core.held().at(0).step == 2u);
  // And its seal says so.
  const auto sent =
    all<act::send>(run.core.step(ev::halted{digest(next)}, 2 * took));
  BOOST_REQUIRE(sent.size() == 2u);
  BOOST_TEST(std::get<seal>(sent[0].message).last.version.step == 2u);
}

BOOST_AUTO_TEST_CASE(a_loss_a_retry_and_a_first_step_do_not_wait) {
  BOOST_TEST(in_a_step().halts(in_a_step().with_a_third(), false));
  in_a_step run;
  island_place retry = run.place;
  retry.since = 5;
  BOOST_TEST(run.halts(retry, true));

  const island_place alone = make_place(1, 1);
  job_core first = started(alone, 1);
  island_place next = alone;
  next.since = 5;
  next.arriving = {{id(3), 0, 3}};
  ev::view_changed e = show(next);
  e.calm = true;
  BOOST_TEST(all<act::halt>(first.step(e, 0)).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_step_that_takes_twice_as_long_is_given_up) {
  in_a_step run;
  BOOST_TEST(!run.halts(run.with_a_third(), true));
  BOOST_TEST(all<act::halt>(run.core.step(ev::tick{}, 3 * took)).empty());
  // Nor does another change prolong it.
  BOOST_TEST(!run.halts(run.with_a_third(6), true));
  const auto halt = all<act::halt>(run.core.step(ev::tick{}, 3 * took + 1));
  BOOST_REQUIRE(halt.size() == 1u);
  BOOST_TEST(halt[0].digest == digest(run.with_a_third(6)));
}

BOOST_AUTO_TEST_CASE(a_loss_meanwhile_ends_the_delay) {
  in_a_step run;
  BOOST_TEST(!run.halts(run.with_a_third(), true));
  BOOST_TEST(run.halts(run.with_a_third(6), false));
  const auto out = run.core.step(ev::tick{}, 9 * took);
  BOOST_TEST(all<act::halt>(out).empty()); // once
}

BOOST_AUTO_TEST_CASE(a_peer_of_the_step_that_has_halted_gives_it_up) {
  in_a_step run;
  const island_place next = run.with_a_third();
  BOOST_TEST(!run.halts(next, true));
  auto seal_of = [&](std::uint8_t p) {
    return run.core.step(ev::received{peer(p), make_seal(next, {}, {})}, took);
  };
  BOOST_TEST(all<act::halt>(seal_of(3)).empty()); // it takes no part
  BOOST_TEST(all<act::halt>(seal_of(2)).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_peer_that_learns_of_it_late_does_not_wait) {
  in_a_step run;
  const island_place next = run.with_a_third();
  const ev::received theirs{peer(2), make_seal(next, {}, {})};
  BOOST_TEST(all<act::halt>(run.core.step(theirs, took)).empty());
  BOOST_TEST(run.halts(next, true));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
