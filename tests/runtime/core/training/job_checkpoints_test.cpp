// tests/runtime/core/training/job_checkpoints_test.cpp -- a job core's handling
// of checkpoints: its own, others', late ones, those of steps that were given
// up.
#include "tests/runtime/core/training/job_pieces.hpp"

BOOST_AUTO_TEST_SUITE(job_checkpoints)

using namespace shoal::test;

/// Peer 1 works, 2 and 3 keep; all steps and the last checkpoint are done.
job_core at_the_end(const island_place& a, const checkpoint_ref& last) {
  job_config c = make_config(1, 1);
  c.checkpoint_at_end = true;
  c.total_steps = 1;
  job_core core(c);
  (void)core.step(ev::blobs_held{}, 0);
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  const job_header header = header_of(a);
  for (std::uint8_t n : {2, 3}) {
    (void)core.step(ev::received{peer(n), make_seal(a, {}, {})}, 0);
    (void)core.step(ev::received{peer(n), have_blobs{header}}, 0);
  }
  for (std::uint32_t u = 0; u < 3; ++u)
    (void)core.step(ev::loaded{digest(a), u}, 0);
  (void)core.step(make_prepared(a, 1, 1, 1), 0);
  auto out = core.step(ev::applied{1}, 0);
  BOOST_REQUIRE(all<act::run_checkpoint>(out).size() == 1u);
  const bool good = last.manifest != blob_digest{};
  out = core.step(
    ev::checkpointed{digest(a), 1, good, last.manifest, 10, {}, false, {}}, 0);
  BOOST_TEST(all<act::finished>(out).size() == (good ? 0u : 1u));
  return core;
}

BOOST_AUTO_TEST_CASE(the_end_waits_for_a_second_store) {
  island_place a = make_place(1, 1);
  a.keepers = a.sealers = {id(1), id(2), id(3)};
  const job_header header = header_of(a);
  const checkpoint_ref last{1, {{9}}};
  auto ends = [](job_core& core, const job_input& e, nanoseconds at) {
    return all<act::finished>(core.step(e, at)).size() == 1;
  };
  job_core core = at_the_end(a, last);
  ev::received kept{peer(4), have_checkpoint{header, last}};
  BOOST_TEST(!ends(core, kept, 0)); // no keeper
  kept.from = peer(1);
  BOOST_TEST(!ends(core, kept, 0)); // its writer
  BOOST_TEST(
    !ends(core, ev::received{peer(3), have_checkpoint{header, {}}}, 0));
  kept.from = peer(2);
  BOOST_TEST(ends(core, kept, 0));
  BOOST_TEST(!ends(core, kept, 0)); // once

  job_core alone = at_the_end(a, last);
  BOOST_TEST(!ends(alone, ev::tick{}, checkpoint_rounds::keep_wait_max - 1));
  const nanoseconds later =
    checkpoint_rounds::keep_wait_max + job_core::repeat_after;
  BOOST_TEST(ends(alone, ev::tick{}, later));

  (void)at_the_end(a, {}); // it could not be written: nothing to wait for
}

BOOST_AUTO_TEST_CASE(the_end_waits_while_the_last_checkpoint_is_tried_again) {
  island_place a = make_place(1, 1);
  a.keepers = a.sealers = {id(1)};
  job_config c = make_config(1, 1);
  c.checkpoint_at_end = true;
  c.total_steps = 1;
  job_core core(c);
  (void)core.step(ev::blobs_held{}, 0);
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  for (std::uint32_t u = 0; u < 3; ++u)
    (void)core.step(ev::loaded{digest(a), u}, 0);
  (void)core.step(make_prepared(a, 1, 1, 1), 0);
  auto out = core.step(ev::applied{1}, 0);
  BOOST_REQUIRE(all<act::run_checkpoint>(out).size() == 1u);
  BOOST_TEST(all<act::run_checkpoint>(out)[0].last);
  out = core.step(
    ev::checkpointed{digest(a), 1, false, {}, 0, "disk full", true}, 0);
  BOOST_TEST(all<act::finished>(out).empty());
  BOOST_REQUIRE(all<act::checkpoint_failed>(out).size() == 1u);
  BOOST_TEST(all<act::checkpoint_failed>(out)[0].why == "disk full");
  out = core.step(ev::tick{}, 100 * checkpoint_rounds::keep_wait_max);
  BOOST_TEST(all<act::finished>(out).empty());
  out =
    core.step(ev::checkpointed{digest(a), 1, true, {9}, 10, {}, false, {}}, 0);
  BOOST_TEST(all<act::finished>(out).size() == 1u);
}

