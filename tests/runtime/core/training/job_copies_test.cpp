// tests/runtime/core/training/job_copies_test.cpp -- copies of every so manieth
// step are taken where they are wanted, and serve on under another assignment.
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_copies)

namespace {

/// Peers 1 and 2 are a pipeline and follow each other, every 3 steps.
island_place both_follow(epoch since) {
  island_place a = make_place(1, 2, since);
  a.followers = {{id(2), 0, 2}, {id(1), 2, 4}};
  a.copy_every = 3;
  return a;
}

/// The copies that peer 1 has to make after its first step under `a`, step 9,
/// where both have copies of step 7, except for peer 2 according to `lost`.
std::vector<act::take_copies>
resumed(const island_place& a, std::uint32_t lost) {
  job_config c = make_config(1, 2);
  c.total_steps = 20;
  job_core core(c);
  (void)core.step(ev::blobs_held{}, 0);
  const island_place first = both_follow(2);
  auto run = [&](const job_input& in) { return core.step(in, 0); };
  (void)run(show(first));
  (void)run(ev::halted{digest(first)});
  (void)run(ev::received{peer(2), make_seal(first, {}, {})});
  auto vote_of_other = [&](const island_place& under, std::uint64_t step,
                           std::uint64_t copied) {
    const ev::prepared e = make_prepared(under, 2, 2, step);
    vote v;
    v.header = header_of(under);
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

BOOST_AUTO_TEST_CASE(copies_that_are_where_they_should_be_serve_on) {
  island_place a = both_follow(9);
  a.reporter = id(2); // some other change
  BOOST_TEST(resumed(a, 99).empty());
}

BOOST_AUTO_TEST_CASE(copies_that_are_not_are_taken_after_a_step) {
  const auto again = resumed(both_follow(9), 0);
  BOOST_REQUIRE(again.size() == 1u);
  BOOST_TEST(again[0].version.step == 9u);
  island_place other = both_follow(9);
  other.followers = {{id(2), 0, 1}, {id(1), 2, 4}}; // fewer will do
  BOOST_TEST(resumed(other, 99).empty());
}

/// Peer 1 of both_follow(), from its first step on; peer 2 says that it has
/// copied whenever peer 1 has.
struct copying_pair {
  island_place place = both_follow(2);
  job_core core{[] {
    job_config c = make_config(1, 2);
    c.total_steps = 40;
    return c;
  }()};
  std::optional<act::take_copies> last;
  bool copied = false;
  std::vector<std::uint64_t> begun; ///< steps

  explicit copying_pair(std::uint32_t every) {
    place.copy_every = every;
    (void)run(ev::blobs_held{});
    (void)run(show(place));
    (void)run(ev::halted{digest(place)});
    (void)run(ev::received{peer(2), make_seal(place, {}, {})});
    (void)run(ev::loaded{digest(place), 0});
    (void)run(ev::loaded{digest(place), 1});
  }
  job_actions run(const job_input& in) {
    auto out = core.step(in, 0);
    for (const act::take_copies& t : all<act::take_copies>(out)) {
      last = t;
      copied = false;
      begun.push_back(t.version.step);
    }
    return out;
  }
  /// Computed, and voted for by the other. @returns whether it is committed
  bool step(std::uint64_t number) {
    const ev::prepared e = make_prepared(place, 2, 2, number);
    vote v;
    v.header = header_of(place);
    v.step = number;
    v.units = e.units;
    v.losses = e.losses;
    v.copied = copied ? last->version.step + 1 : 0;
    (void)run(make_prepared(place, 2, 1, number));
    return end(number, run(ev::received{peer(2), v}));
  }
  bool end(std::uint64_t number, const job_actions& out) {
    if (all<act::apply>(out).empty())
      return false;
    (void)run(ev::applied{number});
    return true;
  }
  /// @returns what the last of them leads to
  job_actions copy() {
    copied = true;
    job_actions out;
    for (std::uint32_t u = 0; u < 4; ++u)
      out = run(ev::copied{digest(place), last->version, u});
    return out;
  }
};

/// With copies that take three steps, the next begin early enough that five at
/// most are not in them.
BOOST_AUTO_TEST_CASE(copies_begin_earlier_by_what_they_take) {
  copying_pair p(5);
  std::uint64_t uncopied = 0, complete = 0;
  for (std::uint64_t step = 1; step <= 30; ++step) {
    const bool here = p.last && step == p.last->version.step + 3;
    if (here) {
      complete = p.last->version.step;
      (void)p.copy();
    }
    BOOST_REQUIRE(p.step(step));
    uncopied = std::max(uncopied, step - complete);
  }
  BOOST_TEST(uncopied <= 5u);
  BOOST_TEST(p.begun.size() > 8u);
  BOOST_TEST(p.begun[6] - p.begun[5] == 3u); // 5 - 3 + 1
}

BOOST_AUTO_TEST_CASE(
  copies_that_take_no_longer_than_a_step_are_as_rare_as_said) {
  copying_pair p(5);
  for (std::uint64_t step = 1; step <= 30; ++step) {
    if (p.last && !p.copied)
      (void)p.copy();
    BOOST_REQUIRE(p.step(step));
  }
  BOOST_TEST((p.begun == std::vector<std::uint64_t>{1, 6, 11, 16, 21, 26}));
}

BOOST_AUTO_TEST_CASE(a_step_too_many_waits_for_copies) {
  copying_pair p(3);
  BOOST_REQUIRE(p.step(1));
  BOOST_REQUIRE(p.last->version.step == 1u);
  BOOST_REQUIRE(p.step(2));
  BOOST_REQUIRE(p.step(3)); // would be run again from the start, and two more
  BOOST_TEST(!p.step(4));
  BOOST_TEST((p.core.now_in() == job_core::phase::running));
  for (std::uint32_t u = 0; u < 3; ++u)
    BOOST_TEST(p.run(ev::copied{digest(p.place), p.last->version, u}).empty());
  const auto out = p.run(ev::copied{digest(p.place), p.last->version, 3});
  BOOST_REQUIRE(all<act::send>(out).size() == 1u);
  const vote v = std::get<vote>(all<act::send>(out)[0].message);
  BOOST_TEST(v.step == 4u);
  BOOST_TEST(v.copied == 2u);
  BOOST_TEST(p.end(4, out)); // the other's vote was here
}

/// What waits is not prepared: another assignment runs it anew.
BOOST_AUTO_TEST_CASE(a_step_that_waits_is_not_sealed) {
  copying_pair p(3);
  for (std::uint64_t step = 1; step <= 4; ++step)
    BOOST_TEST(p.step(step) == (step < 4));
  const island_place next = both_follow(9);
  (void)p.run(show(next));
  const auto out = p.run(ev::halted{digest(next)});
  const auto sent = all<act::send>(out);
  BOOST_REQUIRE(sent.size() == 1u);
  BOOST_TEST(std::get<seal>(sent[0].message).prepared.step == 0u);
}

/// Peer 2 gets the state from copies of peer 1, which takes the next at once.
BOOST_AUTO_TEST_CASE(copies_that_others_still_fetch_are_kept) {
  copying_pair p(3);
  for (std::uint64_t step = 1; step <= 4; ++step) {
    BOOST_REQUIRE(p.step(step));
    if (step == 1)
      (void)p.copy();
  }
  BOOST_REQUIRE(p.last->version.step == 4u);
  for (const std::uint32_t u : {1u, 2u, 3u}) // whole are those of step 1 only
    (void)p.run(ev::copied{digest(p.place), p.last->version, u});
  const island_place next = both_follow(9);
  (void)p.run(show(next));
  (void)p.run(ev::halted{digest(next)});
  seal theirs = make_seal(next, {}, {4, 2});
  for (std::uint32_t u = 0; u < 4; ++u)
    theirs.copies.push_back({u, {1, 2}});
  const auto out = p.run(ev::received{peer(2), theirs});
  const auto served = all<act::serve_unit>(out);
  BOOST_REQUIRE(served.size() == 2u);
  BOOST_REQUIRE((served[0].copy == state_version{4, 2}));
  BOOST_REQUIRE(all<act::take_copies>(out).size() == 1u);
  for (const act::drop_copies& d : all<act::drop_copies>(out))
    BOOST_TEST(std::ranges::count(d.keep, state_version{4, 2}) == 1);
  BOOST_TEST(p.core.copies().at({4, 2}).contains(served[0].unit));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
