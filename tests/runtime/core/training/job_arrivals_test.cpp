// tests/runtime/core/training/job_arrivals_test.cpp -- units that come while
// steps run: a source that trains alone, and a receiver. Faults by seed are in
// tests/sim/job.
#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/training/job/job_core.hpp"

#include <boost/test/unit_test.hpp>

#include <deque>

BOOST_AUTO_TEST_SUITE(job_arrivals)

using namespace shoal::core;
namespace act = shoal::core::job_action;
namespace ev = shoal::core::job_event;

namespace {

constexpr std::uint32_t blocks = 3, units = blocks + 2;

peer_id peer(std::uint8_t n) {
  peer_id p{};
  p[0] = n;
  return p;
}

island_place make_place() {
  island_place a;
  a.since = 2;
  a.replicas = {{{stage_on({peer(1), 1}, 0, blocks)}, 0, 4}};
  a.sealers = {{peer(1), 1}, {peer(2), 1}};
  a.keepers = {{peer(1), 1}};
  a.data_source = a.checkpointer = a.evaluator = a.reporter = {peer(1), 1};
  a.arriving = {{member_id{peer(2), 1}, 0, units}};
  return a;
}

/// Of the only island of job 7.
std::uint64_t digest(const island_place& a) {
  return digest({7, 0}, a);
}

job_config make_config(std::uint8_t self, std::uint32_t copies = 1) {
  job_config c;
  c.id = {7, 0};
  c.self = peer(self);
  c.blocks = blocks;
  c.microbatches = 4;
  c.total_steps = 1000;
  c.copies = copies;
  c.checkpoint_at_end = false;
  return c;
}

/// Both cores, and shells that answer at once, except for the source's steps.
struct two_peers {
  island_place place = make_place();
  job_core source, receiver;
  nanoseconds now = 0;
  std::deque<std::pair<int, job_input>> inputs; ///< 1: source; 2: receiver
  std::uint64_t runs = 0; ///< the step under way at the source
  bool hears = true;      ///< the receiver, of committed steps
  bool gets_gradients = true;
  std::vector<act::receive_unit> asked;
  std::vector<act::send_unit> sent;
  std::map<std::uint32_t, act::receive_unit> coming;
  std::vector<act::apply_arrived> applied;
  std::vector<arrival_wanted> wanted;
  std::vector<epoch> complete;

  explicit two_peers(std::uint32_t copies = 1)
    : source(make_config(1, copies)), receiver(make_config(2, copies)) {
    inputs.push_back({1, ev::blobs_held{}});
    for (int n : {1, 2})
      inputs.push_back(
        {n, ev::view_changed{place.since, place, {peer(1), peer(2)}}});
    run();
  }

  void run() {
    while (!inputs.empty()) {
      auto [n, input] = std::move(inputs.front());
      inputs.pop_front();
      job_core& core = n == 1 ? source : receiver;
      for (const job_output& a : core.step(input, now))
        std::visit([&, n = n](const auto& x) { on(n, x); }, a);
    }
  }
  void tick(nanoseconds after) {
    now += after;
    inputs.push_back({1, ev::tick{}});
    inputs.push_back({2, ev::tick{}});
    run();
  }
  /// The source ends its step; a receiver gets the gradients of its units.
  void step() {
    BOOST_REQUIRE(source.now_in() == job_core::phase::running);
    ev::prepared e{digest(place), runs, {}, {}, {}};
    for (std::uint32_t u = 0; u < units; ++u)
      e.units.push_back({u, 0.1 * (u + 1)});
    e.losses = {1, 2, 3, 4};
    const auto to = coming;
    for (const auto& [u, a] : to)
      if (gets_gradients && runs > a.version.step)
        inputs.push_back({2, ev::arrival_reduced{a.digest, u, runs}});
    inputs.push_back({1, e});
    run();
  }

