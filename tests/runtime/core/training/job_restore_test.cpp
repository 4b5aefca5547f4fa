// tests/runtime/core/training/job_restore_test.cpp -- checkpoints are accepted,
// fetched, waited for and given up; held state stays until one can be restored.
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_restore)

namespace {

using source = resume_decision::source;

constexpr std::uint64_t interval = 20;
constexpr nanoseconds s = 1'000'000'000;

/// Two peers that sealed at step 404 without state: its holder has died.
std::map<peer_id, seal> bereft(const island_place& a) {
  std::map<peer_id, seal> seals;
  for (std::uint8_t n : {1, 2}) {
    seals[peer(n)] = make_seal(a, {}, {});
    seals[peer(n)].last.version = {404, 2};
  }
  return seals;
}

/// Peer 3 is away, and may come back.
ev::view_changed show_one_away(const island_place& a) {
  ev::view_changed e = show(a);
  e.former = {peer(3)};
  return e;
}

/// Peer 1 of two stages, up to the decision: peer 2 seals with the given
/// content.
struct sealed {
  explicit sealed(const island_place& place, seal theirs,
                  const std::vector<checkpoint_ref>& held = {},
                  checkpoint_ref heard = {})
    : a(place), core(config()) {
    for (const checkpoint_ref& c : held)
      (void)core.step(ev::checkpoint_held{c}, 0);
    (void)core.step(ev::checkpoint_heard{heard}, 0);
    (void)core.step(show_one_away(a), 0);
    (void)core.step(ev::halted{digest(a)}, 0);
    theirs.header = header_of(a);
    out = core.step(ev::received{peer(2), theirs}, 0);
  }
  static job_config config() {
    job_config c = make_config(1, 2);
    c.total_steps = 1000;
    c.checkpoint_every = interval;
    c.checkpoint_patience = 60 * s;
    return c;
  }
  job_actions missing(const checkpoint_ref& c, nanoseconds now) {
    return core.step(ev::checkpoint_missing{digest(a), c}, now);
  }
  job_header header() const { return header_of(a); }

