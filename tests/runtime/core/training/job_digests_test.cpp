// tests/runtime/core/training/job_digests_test.cpp -- holders of one version
// with different bytes: detected by votes and by seals, and repaired from the
// correct holders.
#include "tests/runtime/core/training/job_pieces.hpp"

#include <limits>

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_digests)

namespace {

/// Seals of peers that all hold all units at step 9, and had `digests` of unit
/// 1 at step 8; 0: none.
std::map<peer_id, seal>
seals_of(const island_place& a, const std::vector<std::uint64_t>& digests) {
  std::map<peer_id, seal> out;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    seal s = make_seal(a, {0, 1, 2}, {9, 2});
    if (digests[i] != 0) {
      s.units[1].hashed = {8, 2};
      s.units[1].digest = digests[i];
    }
    out[peer(std::uint8_t(i + 1))] = s;
  }
  return out;
}

/// The peers that have to get unit 1 anew, and their sources.
std::vector<std::pair<peer_id, peer_id>>
mended(const std::vector<std::uint64_t>& digests) {
  const island_place a = make_place(std::uint32_t(digests.size()), 1, 3);
  const resume_decision d = decide_resume(a, 1, 0, 0, seals_of(a, digests));
  BOOST_TEST((d.version == state_version{9, 2}));
  BOOST_TEST(d.differing.size() == d.transfers.size());
  std::vector<std::pair<peer_id, peer_id>> out;
  for (const auto& t : d.transfers) {
    BOOST_TEST(t.unit == 1u);
    out.emplace_back(t.to, t.from);
  }
  return out;
}

using pairs = std::vector<std::pair<peer_id, peer_id>>;

vote vote_of_other(const island_place& a, std::uint64_t step,
                   std::vector<unit_digest> digests) {
  const ev::prepared e = make_prepared(a, 1, 2, step);
  vote v;
  v.header = header_of(a);
  v.step = step;
  v.units = e.units;
  v.losses = e.losses;
  v.digests = std::move(digests);
  return v;
}

/// Two replicas of one block; peer 1, with digests every second step.
struct pair_of_replicas {
  island_place place = make_place(2, 1);
  job_core core{[] {
    job_config c = make_config(1, 1);
    c.digest_every = 2;
    c.total_steps = 9;
    return c;
  }()};
  job_actions out;