  void on(int n, const act::halt& a) {
    inputs.push_back({n, ev::halted{a.digest}});
  }
  void on(int n, const act::send& a) {
    if (const auto* w = std::get_if<arrival_wanted>(&a.message))
      wanted.push_back(*w);
    inputs.push_back({3 - n, ev::received{peer(std::uint8_t(n)), a.message}});
  }
  void on(int n, const act::initialise_unit& a) {
    inputs.push_back({n, ev::loaded{a.digest, a.unit}});
  }
  void on(int n, const act::apply& a) {
    inputs.push_back({n, ev::applied{a.step}});
  }
  void on(int, const act::run_step& a) { runs = a.step; }
  void on(int, const act::committed& a) {
    if (a.publish && hears)
      inputs.push_back(
        {2, ev::received{peer(1), progress{a.header, a.record, 0, 0, {}, 0}}});
  }
  void on(int, const act::receive_unit& a) {
    asked.push_back(a);
    coming[a.unit] = a;
    if (a.copy)
      inputs.push_back(
        {2, ev::arrival_copied{a.digest, a.unit, a.version.step}});
  }
  void on(int, const act::apply_arrived& a) {
    applied.push_back(a);
    inputs.push_back({2, ev::arrival_applied{a.digest, a.unit, a.step}});
  }
  void on(int, const act::send_unit& a) { sent.push_back(a); }
  void on(int, const act::arrivals_complete& a) { complete.push_back(a.since); }
  template <class Other>
  void on(int, const Other&) {}
};

} // namespace

BOOST_AUTO_TEST_CASE(units_come_a_few_at_a_time_and_their_arrival_is_reported) {
  two_peers p;
  BOOST_TEST(p.asked.size() <= arrivals_at_once);
  std::size_t steps = 0;
  while (p.complete.empty()) {
    const std::size_t before = p.asked.size();
    p.step();
    BOOST_TEST(p.asked.size() - before <= arrivals_at_once);
    BOOST_REQUIRE(++steps < 10);
  }
  BOOST_TEST(p.asked.size() == units);
  BOOST_TEST(p.complete.size() == 1u);
  BOOST_TEST(p.complete[0] == p.place.since);
  BOOST_TEST((p.source.now_in() == job_core::phase::holding));
  for (std::uint32_t u = 0; u < units; ++u)
    BOOST_TEST((p.receiver.held().at(u) == p.source.held().at(u)));
  for (const act::apply_arrived& a : p.applied)
    BOOST_TEST(a.grad_norm > 0);
}

/// Peer 3 follows all but the last two units: those are the only copies.
BOOST_AUTO_TEST_CASE(units_in_the_fewest_places_come_first) {
  island_place place = make_place();
  place.followers = {{member_id{peer(3), 1}, 0, units - 2}};
  place.sealers.push_back({peer(3), 1});
  job_core receiver(make_config(2));
  auto asked = [&](const job_input& e) {
    std::vector<std::uint32_t> out;
    for (const job_output& a : receiver.step(e, 0))
      if (const auto* s = std::get_if<act::send>(&a))
        if (const auto* w = std::get_if<arrival_wanted>(&s->message))
          out.push_back(w->unit);
    return out;
  };
  (void)asked(ev::view_changed{2, place, {peer(1), peer(2), peer(3)}});
  (void)asked(ev::halted{digest(place)});
  const job_header header{7, digest(place), place.since};
  const state_version v{3, 2};
  seal s;
  s.header = header;
  for (std::uint32_t u = 0; u < units; ++u)
    s.units.push_back({u, v, false});
  s.last.version = v;
  s.last.replicas = 1;
  (void)asked(ev::received{peer(1), s});
  s.units.resize(units - 2);
  BOOST_TEST((asked(ev::received{peer(3), s})
              == std::vector<std::uint32_t>{units - 2, units - 1}));
  auto arrives = [&](std::uint32_t u) {
    (void)asked(ev::received{peer(1), arrival_begun{header, u, 1, v}});
    return asked(ev::arrival_copied{header.digest, u, v.step});
  };
  // The others are paced: one at a time from each source.
  BOOST_TEST(arrives(units - 2).empty());
  for (std::uint32_t u = 0; u + 2 < units; ++u)
    BOOST_TEST(
      (arrives(u == 0 ? units - 1 : u - 1) == std::vector<std::uint32_t>{u}));
}