  island_place a;
  job_core core;
  job_actions out;
};

const checkpoint_ref newest{401, {{9}}, 2};
const checkpoint_ref old_one{300, {{8}}, 2};

seal nothing_at(std::uint64_t step) {
  seal theirs;
  theirs.last.version = {step, 2};
  return theirs;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_checkpoint_that_no_sealer_has_is_waited_for) {
  const island_place a = make_place(1, 2, 9);
  auto seals = bereft(a);
  auto d = decide_resume(a, 2, 0, interval, seals);
  BOOST_TEST((d.from == source::origin)); // nothing was ever published
  seals[peer(2)].heard = {newest};
  d = decide_resume(a, 2, 0, interval, seals);
  BOOST_TEST((d.from == source::checkpoint));
  BOOST_TEST((d.checkpoint == newest));
  BOOST_TEST((d.version == state_version{401, 9}));
  BOOST_TEST(d.checkpoint_holders.empty());
  BOOST_TEST(d.otherwise == 0u);
  seals[peer(1)].stored = whole({old_one}); // it would cost 104 steps
  d = decide_resume(a, 2, 0, interval, seals);
  BOOST_TEST((d.checkpoint == newest));
  BOOST_TEST(d.otherwise == 300u);
}

BOOST_AUTO_TEST_CASE(no_peer_waits_to_save_less_than_an_interval) {
  const island_place a = make_place(1, 2, 9);
  auto seals = bereft(a);
  seals[peer(2)].heard = {newest};
  seals[peer(1)].stored = whole({{384, {{8}}, 2}});
  auto d = decide_resume(a, 2, 0, interval, seals);
  BOOST_TEST(d.checkpoint.step == 384u);
  BOOST_TEST(d.checkpoint_holders.size() == 1u);
  // One step more than the interval.
  seals[peer(1)].stored.back().checkpoint.step = 383;
  BOOST_TEST((decide_resume(a, 2, 0, interval, seals).checkpoint == newest));
  // Live state that is recent enough is better still.
  seals[peer(1)].units = make_seal(a, {0, 1, 2, 3}, {390, 2}).units;
  BOOST_TEST((decide_resume(a, 2, 0, interval, seals).from == source::live));
}

/// The same files, told of again under another assignment.
BOOST_AUTO_TEST_CASE(a_checkpoint_that_a_sealer_has_is_not_waited_for) {
  const island_place a = make_place(1, 2, 9);
  auto seals = bereft(a);
  seals[peer(1)].stored = whole({newest});
  seals[peer(2)].heard = {{newest.step, newest.manifest, 5}};
  const auto d = decide_resume(a, 2, 0, interval, seals);
  BOOST_TEST(d.checkpoint_holders.size() == 1u);
  BOOST_TEST((d.checkpoint == newest));
}

/// One lie, about a step that was not committed, must not void live state.
BOOST_AUTO_TEST_CASE(a_checkpoint_above_every_known_step_is_not_believed) {
  const island_place a = make_place(1, 2, 9);
  for (const bool held : {true, false}) {
    auto seals = bereft(a);
    seals[peer(1)].units = make_seal(a, {0, 1, 2, 3}, {404, 2}).units;
    const checkpoint_ref lie{444, {{7}}, 2};
    if (held)
      seals[peer(2)].stored = whole({lie});
    else
      seals[peer(2)].heard = {lie};
    auto d = decide_resume(a, 2, 0, interval, seals);
    BOOST_TEST((d.from == source::live));
    BOOST_TEST((d.version == state_version{404, 2}));
    BOOST_TEST(d.heard.empty());
    seals[peer(1)].units.clear();
    BOOST_TEST(
      (decide_resume(a, 2, 0, interval, seals).from == source::origin));
  }
}

/// Its log may have lost what its store has.
BOOST_AUTO_TEST_CASE(the_holder_of_a_checkpoint_knows_its_step_as_committed) {
  sealed p(make_place(1, 2, 9), {}, {newest});
  BOOST_REQUIRE(all<act::fetch_checkpoint>(p.out).size() == 1u);
  BOOST_TEST((all<act::fetch_checkpoint>(p.out)[0].checkpoint == newest));
}

BOOST_AUTO_TEST_CASE(all_have_what_they_restore_before_any_peer_voids_state) {
  seal theirs = make_seal(make_place(1, 2, 9), {2, 3}, {404, 2});
  sealed p(make_place(1, 2, 9), theirs, {newest});
  const auto asked = all<act::fetch_checkpoint>(p.out);
  BOOST_REQUIRE(asked.size() == 1u);
  BOOST_TEST((asked[0].units == std::vector<std::uint32_t>{0, 1}));
  BOOST_TEST((asked[0].holders == std::vector<peer_id>{peer(1)}));
  BOOST_TEST(all<act::adopt>(p.out).empty());
  BOOST_TEST(all<act::restore_unit>(p.out).empty());
  // Late news of another assignment has no effect.
  BOOST_TEST(
    p.core.step(ev::checkpoint_fetched{digest(p.a) + 1, newest}, 0).empty());
  auto out = p.core.step(ev::checkpoint_fetched{digest(p.a), newest}, 0);
  BOOST_TEST(all<act::restore_unit>(out).empty());
  BOOST_REQUIRE(all<act::send>(out).size() == 1u);
  BOOST_TEST((all<act::send>(out)[0].to == peer(2)));
  // It may be lost: it is repeated, and answered.
  out = p.core.step(ev::tick{}, job_core::repeat_after);
  BOOST_REQUIRE(all<act::send>(out).size() == 1u);
  BOOST_TEST(std::get<restorable>(all<act::send>(out)[0].message).again);
  out =
    p.core.step(ev::received{peer(2), restorable{p.header(), newest, true}}, s);
  BOOST_TEST(all<act::adopt>(out).size() == 1u);
  BOOST_TEST(all<act::restore_unit>(out).size() == 2u);
  BOOST_TEST(all<act::lost_state>(out).size() == 1u);
  bool answered = false;
  for (const auto& m : all<act::send>(out))
    answered = answered || std::holds_alternative<restorable>(m.message);
  BOOST_TEST(answered);
}

/// The state of step 300 is all there, the checkpoint of 401 nowhere whole.
BOOST_AUTO_TEST_CASE(live_state_outlives_a_checkpoint_that_cannot_be_had) {
  const island_place a = make_place(1, 2, 9);
  seal theirs = make_seal(a, {0, 1, 2, 3}, {300, 2});
  theirs.last.version = {404, 2};
  sealed p(a, theirs, {newest});
  BOOST_TEST(all<act::fetch_checkpoint>(p.out).size() == 1u);
  for (nanoseconds now = s; now < 60 * s; now += s) {
    const auto out = p.missing(newest, now);
    BOOST_TEST(all<act::begin_anew>(out).empty());
    BOOST_TEST(all<act::checkpoint_awaited>(out).size()
               == (now == 3 * s ? 1u : 0u));
  }
  auto out = p.missing(newest, 60 * s);
  BOOST_TEST(all<act::checkpoint_given_up>(out).size() == 1u);
  BOOST_TEST(all<act::begin_anew>(out).size() == 1u);
  BOOST_TEST(p.missing(newest, 61 * s).empty());
  island_place next = a;
  next.since = 10;
  (void)p.core.step(show(next), 61 * s);
  (void)p.core.step(ev::halted{digest(next)}, 61 * s);
  theirs.header = header_of(next);
  out = p.core.step(ev::received{peer(2), theirs}, 61 * s);
  BOOST_TEST(all<act::fetch_unit>(out).size() == 2u); // from live state
}

/// With one that is hardly older in another store, no peer waits for long.
BOOST_AUTO_TEST_CASE(a_checkpoint_that_is_cheap_to_lose_is_given_up_soon) {
  const island_place a = make_place(1, 2, 9);
  sealed p(a, nothing_at(404), {{390, {{8}}, 2}, newest});
  BOOST_TEST(all<act::fetch_checkpoint>(p.out).size() == 1u);
  BOOST_TEST(p.missing(newest, 1).empty());
  BOOST_TEST(p.missing(newest, 2).empty());
  const auto out = p.missing(newest, 3);
  BOOST_TEST(all<act::checkpoint_awaited>(out).empty());
  BOOST_TEST(all<act::begin_anew>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_wait_is_reported_once_and_ends_with_patience) {
  island_place a = make_place(1, 2, 9);
  sealed p(a, nothing_at(404), {}, newest);
  auto said = all<act::checkpoint_awaited>(p.out);
  BOOST_REQUIRE(said.size() == 1u);
  BOOST_TEST(said[0].last == 404u);
  BOOST_TEST(said[0].otherwise == 0u);
  BOOST_TEST(p.core.awaits_checkpoint());
  BOOST_TEST(!p.core.should_move()); // no other peer waits for it
  BOOST_TEST(!p.core.loads());
  // Another view does not begin the patience anew, nor is it said again.
  a.since = 10;
  (void)p.core.step(show_one_away(a), 30 * s);
  (void)p.core.step(ev::halted{digest(a)}, 30 * s);
  seal theirs = nothing_at(404);
  theirs.header = header_of(a);
  auto out = p.core.step(ev::received{peer(2), theirs}, 30 * s);
  BOOST_TEST(all<act::checkpoint_awaited>(out).empty());
  BOOST_TEST(all<act::fetch_checkpoint>(out).size() == 1u);
  p.a = a;
  BOOST_TEST(p.missing(newest, 58 * s).empty());
  BOOST_TEST(p.missing(newest, 59 * s).empty());
  BOOST_TEST(all<act::begin_anew>(p.missing(newest, 61 * s)).size() == 1u);
}

/// If no peer is away, none will bring it.
BOOST_AUTO_TEST_CASE(
  a_checkpoint_that_all_former_members_lack_is_given_up_soon) {
  const island_place a = make_place(1, 2, 9);
  sealed p(a, nothing_at(404), {}, newest);
  (void)p.core.step(show(a), 0); // the same assignment: nothing begins anew
  BOOST_TEST(p.missing(newest, 1).empty());
  BOOST_TEST(p.missing(newest, 2).empty());
  BOOST_TEST(all<act::begin_anew>(p.missing(newest, 3)).size() == 1u);
}

/// What was published was committed, also if it can no longer be had: the run
/// went further back than the checkpoint before allows.
BOOST_AUTO_TEST_CASE(steps_up_to_a_checkpoint_that_is_given_up_count_as_lost) {
  island_place a = make_place(1, 2, 9);
  sealed p(a, nothing_at(390), {{370, {{7}}, 2}}, newest);
  (void)p.core.step(show(a), 0);
  for (int round = 1; round <= 3; ++round)
    p.out = p.missing(newest, round);
  BOOST_TEST(all<act::begin_anew>(p.out).size() == 1u);
  a.since = 10;
  (void)p.core.step(show_one_away(a), s);
  (void)p.core.step(ev::halted{digest(a)}, s);
  seal theirs = nothing_at(390);
  theirs.header = header_of(a);
  theirs.heard = {{390, {{8}}, 2}};
  const auto out = p.core.step(ev::received{peer(2), theirs}, s);
  // 20 steps from 390 to 370 were cheap, 31 from 401 are not.
  const auto asked = all<act::fetch_checkpoint>(out);
  BOOST_REQUIRE(asked.size() == 1u);
  BOOST_TEST((asked[0].checkpoint == theirs.heard[0]));
  BOOST_TEST(p.core.awaits_checkpoint());
}

BOOST_AUTO_TEST_CASE(a_person_may_end_the_wait_at_any_peer) {
  const island_place a = make_place(1, 2, 9);
  sealed p(a, nothing_at(404), {}, newest);
  auto out = p.core.step(ev::stop_waiting{}, s);
  BOOST_TEST(all<act::checkpoint_given_up>(out).size() == 1u);
  BOOST_TEST(all<act::begin_anew>(out).size() == 1u);
  BOOST_REQUIRE(all<act::send>(out).size() == 1u);
  BOOST_TEST(
    std::holds_alternative<stop_waiting>(all<act::send>(out)[0].message));
  sealed q(a, nothing_at(404), {}, newest);
  out = q.core.step(ev::received{peer(2), stop_waiting{q.header()}}, s);
  BOOST_TEST(all<act::begin_anew>(out).size() == 1u);
  // Where nothing is missing it has no effect.
  sealed r(a, nothing_at(404), {newest});
  BOOST_TEST(all<act::begin_anew>(r.core.step(ev::stop_waiting{}, s)).empty());
}

/// Whoever comes back brings it: then it is restored like any other.
BOOST_AUTO_TEST_CASE(the_wait_ends_when_the_files_are_here) {
  const island_place a = make_place(1, 2, 9);
  sealed p(a, nothing_at(404), {}, newest);
  BOOST_TEST(p.missing(newest, s).empty());
  auto out = p.core.step(ev::checkpoint_fetched{digest(p.a), newest}, 2 * s);
  BOOST_TEST(!p.core.awaits_checkpoint());
  out = p.core.step(
    ev::received{peer(2), restorable{p.header(), newest, false}}, 2 * s);
  BOOST_TEST(all<act::restore_unit>(out).size() == 2u);
  BOOST_REQUIRE(all<act::lost_state>(out).size() == 1u);
  BOOST_TEST(all<act::lost_state>(out)[0].resume == 401u);
}

/// Of two stores one may have died: the present keeper gets the checkpoint.
BOOST_AUTO_TEST_CASE(a_new_keeper_gets_the_newest_checkpoint) {
  island_place a = make_place(1, 2, 9);
  a.keepers = {id(1), id(2)};
  seal theirs = make_seal(a, {0, 1, 2, 3}, {404, 2});
  theirs.stored = whole({newest});
  sealed p(a, theirs);
  const auto kept = all<act::keep_checkpoint>(p.out);
  BOOST_REQUIRE(kept.size() == 1u);
  BOOST_TEST((kept[0].checkpoint == newest));
  BOOST_TEST((kept[0].at == peer(2)));
  a.keepers = {id(2)};
  sealed q(a, theirs);
  BOOST_TEST(all<act::keep_checkpoint>(q.out).empty());
}

/// An island of peers 1 and 2, who know of no checkpoint; peer 4 works for
/// another island of the job. Seen by peer 1.
struct beside_another {
  explicit beside_another(std::uint32_t islands = 2) : core(config(islands)) {
    e = show(a);
    e.members.push_back(peer(4));
    (void)core.step(e, 0);
    (void)core.step(ev::halted{digest(a)}, 0);
  }
  static job_config config(std::uint32_t islands) {
    job_config c = sealed::config();
    c.islands = islands;
    return c;
  }
  /// Peer 2 seals with nothing, or with all state at step 404.
  job_actions seal_other(bool state = false) {
    seal theirs =
      state ? make_seal(a, {0, 1, 2, 3}, {404, 2}) : nothing_at(404);
    theirs.header = header_of(a);
    return core.step(ev::received{peer(2), theirs}, 0);
  }
  job_actions answer(std::vector<checkpoint_ref> heard, std::uint8_t n = 4) {
    seal s;
    s.header = header_of(a);
    s.heard = std::move(heard);
    return core.step(ev::received{peer(n), s}, 0);
  }
  job_actions other_is_restorable() {
    return core.step(ev::received{peer(2), restorable{header_of(a), {}, false}},
                     0);
  }
  /// Whether these ask peer n what it has heard.
  static bool asks(const job_actions& out, std::uint8_t n = 4) {
    return std::ranges::any_of(all<act::send>(out), [n](const act::send& m) {
      const auto* s = std::get_if<seal>(&m.message);
      return m.to == peer(n) && s != nullptr && s->again;
    });
  }

  island_place a = make_place(1, 2, 9);
  ev::view_changed e;
  job_core core;
};

bool says_restorable(const job_actions& out) {
  return std::ranges::any_of(all<act::send>(out), [](const act::send& m) {
    return std::holds_alternative<restorable>(m.message);
  });
}

/// All peers of an island die, and those that are dealt into it know less of
/// its checkpoints than members of other islands do (J-7).
BOOST_AUTO_TEST_CASE(other_islands_are_asked_before_steps_are_lost) {
  beside_another p;
  auto out = p.seal_other();
  BOOST_TEST(p.asks(out));
  BOOST_TEST(!says_restorable(out));
  BOOST_TEST(p.other_is_restorable().empty());
  out = p.answer({old_one, newest});
  BOOST_TEST(all<act::begin_anew>(out).size() == 1u);
  BOOST_TEST(all<act::adopt>(out).empty());
  BOOST_TEST(!says_restorable(out));
  // The request for another view may be lost.
  out = p.core.step(ev::tick{}, job_core::repeat_after);
  BOOST_TEST(all<act::begin_anew>(out).size() == 1u);
  BOOST_TEST(all<act::adopt>(out).empty());
  p.a.since = 10;
  p.e.place = p.a;
  (void)p.core.step(p.e, s);
  out = p.core.step(ev::halted{digest(p.a)}, s);
  for (const act::send& m : all<act::send>(out)) {
    const auto* own = std::get_if<seal>(&m.message);
    BOOST_REQUIRE(own != nullptr);
    BOOST_TEST((own->heard == std::vector<checkpoint_ref>{old_one, newest}));
  }
  out = p.seal_other();
  BOOST_REQUIRE(all<act::fetch_checkpoint>(out).size() == 1u);
  BOOST_TEST((all<act::fetch_checkpoint>(out)[0].checkpoint == newest));
  // Nothing is new now; the state is void only when the files are here, too.
  BOOST_TEST(p.asks(out));
  BOOST_TEST(p.answer({old_one, newest}).empty());
  BOOST_TEST(says_restorable(
    p.core.step(ev::checkpoint_fetched{digest(p.a), newest}, s)));
  BOOST_TEST(all<act::restore_unit>(p.other_is_restorable()).size() == 2u);
}

/// It was announced after this peer had sealed.
BOOST_AUTO_TEST_CASE(a_checkpoint_that_no_seal_names_is_news) {
  beside_another p;
  (void)p.seal_other();
  (void)p.core.step(ev::checkpoint_heard{newest}, 0);
  BOOST_TEST(all<act::begin_anew>(p.answer({newest})).size() == 1u);
  // One that is in a seal was decided upon, such as this, which cannot be.
  beside_another q;
  seal theirs = nothing_at(404);
  theirs.header = header_of(q.a);
  theirs.heard = {{444, {{7}}, 2}};
  (void)q.core.step(ev::received{peer(2), theirs}, 0);
  const auto out = q.answer(theirs.heard);
  BOOST_TEST(all<act::begin_anew>(out).empty());
  BOOST_TEST(says_restorable(out));
}

BOOST_AUTO_TEST_CASE(a_run_goes_on_when_other_islands_know_no_more) {
  beside_another p;
  (void)p.seal_other();
  BOOST_TEST(says_restorable(p.answer({})));
  BOOST_TEST(all<act::adopt>(p.other_is_restorable()).size() == 1u);
  // The same when the other member leaves the view, or does not answer.
  beside_another q;
  (void)q.seal_other();
  q.e.members.pop_back();
  BOOST_TEST(says_restorable(q.core.step(q.e, s)));
  beside_another r;
  (void)r.seal_other();
  auto out = r.core.step(ev::tick{}, job_core::repeat_after);
  BOOST_TEST(r.asks(out)); // what is lost is asked again
  out = r.core.step(ev::tick{}, job_core::hearing_max);
  BOOST_TEST(says_restorable(out));
}

/// It comes back while a checkpoint is fetched, and may know of a newer one.
BOOST_AUTO_TEST_CASE(a_member_that_returns_is_asked_before_steps_are_lost) {
  beside_another p;
  seal theirs = nothing_at(404);
  theirs.header = header_of(p.a);
  theirs.heard = {old_one};
  (void)p.core.step(ev::received{peer(2), theirs}, 0);
  (void)p.answer({});
  p.e.members.push_back(peer(5));
  auto out = p.core.step(p.e, s);
  BOOST_TEST(p.asks(out, 5));
  BOOST_TEST(!p.asks(out)); // it has answered
  out = p.core.step(ev::checkpoint_fetched{digest(p.a), old_one}, s);
  BOOST_TEST(!says_restorable(out));
  out = p.answer({newest}, 5);
  BOOST_TEST(!says_restorable(out));
  BOOST_TEST(all<act::begin_anew>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(where_no_step_is_lost_other_islands_are_not_asked) {
  beside_another p;
  auto out = p.seal_other(true);
  BOOST_TEST(!p.asks(out));
  BOOST_TEST(all<act::adopt>(out).size() == 1u);
  beside_another one(1); // there is no other island
  out = one.seal_other();
  BOOST_TEST(!one.asks(out));
  BOOST_TEST(all<act::adopt>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_member_that_does_not_seal_says_what_it_has_heard) {
  const island_place a = make_place(1, 2, 9);
  job_config c = beside_another::config(2);
  c.self = peer(4);
  job_core core(c);
  (void)core.step(ev::checkpoint_heard{newest}, 0);
  ev::view_changed e = show(a);
  e.members.push_back(peer(4));
  seal question = make_seal(a, {}, {});
  question.again = true;
  // It may come before the view.
  BOOST_TEST(core.step(ev::received{peer(2), question}, 0).empty());
  std::vector<act::send> sent = all<act::send>(core.step(e, 0));
  BOOST_REQUIRE(sent.size() == 1u);
  for (const auto& m :
       all<act::send>(core.step(ev::received{peer(1), question}, 0)))
    sent.push_back(m);
  BOOST_REQUIRE(sent.size() == 2u);
  BOOST_TEST((sent[0].to == peer(2)));
  BOOST_TEST((sent[1].to == peer(1)));
  for (const act::send& m : sent) {
    const auto* answer = std::get_if<seal>(&m.message);
    BOOST_REQUIRE(answer != nullptr);
    BOOST_TEST((answer->header == header_of(a)));
    BOOST_TEST((answer->heard == std::vector<checkpoint_ref>{newest}));
    BOOST_TEST(!answer->again);
  }
}

/// A lone peer that restores the checkpoint of the last step, without the text.
job_actions at_last_step(std::uint64_t eval_every, std::uint64_t evaluated) {
  island_place a = make_place(1, 1);
  job_config c = make_config(1, 1);
  c.checkpoint_at_end = true;
  c.eval_every = eval_every;
  c.evaluated = evaluated;
  c.last.version = {c.total_steps, 1};
  job_core core(c);
  const checkpoint_ref last{c.total_steps, {{9}}, 1};
  (void)core.step(ev::checkpoint_held{last}, 0);
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  (void)core.step(ev::checkpoint_fetched{digest(a), last}, 0);
  job_actions all_of_it;
  for (std::uint32_t u = 0; u < 3; ++u)
    all_of_it = core.step(ev::loaded{digest(a), u}, 0);
  for (auto& more : core.step(ev::tick{}, checkpoint_rounds::keep_wait_max
                                            + job_core::repeat_after))
    all_of_it.push_back(std::move(more));
  return all_of_it;
}

/// So a run ends that ended in a part of the shoal that only its checkpoint
/// remains of.
BOOST_AUTO_TEST_CASE(no_text_is_needed_after_the_last_step) {
  for (const auto& [every, evaluated] :
       {std::pair(0, 0), std::pair(1, 4), std::pair(2, 5)})
    BOOST_TEST(all<act::finished>(at_last_step(every, evaluated)).size() == 1u);
  for (const int evaluated : {0, 3}) { // the last loss is still wanted
    const job_actions out = at_last_step(1, evaluated);
    BOOST_TEST(all<act::finished>(out).empty());
    BOOST_REQUIRE(all<act::waiting>(out).size() == 1u);
    BOOST_TEST(all<act::waiting>(out)[0].why.starts_with("no peer"));
  }
}

/// Peer 2 had it in an earlier life of the job.
BOOST_AUTO_TEST_CASE(a_seal_says_that_the_text_is_gone) {
  island_place a = make_place(1, 2);
  a.data_source = id(2);
  job_core core(make_config(1, 2));
  (void)core.step(ev::received{peer(2), have_blobs{header_of(a)}}, 0);
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  (void)core.step(ev::received{peer(2), make_seal(a, {}, {})}, 0);
  job_actions out;
  for (const std::uint32_t u : held_by(a, peer(1)))
    out = core.step(ev::loaded{digest(a), u}, 0);
  BOOST_REQUIRE(all<act::waiting>(out).size() == 1u);
  BOOST_TEST(all<act::waiting>(out)[0].why.starts_with("no peer"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
