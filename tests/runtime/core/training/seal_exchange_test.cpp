// tests/runtime/core/training/seal_exchange_test.cpp -- which seals count.
#include "runtime/core/training/job/state/seal_exchange.hpp"
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_seal_exchange)

namespace {

const island_place first = make_place(1, 2, 2), second = make_place(1, 2, 5);

} // namespace

BOOST_AUTO_TEST_CASE(the_first_seal_of_a_peer_is_the_only_one) {
  const duty d = duty_under(first, {7, 0}, peer(1));
  seal_exchange seals;
  seals.take(peer(2), make_seal(first, {0}, {4, 2}));
  seals.take(peer(2), make_seal(first, {0}, {9, 2}));
  BOOST_REQUIRE(seals.find(peer(2)) != nullptr);
  BOOST_TEST((seals.find(peer(2))->last.version == state_version{4, 2}));
  BOOST_TEST(seals.find(peer(1)) == nullptr);
  BOOST_TEST(!seals.complete(d));
  seals.take(peer(1), make_seal(first, {0}, {4, 2}));
  BOOST_TEST(seals.complete(d));
  seals.halt();
  BOOST_TEST(!seals.complete(d));
}

BOOST_AUTO_TEST_CASE(a_seal_that_comes_early_waits_for_its_assignment) {
  seal_exchange seals;
  seals.keep(peer(2), make_seal(second, {0}, {4, 2}));
  BOOST_TEST(seals.take_early(duty_under(first, {7, 0}, peer(1))).empty());
  BOOST_TEST(seals.is_early({peer(2)}, 5));
  BOOST_TEST(!seals.is_early({peer(2)}, 6));
  BOOST_TEST(!seals.is_early({peer(1)}, 5));
  const duty d = duty_under(second, {7, 0}, peer(1));
  const auto early = seals.take_early(d);
  BOOST_REQUIRE(early.size() == 1u);
  BOOST_TEST((early[0].first == peer(2)));
  BOOST_TEST(seals.take_early(d).empty());
}

BOOST_AUTO_TEST_CASE(one_of_an_assignment_that_was_skipped_is_dropped) {
  seal_exchange seals;
  seals.keep(peer(2), make_seal(first, {0}, {4, 2}));
  BOOST_TEST(seals.take_early(duty_under(second, {7, 0}, peer(1))).empty());
  BOOST_TEST(!seals.is_early({peer(2)}, 0));
}

BOOST_AUTO_TEST_CASE(of_early_seals_the_newest_of_each_peer_is_kept) {
  seal_exchange seals;
  seals.keep(peer(2), make_seal(second, {0}, {4, 2}));
  seals.keep(peer(2), make_seal(first, {0}, {4, 2})); // late in the network
  BOOST_TEST(seals.is_early({peer(2)}, 5));
  for (std::size_t n = 0; n < 2 * seal_exchange::kept_max; ++n)
    seals.keep(peer(std::uint8_t(3 + n)), make_seal(second, {0}, {4, 2}));
  const duty d = duty_under(second, {7, 0}, peer(1));
  BOOST_TEST(seals.take_early(d).size() == seal_exchange::kept_max);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
