// tests/runtime/core/training/job_duty_test.cpp -- what an assignment asks of a
// peer.
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {

BOOST_AUTO_TEST_SUITE(job_duty)

BOOST_AUTO_TEST_CASE(a_stage_computes_and_seals) {
  const island_place a = make_place(1, 2);
  const duty d = duty_under(a, {7, 0}, peer(2));
  BOOST_TEST((d.units == std::vector<std::uint32_t>{2, 3}));
  BOOST_TEST(d.participates());
  BOOST_TEST(d.seals());
  BOOST_TEST((d.participants == std::vector{peer(1), peer(2)}));
}

BOOST_AUTO_TEST_CASE(a_sealer_without_a_stage_holds_no_units) {
  island_place a = make_place(1, 2);
  a.sealers = {id(9), id(1), id(2)}; // in any order
  const duty d = duty_under(a, {7, 0}, peer(9));
  BOOST_TEST(d.units.empty());
  BOOST_TEST(!d.participates());
  BOOST_TEST(d.seals());
  BOOST_TEST(!duty_under(a, {7, 0}, peer(3)).seals());
}

BOOST_AUTO_TEST_CASE(only_messages_under_the_assignment_are_its_own) {
  const island_place a = make_place(1, 2);
  const duty d = duty_under(a, {7, 0}, peer(1));
  BOOST_TEST(d.mine({7, digest(a), 2}));
  BOOST_TEST(!d.mine({7, digest(a), 3}));
  BOOST_TEST(!d.mine({7, digest(a) + 1, 2}));
  const duty none = duty_under({}, {7, 0}, peer(1));
  BOOST_TEST(!none.mine(none.header)); // there is nothing to be under
}

BOOST_AUTO_TEST_CASE(a_peer_sends_to_all_but_itself) {
  job_actions out;
  send_to({peer(1), peer(2), peer(3)}, peer(2), have_blobs{}, out);
  const auto sent = all<act::send>(out);
  BOOST_REQUIRE(sent.size() == 2u);
  BOOST_TEST((sent[0].to == peer(1)));
  BOOST_TEST((sent[1].to == peer(3)));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