/// The state is in one place.
BOOST_AUTO_TEST_CASE(only_what_is_in_enough_places_is_paced) {
  for (const std::uint32_t copies : {1u, 0u}) {
    two_peers p(copies);
    while (p.sent.size() < 3)
      p.step();
    for (const act::send_unit& a : p.sent)
      BOOST_TEST(a.paced == (copies == 0));
  }
}

BOOST_AUTO_TEST_CASE(without_a_view_the_run_goes_on) {
  two_peers p;
  while (p.complete.empty())
    p.step();
  const std::uint64_t at = p.source.step_in_progress();
  p.tick(arrival_hold::hold_max / 2);
  BOOST_TEST((p.source.now_in() == job_core::phase::holding));
  p.tick(arrival_hold::hold_max);
  BOOST_TEST((p.source.now_in() == job_core::phase::running));
  BOOST_TEST(p.source.step_in_progress() == at);
  p.step(); // and does not stop again at once
  BOOST_TEST((p.source.now_in() == job_core::phase::running));
  BOOST_TEST((p.receiver.held() == p.source.held()));
}

BOOST_AUTO_TEST_CASE(missed_steps_are_requested) {
  two_peers p;
  p.step();
  BOOST_REQUIRE(!p.coming.empty());
  const std::uint32_t unit = p.coming.begin()->first;
  p.hears = false;
  p.step();
  p.hears = true;
  BOOST_TEST(p.receiver.held().at(unit).step + 1
             == p.source.held().at(unit).step);
  p.tick(job_core::repeat_after);
  BOOST_TEST((p.receiver.held().at(unit) == p.source.held().at(unit)));
}

BOOST_AUTO_TEST_CASE(a_unit_that_falls_behind_starts_over_and_is_left_at_last) {
  two_peers p;
  p.gets_gradients = false;
  for (std::size_t i = 0; p.complete.empty(); ++i) {
    BOOST_REQUIRE(i < 40 * (arrival_backlog_max + 2) * arrival_tries_max);
    if (p.source.now_in() == job_core::phase::holding)
      break;
    p.step();
  }
  std::map<std::uint32_t, std::uint32_t> tries;
  for (const arrival_wanted& w : p.wanted)
    tries[w.unit] = std::max(tries[w.unit], w.attempt);
  for (std::uint32_t u = 0; u < units; ++u)
    BOOST_TEST(tries[u] == arrival_tries_max);
  BOOST_TEST(p.complete.size() == 1u); // the rest is moved in the halt
}

BOOST_AUTO_TEST_CASE(arrived_units_stay_under_another_assignment) {
  two_peers p;
  while (p.asked.size() < 3)
    p.step();
  const std::size_t before = p.asked.size();
  const auto held = p.receiver.held();
  p.place.since = 5;
  for (int n : {1, 2})
    p.inputs.push_back(
      {n, ev::view_changed{p.place.since, p.place, {peer(1), peer(2)}}});
  p.run();
  // No copy of those that were here is sent again.
  std::size_t kept = 0;
  for (std::size_t i = before; i < p.asked.size(); ++i)
    if (held.contains(p.asked[i].unit)) {
      BOOST_TEST(!p.asked[i].copy);
      ++kept;
    }
  BOOST_TEST(kept == held.size());
  while (p.complete.empty())
    p.step();
  BOOST_TEST(p.complete[0] == 5u);
  BOOST_TEST((p.receiver.held() == p.source.held()));
}

BOOST_AUTO_TEST_SUITE_END()
