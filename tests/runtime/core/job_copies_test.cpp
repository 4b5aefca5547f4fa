// tests/runtime/core/job_copies_test.cpp -- copies of every so manieth step are
// taken where they are wanted, and serve on under another assignment.
#include "tests/runtime/core/job_pieces.hpp"

namespace shoal::test {
namespace {

/// Peers 1 and 2 are a pipeline and follow each other, every 3 steps.
assignment both_follow(epoch since) {
  assignment a = make_place(1, 2, since);
  a.followers = {{id(2), 0, 2}, {id(1), 2, 4}};
  a.copy_every = 3;
  return a;
}

/// What peer 1 is asked to copy after its first step under `a`, step 9, where
/// both have copies of step 7, but for what `lost` says of peer 2.
std::vector<act::take_copies> resumed(const assignment& a, std::uint32_t lost) {
  job_config c = make_config(1, 2);
  c.total_steps = 20;
  job_core core(c);
  (void)core.step(ev::blobs_held{}, 0);
  const assignment first = both_follow(2);
  auto run = [&](const job_input& in) { return core.step(in, 0); };
  (void)run(show(first));
  (void)run(ev::halted{digest(first)});
  (void)run(ev::received{peer(2), make_seal(first, {}, {})});
  auto vote_of_other = [&](const assignment& under, std::uint64_t step,
                           std::uint64_t copied) {
    const ev::prepared e = make_prepared(under, 2, 2, step);
    vote v;
    v.on = {under.job, digest(under), under.since};
    v.step = step;
    v.units = e.units;
    v.losses = e.losses;
    v.copied = copied;
    return ev::received{peer(2), v};
  };
  std::optional<act::take_copies> last;
  auto note = [&](const job_actions& out) {
    for (const act::take_copies& t : all<act::take_copies>(out))
      last = t;
  };
  (void)run(ev::loaded{digest(first), 0});
  note(run(ev::loaded{digest(first), 1}));
  BOOST_TEST(!last); // all wait for the first step
  for (std::uint64_t step = 1; step <= 8; ++step) {
    BOOST_REQUIRE(last.has_value() == (step > 1));
    for (std::uint32_t u = 0; last && u < 4; ++u)
      (void)run(ev::copied{digest(first), last->version, u});
    (void)run(make_prepared(first, 2, 1, step));
    (void)run(vote_of_other(first, step, last ? last->version.step + 1 : 0));
    note(run(ev::applied{step}));
  }
  BOOST_REQUIRE(last->version.step == 7u);
  for (std::uint32_t u = 0; u < 4; ++u)
    (void)run(ev::copied{digest(first), last->version, u});

  (void)run(show(a));
  (void)run(ev::halted{digest(a)});
  seal theirs = make_seal(a, {2, 3}, {8, 2});
  for (std::uint32_t u = 0; u < 4; ++u)
    if (u != lost)
      theirs.copies.push_back({u, last->version});
  auto out = run(ev::received{peer(2), theirs});
  BOOST_REQUIRE(all<act::run_step>(out).size() == 1u);
  BOOST_TEST(all<act::take_copies>(out).empty());
  (void)run(make_prepared(a, 2, 1, 9));
  (void)run(vote_of_other(a, 9, last->version.step + 1));
  out = run(ev::applied{9});
  BOOST_REQUIRE(all<act::run_step>(out).size() == 1u);
  return all<act::take_copies>(out);
}

} // namespace

BOOST_AUTO_TEST_SUITE(job_copies)

BOOST_AUTO_TEST_CASE(copies_that_are_where_they_should_be_serve_on) {
  assignment a = both_follow(9);
  a.reporter = id(2); // some other change
  BOOST_TEST(resumed(a, 99).empty());
}

BOOST_AUTO_TEST_CASE(copies_that_are_not_are_taken_after_a_step) {
  const auto again = resumed(both_follow(9), 0);
  BOOST_REQUIRE(again.size() == 1u);
  BOOST_TEST(again[0].version.step == 9u);
  assignment other = both_follow(9);
  other.followers = {{id(2), 0, 1}, {id(1), 2, 4}}; // fewer will do
  BOOST_TEST(resumed(other, 99).empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
