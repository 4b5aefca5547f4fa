// tests/actors/job_parts_test.cpp -- the parts of a job actor, each alone; those
// for checkpoints are in job_saving_test.cpp.
#include "actors/job/parts/job_evaluation.hpp"
#include "actors/job/parts/job_past.hpp"
#include "actors/job/parts/job_remarks.hpp"
#include "actors/job/parts/job_text.hpp"
#include "actors/job/parts/unit_moves.hpp"
#include "actors/job_peer.hpp"
#include "runtime/model/data/corpus.hpp"

#include <cmath>

BOOST_AUTO_TEST_SUITE(job_parts)

using namespace shoal;
using namespace shoal::test;

namespace event = core::job_event;

// Evaluations.

namespace {

struct evaluations final : actors::job_evaluation::events {
  void evaluated(std::uint64_t step,
                 const std::optional<actors::eval_summed>& sum) override {
    all.emplace_back(step, sum ? sum->loss : -1);
  }
  std::vector<std::pair<std::uint64_t, double>> all;
};
using evaluation_list = std::vector<std::pair<std::uint64_t, double>>;

} // namespace

BOOST_AUTO_TEST_CASE(an_evaluation_ends_when_all_parts_have_come) {
  for (const bool stage_first : {false, true}) {
    evaluations seen;
    actors::job_evaluation part(seen);
    part.begin(3, true, true);
    part.computed(2); // of an earlier one
    if (stage_first)
      part.computed(3);
    part.summed({3, 1.5, 10});
    if (!stage_first)
      part.computed(3);
    BOOST_TEST((seen.all == evaluation_list{{3, 1.5}}));
  }
}

BOOST_AUTO_TEST_CASE(a_peer_without_a_part_ends_an_evaluation_at_once) {
  evaluations seen;
  actors::job_evaluation part(seen);
  part.begin(3, false, false);
  BOOST_TEST((seen.all == evaluation_list{{3, -1}}));
}

BOOST_AUTO_TEST_CASE(a_halted_evaluation_reports_nothing) {
  evaluations seen;
  actors::job_evaluation part(seen);
  part.begin(0, true, false);
  part.halt();
  part.computed(0);
  BOOST_TEST(seen.all.empty());
}

// Remarks.

BOOST_AUTO_TEST_CASE(only_the_reporter_sends_what_all_peers_of_the_job_derive) {
  network wire;
  for (const std::size_t n : {0u, 1u}) {
    job_peer p(wire, n);
    p.see(3);
    p.adopt(two_stages());
    actors::job_remarks part(p.here);
    part.note(4, "something");
    BOOST_TEST(p.log.all.size() == 1u);
    BOOST_TEST(p.sent.size() == (n == 0 ? 2u : 0u));
    part.note_own(4, "something else");
    BOOST_TEST(p.sent.size() == (n == 0 ? 4u : 2u));
  }
}