/// A lone peer that saves after each step; it has just been asked for step 1.
job_core saving(const island_place& a, std::uint64_t total_steps) {
  job_config c = make_config(1, 1);
  c.checkpoint_every = 1;
  c.checkpoint_at_end = true;
  c.total_steps = total_steps;
  job_core core(c);
  (void)core.step(ev::blobs_held{}, 0);
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  const job_header header = header_of(a);
  for (const member_id& m : a.sealers)
    if (m.peer != peer(1)) {
      (void)core.step(ev::received{m.peer, make_seal(a, {}, {})}, 0);
      (void)core.step(ev::received{m.peer, have_blobs{header}}, 0);
    }
  for (std::uint32_t u = 0; u < 3; ++u)
    (void)core.step(ev::loaded{digest(a), u}, 0);
  (void)core.step(make_prepared(a, 1, 1, 1), 0);
  auto out = core.step(ev::applied{1}, 0);
  BOOST_REQUIRE(all<act::run_checkpoint>(out).size() == 1u);
  return core;
}

BOOST_AUTO_TEST_CASE(the_run_goes_on_while_a_checkpoint_is_written) {
  island_place a = make_place(1, 1);
  a.keepers = a.sealers = {id(1)};
  job_core core = saving(a, 3);
  auto out = core.step(ev::snapshot_taken{digest(a), 2}, 0);
  BOOST_TEST(out.empty()); // of another step
  out = core.step(ev::snapshot_taken{digest(a), 1}, 0);
  BOOST_REQUIRE(all<act::run_step>(out).size() == 1u);
  BOOST_TEST(all<act::run_step>(out)[0].step == 2u);
  (void)core.step(make_prepared(a, 1, 1, 2), 0);
  out = core.step(ev::applied{2}, 0);
  BOOST_REQUIRE(all<act::run_checkpoint>(out).size() == 1u);
  out = core.step(ev::snapshot_taken{digest(a), 2}, 0);
  BOOST_REQUIRE(all<act::run_step>(out).size() == 1u);
  BOOST_TEST(all<act::run_step>(out)[0].step == 3u);
  // The first one ends only now, in the middle of step 3.
  out =
    core.step(ev::checkpointed{digest(a), 1, true, {9}, 10, {}, false, {}}, 0);
  BOOST_REQUIRE(all<act::checkpoint_known>(out).size() == 1u);
  BOOST_TEST(all<act::checkpoint_known>(out)[0].checkpoint.step == 1u);
  BOOST_TEST(all<act::run_step>(out).empty());
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_ends_late_hides_no_later_one) {
  island_place a = make_place(1, 1);
  a.keepers = a.sealers = {id(1), id(2)};
  const job_header header = header_of(a);
  job_core core = saving(a, 2);
  (void)core.step(ev::snapshot_taken{digest(a), 1}, 0);
  (void)core.step(make_prepared(a, 1, 1, 2), 0);
  (void)core.step(ev::applied{2}, 0);
  (void)core.step(ev::snapshot_taken{digest(a), 2}, 0);
  (void)core.step(ev::checkpointed{digest(a), 2, true, {8}, 10, {}, false, {}},
                  0);
  auto out =
    core.step(ev::checkpointed{digest(a), 1, true, {9}, 10, {}, false, {}}, 0);
  BOOST_TEST(out.empty());
  // The last one is repeated at the end.
  out = core.step(ev::tick{}, job_core::repeat_after);
  bool said = false;
  for (const auto& s : all<act::send>(out))
    if (const auto* p = std::get_if<checkpoint_published>(&s.message)) {
      said = true;
      BOOST_TEST(p->checkpoint.step == 2u);
    }
  BOOST_TEST(said);

  // Nor at another peer, where messages may overtake each other.
  job_core keeper(make_config(2, 1));
  (void)keeper.step(show(a), 0);
  (void)keeper.step(ev::halted{digest(a)}, 0);
  const checkpoint_published second{header, {2, {8}}, 10, {}, false, {}, {}};
  (void)keeper.step(ev::received{peer(1), second}, 0);
  (void)keeper.step(
    ev::received{peer(1),
                 checkpoint_published{header, {1, {9}}, 10, {}, false, {}, {}}},
    0);
  out = keeper.step(ev::received{peer(1), second}, 0);
  BOOST_TEST(out.empty()); // known, and being fetched
}

BOOST_AUTO_TEST_CASE(a_keeper_says_what_it_holds_and_again_if_asked_again) {
  island_place a = make_place(1, 1);
  a.keepers = a.sealers = {id(1), id(2)};
  const job_header header = header_of(a);
  const checkpoint_ref made{1, {{9}}};
  job_core core(make_config(2, 1));
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  const ev::received told{
    peer(1), checkpoint_published{header, made, 10, {}, false, {}, {}}};
  auto out = core.step(told, 0);
  BOOST_TEST(all<act::checkpoint_known>(out).size() == 1u);
  BOOST_TEST(all<act::keep_checkpoint>(out).size() == 1u);
  BOOST_TEST(core.step(told, 0).empty()); // it is on its way
  for (const job_input& e :
       {job_input{ev::checkpoint_held{made}}, job_input{told}}) {
    auto said = all<act::send>(core.step(e, 0));
    BOOST_REQUIRE(said.size() == 1u);
    BOOST_TEST((said[0].to == peer(1)));
    BOOST_TEST((std::get<have_checkpoint>(said[0].message).checkpoint == made));
  }
}

