// tests/runtime/core/training/incoming_units_test.cpp -- units on their way in,
// by themselves.
#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/training/job/state/incoming_units.hpp"
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_incoming_units)

namespace {

using units = std::vector<std::uint32_t>;

/// Peer 1 trains a model of three units; the first `count` come to peer 2.
island_place moving(std::uint32_t count) {
  island_place a = make_place(1, 1);
  a.sealers.push_back(id(2));
  a.arriving = {{id(2), 0, count}};
  return a;
}

struct receiver {
  explicit receiver(std::uint32_t count = 3)
    : d(duty_under(moving(count), {7, 0}, peer(2))) {
    in.begin(d, 0);
  }

  job_actions move() {
    job_actions out;
    in.move(d, held, out);
    return out;
  }
  job_actions commit(std::uint64_t step) {
    step_record r;
    r.version = {step, 2};
    r.replicas = 1;
    r.grad_norm = double(step);
    job_actions out;
    in.note(d, r, held, out);
    return out;
  }
  job_actions
  begun(std::uint32_t unit, std::uint64_t step, std::uint32_t attempt = 1) {
    job_actions out;
    in.take(d, peer(1), arrival_begun{d.header, unit, attempt, {step, 2}}, held,
            out);
    return out;
  }
  job_actions copied(std::uint32_t unit, std::uint64_t step) {
    job_actions out;
    in.take(d, job_event::arrival_copied{d.header.digest, unit, step}, held,
            out);
    return out;
  }
  job_actions reduced(std::uint32_t unit, std::uint64_t step) {
    job_actions out;
    in.take(d, job_event::arrival_reduced{d.header.digest, unit, step}, held,
            out);
    return out;
  }
  job_actions applied(std::uint32_t unit, std::uint64_t step) {
    job_actions out;
    in.take(d, job_event::arrival_applied{d.header.digest, unit, step}, held,
            out);
    return out;
  }
  void bring_all(std::uint64_t step) {
    (void)move();
    for (std::uint32_t u = 0; u < 3; ++u) {
      (void)begun(u, step);
      (void)copied(u, step);
    }
  }