BOOST_AUTO_TEST_CASE(what_the_job_waits_for_is_repeated_until_it_is_over) {
  network wire;
  job_peer p(wire, 0);
  p.see(2);
  p.adopt(two_stages());
  actors::job_remarks part(p.here);
  part.note_wait(4, "waiting");
  for (int i = 0; i < 100; ++i)
    part.tick();
  BOOST_TEST(p.sent.size() == 3u); // once, and twice again
  part.wait_over();
  for (int i = 0; i < 100; ++i)
    part.tick();
  BOOST_TEST(p.sent.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_verdict_is_logged_once_under_a_sub_plan) {
  network wire;
  job_peer p(wire, 0);
  actors::job_remarks part(p.here);
  part.note_verdict("b is slow: one says");
  part.note_verdict("b is slow: another says");
  BOOST_TEST(p.log.all.size() == 1u);
  part.halt();
  part.note_verdict("b is slow: one says");
  BOOST_TEST(p.log.all.size() == 2u);
}

BOOST_AUTO_TEST_CASE(former_members_keep_their_names) {
  network wire;
  job_peer p(wire, 0);
  actors::job_remarks part(p.here);
  p.see(3);
  part.learn_names();
  p.see(2);
  part.learn_names();
  BOOST_TEST(part.name_of(peer(2)) == "peer2");
  BOOST_TEST(part.name_of(peer(5)) == core::short_name(peer(5)));
}

BOOST_AUTO_TEST_CASE(a_step_that_is_not_finite_is_logged_with_the_reason) {
  network wire;
  job_peer p(wire, 0);
  actors::job_remarks part(p.here);
  core::step_record r;
  r.version = {5, 1};
  r.loss = std::nan("");
  r.bad = 1;
  part.log_step(r, 0);
  BOOST_TEST(part.last_step() == 5u);
  BOOST_REQUIRE(p.log.all.size() == 2u);
  BOOST_TEST(p.log.all[1].text.starts_with("step 5 is not applied: its loss"));
}

/// Of a peer that was no member meanwhile, or had to go back.
BOOST_AUTO_TEST_CASE(bad_steps_in_a_row_are_known_though_the_log_lacks_some) {
  using version = core::state_version;
  struct logged {
    version at;
    std::uint32_t bad;
  };
  for (const std::vector<logged>& steps : std::vector<std::vector<logged>>{
         {{{8, 10}, 1}, {{8, 15}, 1}},
         {{{8, 10}, 1}, {{9, 10}, 2}, {{9, 15}, 1}},
         {{{5, 1}, 1}, {{7, 1}, 1}},
         {{{5, 1}, 1}, {{7, 1}, 3}},
         {{{5, 1}, 0}, {{9, 1}, 4}},
         {{{5, 1}, 2}, {{6, 1}, 0}}}) {
    network wire;
    job_peer p(wire, 0);
    actors::job_remarks part(p.here);
    for (const logged& step : steps) {
      core::step_record r;
      r.version = step.at;
      r.loss = step.bad > 0 ? std::nan("") : 2.5;
      r.bad = step.bad;
      part.log_step(r, 0);
    }
    const core::step_record last = actors::past_of(p.log.all, 0, 5).last;
    BOOST_TEST((last.version == steps.back().at));
    BOOST_TEST(last.bad == steps.back().bad);
  }
}

/// Events of earlier releases have no count.
BOOST_AUTO_TEST_CASE(a_bad_step_counts_once_if_its_event_says_no_more) {
  runtime::job_event e;
  e.kind = runtime::job_event_kind::step;
  e.step = 3;
  BOOST_TEST(actors::past_of({e}, 0, 5).last.bad == 0u);
  e.loss = std::nan("");
  BOOST_TEST(actors::past_of({e}, 0, 5).last.bad == 1u);
}

/// Another island, and steps before a loss of more than an interval.
BOOST_AUTO_TEST_CASE(the_largest_step_of_the_past_is_no_lost_one) {
  std::vector<runtime::job_event> events;
  const auto add = [&](std::uint64_t step, std::uint64_t epoch,
                       std::uint32_t island) {
    runtime::job_event& e = events.emplace_back();
    e.kind = runtime::job_event_kind::step;
    e.step = step;
    e.epoch = epoch;
    e.island = island;
  };
  add(40, 1, 0);
  add(13, 2, 0);
  add(9, 3, 0);
  add(70, 8, 1);
  const actors::job_past past = actors::past_of(events, 0, 5);
  BOOST_TEST((past.last.version == core::state_version{9, 3}));
  BOOST_TEST(past.top == 13u);
}

/// Of the history that goes on: not of steps that were run again, nor of another
/// island.
BOOST_AUTO_TEST_CASE(what_was_evaluated_in_the_past_is_known) {
  std::vector<runtime::job_event> events;
  const auto add = [&](runtime::job_event_kind kind, std::uint64_t step,
                       std::uint64_t epoch, std::uint32_t island) {
    runtime::job_event& e = events.emplace_back();
    e.kind = kind;
    e.step = step;
    e.epoch = epoch;
    e.island = island;
  };
  const auto evaluated = [&] {
    return actors::past_of(events, 0, 5).evaluated;
  };
  using kind = runtime::job_event_kind;
  add(kind::step, 1, 1, 0);
  BOOST_TEST(evaluated() == 0u);
  add(kind::eval, 0, 1, 0);
  BOOST_TEST(evaluated() == 1u);
  add(kind::step, 20, 1, 0);
  add(kind::eval, 20, 1, 0);
  add(kind::eval, 30, 1, 1);
  BOOST_TEST(evaluated() == 21u);
  add(kind::step, 21, 2, 0); // goes on from there
  BOOST_TEST(evaluated() == 21u);
  add(kind::step, 15, 3, 0);
  BOOST_TEST(evaluated() == 1u);
  add(kind::step, 1, 4, 1);
  BOOST_TEST(evaluated() == 1u);
}

// The text.

namespace {

struct text_events final : actors::job_text::events {
  void text_loaded(const actors::job_text::text_ptr& text) override {
    loaded.push_back(text);
  }
  void text_damaged() override { ++damaged; }
  void text_unusable(const std::string& reason) override { why = reason; }
  void text_found() override { ++found; }
  std::vector<actors::job_text::text_ptr> loaded;
  int damaged = 0;
  std::string why;
  int found = 0;
};

core::blob_digest put_text(runtime::store& store, std::size_t tokens) {
  model::corpus text;
  text.train_u8.assign(tokens, 'a');
  text.validation_u8.assign(tokens, 'b');
  text.files = {{"a", false, 0, tokens}, {"b", true, 0, tokens}};
  auto writer = store.write();
  core::blob_digest out{};
  const auto bytes = model::serialise(text);
  BOOST_REQUIRE(!writer->append(std::as_bytes(std::span(bytes))));
  BOOST_REQUIRE(!writer->commit(out, std::nullopt));
  return out;
}

struct text_peer : job_peer {
  using job_peer::job_peer;
  text_events seen;
  actors::job_text part{here, seen};
};

} // namespace

BOOST_AUTO_TEST_CASE(the_data_source_gets_the_text_which_is_read_once) {
  network wire;
  text_peer p(wire, 0);
  p.here.entry.data = put_text(p.store, 1000);
  p.part.load();
  BOOST_TEST(!p.part.loading()); // no sub-plan: it is not the data source
  p.adopt(two_stages());
  p.part.load();
  p.part.load();
  BOOST_TEST(p.part.awaited());
  BOOST_TEST(p.disk.waiting.size() == 1u);
  p.settle();
  BOOST_TEST(p.seen.loaded.size() == 1u);
  p.part.load();
  BOOST_TEST(p.disk.waiting.empty());
  BOOST_REQUIRE(p.seen.loaded.size() == 2u);
  BOOST_TEST(p.seen.loaded[0] == p.seen.loaded[1]);
}

BOOST_AUTO_TEST_CASE(a_keeper_that_computes_reads_the_text_ahead) {
  network wire;
  text_peer p(wire, 1);
  p.here.entry.data = put_text(p.store, 1000);
  island_place place = two_stages();
  p.adopt(place);
  p.part.warm();
  p.settle();
  BOOST_TEST(p.seen.loaded.empty());
  place.data_source = member(1);
  p.adopt(place);
  p.part.load();
  BOOST_TEST(p.seen.loaded.size() == 1u); // at once
}

BOOST_AUTO_TEST_CASE(a_text_that_the_store_lost_is_fetched) {
  network wire;
  text_peer p(wire, 0);
  p.adopt(two_stages());
  p.part.load();
  BOOST_TEST(p.seen.damaged == 0); // it has never been here
  static_cast<void>(p.core.step(event::blobs_held{}, 0));
  p.part.load();
  BOOST_TEST(p.seen.damaged == 1);
  BOOST_TEST(p.part.awaited());
  p.here.entry.data = put_text(p.store, 1000);
  p.part.fetched();
  p.settle();
  BOOST_TEST(p.seen.loaded.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_text_that_is_too_short_is_refused) {
  network wire;
  text_peer p(wire, 0);
  p.here.entry.data = put_text(p.store, 3);
  p.adopt(two_stages());
  p.part.load();
  p.settle();
  BOOST_TEST(p.seen.loaded.empty());
  BOOST_TEST(p.seen.why.find("fewer than training.seq_len")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_text_that_a_client_brings_is_found) {
  network wire;
  text_peer p(wire, 0);
  for (int i = 0; i < 5; ++i)
    p.part.tick();
  BOOST_TEST(p.seen.found == 0);
  p.here.entry.data = put_text(p.store, 1000);
  for (int i = 0; i < 5; ++i)
    p.part.tick();
  BOOST_TEST(p.seen.found == 1);
}

// Units that come and go.

namespace {

struct move_events final : actors::unit_moves::events {
  void moved(const core::job_input& what) override {
    copied += std::holds_alternative<event::arrival_copied>(what);
    reduced += std::holds_alternative<event::arrival_reduced>(what);
    applied += std::holds_alternative<event::arrival_applied>(what);
  }
  void state_reading() override { ++reading; }
  void state_read() override { --reading; }
  int copied = 0, reduced = 0, applied = 0;
  int reading = 0;
};

struct move_peer : job_peer {
  move_peer(network& wire, std::size_t n) : job_peer(wire, n) {
    adopt(two_stages());
  }
  model::unit_state& unit(std::uint32_t u) {
    actors::unit_ptr& out = here.world->units[u];
    if (!out)
      out = here.world->make_unit(u);
    return *out;
  }
  move_events seen;
  actors::unit_moves part{here, seen};
};

constexpr std::uint32_t moving = 1;

/// Lets all happen that can.
void settle(network& wire, std::initializer_list<move_peer*> peers) {
  std::mt19937 random(1);
  for (bool more = true; more;) {
    more = false;
    for (move_peer* p : peers)
      more |= p->step();
    for (auto& [k, t] : wire)
      if (t.into && t.from) {
        carry(wire, key(k), random);
        more = true;
        break;
      }
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(a_unit_arrives_with_the_gradients_of_later_steps) {
  network wire;
  move_peer from(wire, 0), to(wire, 1);
  model::initialise(from.unit(moving), 5);
  to.part.receive({plan_digest, moving, {3, 1}, peer(0), true});
  from.part.send({plan_digest, moving, {3, 1}, peer(1), true, false});
  BOOST_TEST(from.seen.reading == 1); // no step may be applied
  settle(wire, {&from, &to});
  BOOST_TEST(from.seen.reading == 0);
  BOOST_TEST(to.seen.copied == 1);
  BOOST_TEST(actors::digest_of(to.unit(moving))
             == actors::digest_of(from.unit(moving)));

  // The gradient of step 4, as the source's reducer sends it.
  std::ranges::fill(from.unit(moving).gradients(), 0.5f);
  actors::buffer gradient =
    from.here.world->buffers.get(actors::gradient_bytes(from.unit(moving)));
  std::ranges::fill(gradient.as<float>(), 0.5f);
  from.links.send(peer(1),
                  actors::make_tag(plan_digest,
                                   actors::link_kind::arrival_gradient, 0,
                                   moving, 4),
                  gradient.shared(), [](std::error_code) {});
  settle(wire, {&from, &to});
  BOOST_TEST(to.seen.reduced == 1);
  to.part.apply({plan_digest, moving, 4, 1.0});
  to.settle();
  BOOST_TEST(to.seen.applied == 1);
  const auto options = actors::optimizer_of(from.here.run(), 4, 1.0);
  from.here.operations->apply(from.unit(moving), *from.device.backend, options);
  BOOST_TEST(actors::digest_of(to.unit(moving))
             == actors::digest_of(from.unit(moving)));
}

BOOST_AUTO_TEST_CASE(a_halt_drops_a_unit_whose_copy_is_not_complete) {
  network wire;
  move_peer to(wire, 1);
  to.part.receive({plan_digest, moving, {3, 1}, peer(0), true});
  to.part.receive({plan_digest, moving + 1, {3, 1}, peer(0), false});
  BOOST_TEST(to.here.world->units.size() == 2u);
  to.part.halt();
  BOOST_TEST(!to.here.world->units.contains(moving));
  BOOST_TEST(to.here.world->units.contains(moving + 1)); // it was here before
}

BOOST_AUTO_TEST_SUITE_END()
