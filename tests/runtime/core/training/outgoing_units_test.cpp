// tests/runtime/core/training/outgoing_units_test.cpp -- units on their way out,
// by themselves.
#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/training/job/state/outgoing_units.hpp"
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_outgoing_units)

namespace {

/// Peer 1 trains a model of one block; all of it comes to peer 2.
island_place moving() {
  island_place a = make_place(1, 1);
  a.sealers.push_back(id(2));
  a.arriving = {{id(2), 0, 3}};
  return a;
}

struct source {
  source() {
    for (std::uint32_t u = 0; u < 3; ++u)
      held.set(u, {4, 2});
  }
  job_actions ask(std::uint32_t unit, std::uint32_t attempt,
                  std::uint64_t after = 0, std::uint8_t from = 2) {
    job_actions out;
    outgoing.take(d, peer(from), {d.header, unit, attempt, after}, records,
                  out);
    return out;
  }
  job_actions serve() {
    job_actions out;
    outgoing.serve(d, held, out);
    return out;
  }

  duty d = duty_under(moving(), {7, 0}, peer(1));
  held_units held;
  std::vector<step_record> records;
  outgoing_units outgoing{1};
};

} // namespace

BOOST_AUTO_TEST_CASE(a_unit_is_sent_once_at_the_next_boundary) {
  source s;
  BOOST_TEST(s.ask(1, 1).empty());
  const auto out = s.serve();
  const auto sent = all<act::send_unit>(out);
  BOOST_REQUIRE(sent.size() == 1u);
  BOOST_TEST(sent[0].copy);
  BOOST_TEST((sent[0].version == state_version{4, 2}));
  BOOST_TEST(all<act::send>(out).size() == 1u); // it has begun
  BOOST_TEST(s.serve().empty());
}

BOOST_AUTO_TEST_CASE(a_repeated_question_gets_the_same_answer) {
  source s;
  (void)s.ask(1, 1);
  (void)s.serve();
  s.held.set(1, {5, 2});
  const auto again = all<act::send>(s.ask(1, 1));
  BOOST_REQUIRE(again.size() == 1u);
  BOOST_TEST(
    (std::get<arrival_begun>(again[0].message).version == state_version{4, 2}));
  BOOST_TEST(s.serve().empty());
  BOOST_TEST(s.ask(1, 2).empty()); // it starts over
  BOOST_TEST(
    (all<act::send_unit>(s.serve())[0].version == state_version{5, 2}));
}

BOOST_AUTO_TEST_CASE(only_a_receiver_gets_units_that_exist) {
  source s;
  (void)s.ask(3, 1);       // no such unit
  (void)s.ask(1, 1, 0, 3); // no receiver
  BOOST_TEST(s.serve().empty());
}

BOOST_AUTO_TEST_CASE(a_receiver_gets_the_records_that_it_missed) {
  source s;
  for (std::uint64_t step = 1; step <= 30; ++step) {
    step_record r;
    r.version = {step, step < 5 ? epoch(1) : epoch(2)};
    s.records.push_back(r);
  }
  const auto sent = all<act::send>(s.ask(1, 0, 3));
  BOOST_REQUIRE(!sent.empty());
  // Of this assignment, and no more than it can use.
  BOOST_TEST(std::get<progress>(sent.front().message).record.version.step
             == 5u);
  BOOST_TEST(std::get<progress>(sent.back().message).record.version.step
             == 3 + arrival_backlog_max);
}

BOOST_AUTO_TEST_CASE(to_a_receiver_in_step_only_gradients_go) {
  source s;
  job_actions out;
  s.outgoing.go_on(s.d, 1, {4, 2}, peer(2), out);
  const auto sent = all<act::send_unit>(out);
  BOOST_REQUIRE(sent.size() == 1u);
  BOOST_TEST(!sent[0].copy);
  BOOST_TEST(s.serve().empty());
  (void)s.ask(1, 1);
  s.outgoing.halt();
  BOOST_TEST(s.serve().empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