/// Its store may have got one of steps that were given up, after it sealed.
BOOST_AUTO_TEST_CASE(a_keeper_goes_by_the_latest_assignment_not_by_steps) {
  island_place a = make_place(1, 1, 5);
  a.keepers = a.sealers = {id(1), id(2)};
  const job_header header = header_of(a);
  const checkpoint_ref given_up{20, {{8}}, 4}, made{12, {{9}}, a.since};
  const ev::received told{
    peer(1), checkpoint_published{header, made, 10, {}, false, {}, {}}};
  for (const bool late : {false, true}) {
    job_core core(make_config(2, 1));
    (void)core.step(show(a), 0);
    (void)core.step(ev::halted{digest(a)}, 0);
    if (!late)
      (void)core.step(ev::checkpoint_held{given_up}, 0);
    BOOST_TEST(all<act::keep_checkpoint>(core.step(told, 0)).size() == 1u);
    auto said = all<act::send>(core.step(ev::checkpoint_held{made}, 0));
    BOOST_REQUIRE(said.size() == 1u);
    BOOST_TEST((std::get<have_checkpoint>(said[0].message).checkpoint == made));
    if (late)
      (void)core.step(ev::checkpoint_held{given_up}, 0);
    BOOST_TEST(all<act::send>(core.step(told, 0)).size()
               == 1u); // says so again

    // And the next seal names what the run has gone on from.
    island_place next = a;
    next.since = 6;
    (void)core.step(show(next), 0);
    bool sealed = false;
    for (const auto& s : all<act::send>(core.step(ev::halted{digest(next)}, 0)))
      if (const auto* m = std::get_if<seal>(&s.message)) {
        sealed = true;
        BOOST_REQUIRE(!m->stored.empty());
        BOOST_TEST((m->stored.back() == stored_checkpoint{made, {}}));
      }
    BOOST_TEST(sealed);
  }
}

/// The checkpointer's newest report stays, also if an older one comes late.
BOOST_AUTO_TEST_CASE(old_news_of_checkpoints_hides_no_new_ones) {
  island_place a = make_place(1, 1, 5);
  a.keepers = a.sealers = {id(1), id(2)};
  job_core core = saving(a, 1);
  (void)core.step(ev::snapshot_taken{digest(a), 1}, 0);
  (void)core.step(ev::checkpointed{digest(a), 1, true, {9}, 10, {}, false, {}},
                  0);
  const job_header before{7, 77, 4};
  (void)core.step(ev::received{peer(2),
                               checkpoint_published{
                                 before, {3, {{8}}, 4}, 10, {}, false, {}, {}}},
                  0);
  bool said = false;
  for (const auto& s :
       all<act::send>(core.step(ev::tick{}, job_core::repeat_after)))
    if (const auto* p = std::get_if<checkpoint_published>(&s.message)) {
      said = true;
      BOOST_TEST(p->checkpoint.step == 1u);
    }
  BOOST_TEST(said);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_in_one_store_only_is_made_again) {
  island_place a = make_place(1, 1, 9);
  a.keepers = {id(1), id(2)};
  std::map<peer_id, seal> seals;
  seals[peer(1)] = make_seal(a, {0, 1, 2}, {5, 2});
  seals[peer(2)] = make_seal(a, {}, {});
  seals[peer(1)].stored = whole({{5, {{1}}}});
  BOOST_TEST(!decide_resume(a, 1, 0, 0, seals).checkpointed);
  seals[peer(2)].stored = whole({{5, {{1}}}});
  BOOST_TEST(decide_resume(a, 1, 0, 0, seals).checkpointed);
  // Told of again: the same bytes.
  seals[peer(2)].stored = whole({{5, {{1}}, 2}});
  BOOST_TEST(decide_resume(a, 1, 0, 0, seals).checkpointed);
}