  pair_of_replicas() {
    run(ev::blobs_held{});
    run(show(place));
    run(ev::halted{digest(place)});
    run(ev::received{peer(2), make_seal(place, {}, {})});
    for (std::uint32_t u = 0; u < 3; ++u)
      run(ev::loaded{digest(place), u});
  }
  void run(const job_input& in) { out = core.step(in, 0); }
  /// Step `step`, with digests here and there; what the commit has led to.
  job_actions step(std::uint64_t step, std::vector<unit_digest> here,
                   std::vector<unit_digest> there, double loss = 1.5) {
    ev::prepared e = make_prepared(place, 1, 1, step);
    e.losses.front() = loss;
    e.digests = std::move(here);
    run(e);
    vote v = vote_of_other(place, step, std::move(there));
    v.losses = e.losses;
    run(ev::received{peer(2), v});
    const job_actions committed = out;
    run(ev::applied{step});
    return committed;
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(equal_or_unknown_digests_move_nothing) {
  BOOST_TEST((mended({5, 5, 5}).empty()));
  BOOST_TEST((mended({0, 5, 5}).empty()));
  BOOST_TEST((mended({0, 0, 6}).empty()));
}

BOOST_AUTO_TEST_CASE(most_are_right_else_those_with_the_lowest) {
  BOOST_TEST((mended({5, 6, 6}) == pairs{{peer(1), peer(2)}}));
  BOOST_TEST((mended({5, 6, 5}) == pairs{{peer(2), peer(1)}}));
  BOOST_TEST((mended({5, 6}) == pairs{{peer(2), peer(1)}}));
  BOOST_TEST((mended({7, 6, 6, 7}).size() == 2u));
  BOOST_TEST((mended({7, 6, 6, 7}).front().first == peer(2)));
}

BOOST_AUTO_TEST_CASE(digests_of_other_versions_are_not_compared) {
  const island_place a = make_place(2, 1, 3);
  auto seals = seals_of(a, {5, 6});
  seals[peer(2)].units[1].hashed = {7, 2};
  BOOST_TEST(decide_resume(a, 1, 0, 0, seals).differing.empty());
  seals[peer(2)].units[1].hashed = {8, 1};
  BOOST_TEST(decide_resume(a, 1, 0, 0, seals).differing.empty());
}

/// If only one peer has the state to go on from, it is used, whatever others
/// had.
BOOST_AUTO_TEST_CASE(no_step_is_lost_for_a_digest) {
  const island_place a = make_place(3, 1, 3);
  auto seals = seals_of(a, {5, 5, 6});
  for (const std::uint8_t n : {1, 2})
    for (held_unit& u : seals[peer(n)].units)
      u.applied = {8, 2};
  const resume_decision d = decide_resume(a, 1, 0, 0, seals);
  BOOST_TEST((d.version == state_version{9, 2}));
  BOOST_TEST(d.differing.empty());
}

BOOST_AUTO_TEST_CASE(every_unit_in_two_places_is_hashed_in_turn) {
  pair_of_replicas p;
  using list = std::vector<std::uint32_t>;
  auto asked = [&] { return all<act::run_step>(p.out).at(0).digests; };
  BOOST_TEST((asked() == list{0, 2}));
  p.step(1, {{0, 4}, {2, 5}}, {{0, 4}, {2, 5}});
  BOOST_TEST((asked() == list{1}));
  p.step(2, {{1, 6}}, {{1, 6}});
  BOOST_TEST((asked() == list{0, 2}));

  const island_place alone = make_place(1, 1);
  job_core one = started(alone, 1);
  const auto out = one.step(make_prepared(alone, 1, 1, 1), 0);
  BOOST_TEST(
    all<act::run_step>(one.step(ev::applied{1}, 0)).at(0).digests.empty());
  BOOST_TEST(all<act::apply>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(votes_that_differ_make_all_begin_anew) {
  pair_of_replicas p;
  BOOST_TEST(all<act::begin_anew>(p.step(1, {{0, 4}}, {{0, 4}})).empty());
  const auto out = p.step(2, {{1, 6}}, {{1, 7}});
  BOOST_REQUIRE(all<act::begin_anew>(out).size() == 1u);
  BOOST_TEST(all<act::begin_anew>(out)[0].since == p.place.since);
  BOOST_TEST(all<act::apply>(out).size() == 1u); // it is committed
}

/// A model that has diverged is not a machine that fails.
BOOST_AUTO_TEST_CASE(nothing_is_compared_where_numbers_are_none) {
  pair_of_replicas p;
  const auto out =
    p.step(1, {{0, 4}}, {{0, 5}}, std::numeric_limits<double>::quiet_NaN());
  BOOST_TEST(all<act::begin_anew>(out).empty());
  BOOST_TEST(all<act::apply>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_seal_says_the_newest_digest_of_what_is_held) {
  pair_of_replicas p;
  p.step(1, {{0, 4}, {2, 5}}, {{0, 4}, {2, 5}});
  p.step(2, {{1, 6}}, {{1, 7}});
  island_place anew = make_place(2, 1, 5);
  p.run(show(anew));
  p.run(ev::halted{digest(anew)});
  const auto sent = all<act::send>(p.out);
  BOOST_REQUIRE(sent.size() == 1u);
  const seal own = std::get<seal>(sent[0].message);
  BOOST_TEST((own.units[0].hashed == state_version{0, 2}));
  BOOST_TEST(own.units[0].digest == 4u);
  BOOST_TEST((own.units[1].hashed == state_version{1, 2}));
  BOOST_TEST(own.units[1].digest == 6u);

  seal theirs = own;
  theirs.units[1].digest = 7;
  p.run(ev::received{peer(2), theirs});
  const auto said = all<act::state_differs>(p.out);
  BOOST_REQUIRE(said.size() == 1u);
  BOOST_TEST((said[0].units == std::vector<differing_unit>{{1, 1, peer(2)}}));
  BOOST_TEST(all<act::serve_unit>(p.out).size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
