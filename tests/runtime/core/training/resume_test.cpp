// tests/runtime/core/training/resume_test.cpp -- decisions from seals that need not fit
// each other: a peer that holds the key can send any that pass the codec.
#include "tests/runtime/core/training/job_pieces.hpp"
#include "tests/runtime/core/training/wild_seals.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

namespace shoal::test {

BOOST_AUTO_TEST_SUITE(resume)

/// Some 20 us each.
constexpr std::uint64_t seeds = 20'000;

BOOST_AUTO_TEST_CASE(any_seals_lead_to_a_decision_that_can_be_carried_out) {
  std::array<std::uint64_t, 4> seen{};
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 engine(seed);
      const tests::sealed_place s = tests::wild_seals(
        [&](std::uint64_t n) { return n == 0 ? 0 : engine() % n; });
      BOOST_REQUIRE_NO_THROW(tests::check_decision(s));
      ++seen[std::size_t(core::decide_resume(s.place, s.blocks, s.origin_step,
                                             s.interval, s.seals)
                           .from)];
    }
  BOOST_TEST(seen[1] > seeds / 100); // live, checkpoint, origin
  BOOST_TEST(seen[2] > seeds / 100);
  BOOST_TEST(seen[3] > seeds / 100);
}

/// Peer 1 went on at `last` under assignment 8. Peer 2, that was stopped
/// meanwhile, has all state of step 11, and its copy of step 9.
resume_decision
resume_beside_a_peer_that_was_stopped(state_version last,
                                      std::vector<checkpoint_ref> saved = {}) {
  const island_place a = make_place(1, 2, 9);
  seal here;
  here.header = header_of(a);
  here.last.version = last;
  here.stored = whole(saved);
  here.heard = saved;
  seal stopped = make_seal(a, {0, 1, 2, 3}, {11, 2});
  for (std::uint32_t unit = 0; unit < 4; ++unit)
    stopped.copies.push_back({unit, {9, 2}});
  return decide_resume(a, 2, 0, 10, {{peer(1), here}, {peer(2), stopped}});
}

/// The run went back behind it, and its steps are run again: it is no part of
/// this history any more.
BOOST_AUTO_TEST_CASE(state_that_was_given_up_is_not_gone_on_with) {
  using source = resume_decision::source;
  const checkpoint_ref saved{5, {{5}}, 2};
  auto d = resume_beside_a_peer_that_was_stopped({5, 8}, {saved});
  BOOST_TEST((d.from == source::checkpoint));
  BOOST_TEST((d.version == state_version{5, 9}));
  BOOST_TEST(!d.copies);
  d = resume_beside_a_peer_that_was_stopped({8, 8}, {saved});
  BOOST_TEST((d.version == state_version{5, 9}));
  d = resume_beside_a_peer_that_was_stopped({0, 8});
  BOOST_TEST((d.from == source::origin));
  // Steps that the run went on from, or that others have not heard of.
  for (const state_version last :
       {state_version{12, 8}, {11, 8}, {11, 2}, {10, 2}, {}}) {
    d = resume_beside_a_peer_that_was_stopped(last, {saved});
    BOOST_TEST((d.from == source::live));
    BOOST_TEST((d.version == state_version{11, 2}));
    BOOST_TEST((d.copies == state_version{9, 2}));
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