/// Of three parts: 1 has two of them, 2 has the others.
BOOST_AUTO_TEST_CASE(stores_with_all_parts_together_hold_a_checkpoint) {
  island_place a = make_place(1, 1, 9);
  a.keepers = {id(1), id(2)};
  a.sealers = {id(1), id(2), id(3)};
  const checkpoint_ref made{5, {{1}}}, before{3, {{2}}};
  std::map<peer_id, seal> seals;
  for (const std::uint8_t n : {1, 2, 3})
    seals[peer(n)] = make_seal(a, {}, {});
  seals[peer(3)].last.version = {7, 2};
  seals[peer(1)].stored = {{before, {}}, {made, {{2, 3}}}};
  resume_decision d = decide_resume(a, 1, 0, 0, seals);
  BOOST_TEST((d.checkpoint == before)); // part 2 is nowhere
  seals[peer(2)].stored = {{made, {{0, 1}}}};
  d = decide_resume(a, 1, 0, 0, seals);
  BOOST_TEST((d.checkpoint == made));
  BOOST_TEST((d.checkpoint_holders == std::vector{peer(1), peer(2)}));
  seals[peer(1)].stored[1].lacks = {{0, 1}};
  BOOST_TEST((decide_resume(a, 1, 0, 0, seals).checkpoint == before));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_with_a_part_in_one_store_is_made_again) {
  island_place a = make_place(1, 1, 9);
  a.keepers = {id(1), id(2)};
  std::map<peer_id, seal> seals;
  seals[peer(1)] = make_seal(a, {0, 1, 2}, {5, 2});
  for (const std::uint8_t n : {2, 3})
    seals[peer(n)] = make_seal(a, {}, {});
  const checkpoint_ref made{5, {{1}}};
  seals[peer(1)].stored = {{made, {{2, 3}}}};
  seals[peer(2)].stored = {{made, {{0, 1}}}};
  BOOST_TEST(!decide_resume(a, 1, 0, 0, seals).checkpointed);
  seals[peer(3)].stored = {{made, {{1, 2}}}};
  BOOST_TEST(decide_resume(a, 1, 0, 0, seals).checkpointed);
}

/// A checkpoint that no peer can restore is listed in seals, and not used; one
/// that has been made again since is used.
BOOST_AUTO_TEST_CASE(a_checkpoint_that_is_given_up_is_not_offered_again) {
  island_place a = make_place(1, 1, 9);
  a.keepers = {id(1), id(2)};
  const checkpoint_ref rotten{6, {{1}}, 3}, before{4, {{2}}, 2};
  std::map<peer_id, seal> seals;
  for (std::uint8_t n : {1, 2}) {
    seals[peer(n)] = make_seal(a, {}, {});
    seals[peer(n)].stored = whole({before, rotten});
    seals[peer(n)].last.version = {7, 3};
  }
  BOOST_TEST((decide_resume(a, 1, 0, 0, seals).checkpoint == rotten));
  seals[peer(2)].given_up = {rotten};
  resume_decision d = decide_resume(a, 1, 0, 0, seals);
  BOOST_TEST((d.checkpoint == before));
  BOOST_TEST(d.checkpoint_holders.size() == 2u);
  BOOST_TEST((d.given_up == std::vector{rotten}));
  // Told of by an earlier assignment.
  seals[peer(1)].stored.back().checkpoint.since = 2;
  BOOST_TEST((decide_resume(a, 1, 0, 0, seals).checkpoint == before));
  seals[peer(1)].stored.back().checkpoint.since = 5;
  BOOST_TEST(decide_resume(a, 1, 0, 0, seals).checkpoint.step == 6u);
}

/// 1 publishes, 1 and 2 keep; 2's disk refuses, so 3 does.
BOOST_AUTO_TEST_CASE(a_checkpoint_that_a_keeper_refuses_is_kept_by_another) {
  island_place a = make_place(3, 1);
  a.keepers = {id(1), id(2)};
  const job_header header = header_of(a);
  const checkpoint_ref made{1, {{9}}, a.since};
  job_core third(make_config(3, 1));
  (void)third.step(show(a), 0);
  (void)third.step(ev::halted{digest(a)}, 0);
  const checkpoint_published told{header, made, 10, {}, false, {}, {}};
  auto out = third.step(ev::received{peer(1), told}, 0);
  BOOST_TEST(all<act::keep_checkpoint>(out).empty());
  const ev::received refused{peer(2), have_checkpoint{header, made, true}};
  out = third.step(refused, 0);
  BOOST_REQUIRE(all<act::keep_checkpoint>(out).size() == 1u);
  BOOST_TEST((all<act::keep_checkpoint>(out)[0].at == peer(1)));
  BOOST_TEST(third.step(refused, 0).empty()); // known

  job_core second(make_config(2, 1));
  (void)second.step(show(a), 0);
  (void)second.step(ev::halted{digest(a)}, 0);
  out = second.step(ev::received{peer(1), told}, 0);
  BOOST_TEST(all<act::keep_checkpoint>(out).size() == 1u);
  const auto said = all<act::send>(second.step(ev::keep_refused{made}, 0));
  BOOST_REQUIRE(said.size() == 2u);
  BOOST_TEST(std::get<have_checkpoint>(said[0].message).refused);
}

BOOST_AUTO_TEST_SUITE_END()