  duty d;
  held_units held;
  incoming_units in{1};
};

units wanted(const job_actions& out) {
  units asked;
  for (const act::send& a : all<act::send>(out))
    if (const auto* w = std::get_if<arrival_wanted>(&a.message))
      asked.push_back(w->unit);
  return asked;
}

std::size_t reports(const job_actions& out) {
  std::size_t n = 0;
  for (const act::send& a : all<act::send>(out))
    n += std::holds_alternative<arrival_complete>(a.message);
  return n;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_few_units_are_asked_for_at_a_time) {
  receiver r;
  BOOST_TEST(r.in.all() == 3u);
  BOOST_TEST(wanted(r.move()).size() == arrivals_at_once);
  BOOST_TEST(wanted(r.move()).empty());
  (void)r.begun(0, 4);
  BOOST_TEST(wanted(r.copied(0, 4)).size() == 1u);
  BOOST_TEST(r.in.here() == 1u);
  BOOST_TEST(r.held.is_at(0, {4, 2}));
}

BOOST_AUTO_TEST_CASE(all_in_step_is_reported_once_for_each_step) {
  receiver r;
  r.bring_all(4);
  BOOST_TEST(r.in.complete() == 5u);
  BOOST_TEST(r.move().empty());
  for (std::uint32_t u = 0; u < 3; ++u)
    (void)r.reduced(u, 5);
  (void)r.commit(5);
  BOOST_TEST(reports(r.applied(0, 5)) == 0u);
  BOOST_TEST(reports(r.applied(1, 5)) == 0u);
  BOOST_TEST(reports(r.applied(2, 5)) == 1u); // to peer 1
  BOOST_TEST(r.in.complete() == 6u);
}

BOOST_AUTO_TEST_CASE(a_step_needs_its_gradients_and_its_commit) {
  receiver r;
  r.bring_all(4);
  BOOST_TEST(r.reduced(0, 5).empty());
  const auto apply = all<act::apply_arrived>(r.commit(5));
  BOOST_REQUIRE(apply.size() == 1u);
  BOOST_TEST(apply[0].unit == 0u);
  BOOST_TEST(apply[0].grad_norm == 5.0);
  BOOST_TEST(all<act::apply_arrived>(r.reduced(1, 5)).size() == 1u);
  BOOST_TEST(r.reduced(0, 6).empty()); // step 5 is being applied
  (void)r.commit(6);
  BOOST_TEST(all<act::apply_arrived>(r.applied(0, 5)).size() == 1u);
}

BOOST_AUTO_TEST_CASE(gradients_from_before_the_copy_do_not_count) {
  receiver r;
  (void)r.move();
  (void)r.begun(0, 4);
  (void)r.reduced(0, 4);
  (void)r.reduced(0, 5);
  (void)r.commit(5);
  const auto apply = all<act::apply_arrived>(r.copied(0, 4));
  BOOST_REQUIRE(apply.size() == 1u);
  BOOST_TEST(apply[0].step == 5u);
}

BOOST_AUTO_TEST_CASE(a_unit_that_falls_behind_starts_over_a_few_times) {
  receiver r(1);
  (void)r.move();
  std::uint64_t step = 4;
  for (std::uint32_t attempt = 1; attempt <= arrival_tries_max; ++attempt) {
    (void)r.begun(0, step, attempt);
    (void)r.copied(0, step);
    BOOST_TEST(r.in.here() == 1u);
    units again;
    for (std::size_t i = 0; i <= arrival_backlog_max; ++i) {
      const units asked = wanted(r.commit(++step));
      again.insert(again.end(), asked.begin(), asked.end());
    }
    BOOST_TEST(r.in.here() == 0u);
    BOOST_TEST((again == (attempt < arrival_tries_max ? units{0} : units{})));
  }
  BOOST_TEST(wanted(r.move()).empty()); // it is left to the halt
}

BOOST_AUTO_TEST_CASE(gradients_at_a_halt_count_as_prepared) {
  receiver r;
  r.bring_all(4);
  (void)r.reduced(0, 5);
  (void)r.reduced(2, 5);
  r.in.halt();
  BOOST_TEST(r.commit(5).empty()); // nothing is applied any more
  state_version prepared;
  units which{7};
  r.in.halted(r.held, prepared, which);
  BOOST_TEST((prepared == state_version{5, 2}));
  BOOST_TEST((which == units{0, 2}));
  BOOST_TEST(r.in.all() == 0u);
}

BOOST_AUTO_TEST_CASE(they_join_the_step_that_this_peer_has_prepared) {
  receiver r;
  r.bring_all(4);
  (void)r.reduced(2, 5);
  r.in.halt();
  state_version prepared{5, 2};
  units which{1};
  r.in.halted(r.held, prepared, which);
  BOOST_TEST((which == units{1, 2}));
  receiver q;
  q.bring_all(4);
  (void)q.reduced(2, 5);
  q.in.halt();
  prepared = {9, 2}; // another step
  which = {1};
  q.in.halted(q.held, prepared, which);
  BOOST_TEST((which == units{1}));
}

BOOST_AUTO_TEST_CASE(units_in_step_go_on_under_the_next_assignment) {
  receiver r;
  r.held.set(1, {4, 2});
  job_actions out;
  r.in.go_on(r.d, 1, {4, 2}, r.held, out);
  const auto receive = all<act::receive_unit>(out);
  BOOST_REQUIRE(receive.size() == 1u);
  BOOST_TEST(!receive[0].copy);
  BOOST_TEST(r.in.here() == 1u);
}

BOOST_AUTO_TEST_CASE(questions_are_repeated_after_a_pause) {
  receiver r;
  (void)r.move();
  job_actions out;
  r.in.repeat(r.d, r.held, job_repeat_after - 1, out);
  BOOST_TEST(out.empty());
  r.in.repeat(r.d, r.held, job_repeat_after, out);
  BOOST_TEST(wanted(out).size() == arrivals_at_once);
  // It asks for a record, too, that it must have missed.
  receiver q;
  q.bring_all(4);
  (void)q.reduced(0, 5);
  out.clear();
  q.in.repeat(q.d, q.held, job_repeat_after, out);
  BOOST_TEST((wanted(out) == units{0}));
  BOOST_TEST(reports(out) == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
