// tests/runtime/node/state/other_shoals_test.cpp -- which shoals a status lists,
// and which of two gives way.
#include "runtime/node/state/other_shoals.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(other_shoals)

namespace {

core::peer_id peer(std::uint8_t number) {
  core::peer_id out{};
  out.fill(number);
  return out;
}

core::shoal_id shoal(std::uint8_t number) {
  core::shoal_id out{};
  out[0] = number;
  return out;
}

core::view ours() {
  core::view v;
  v.shoal = shoal(1);
  v.members.emplace_back().id.peer = peer(1);
  return v;
}

} // namespace

BOOST_AUTO_TEST_CASE(peers_of_one_shoal_are_listed_together_and_members_never) {
  const core::view v = ours();
  const auto all =
    other_shoals_json(&v, {{peer(1), {shoal(2), "me", 1, 0, {}, 0}},
                           {peer(2), {shoal(1), "ours", 1, 0, {}, 0}},
                           {peer(3), {shoal(2), "anna", 2, 1, {}, 0}},
                           {peer(4), {shoal(2), "bert", 3, 0, {}, 0}}});
  BOOST_TEST_REQUIRE(all.size() == 1);
  BOOST_TEST(all[0]["peers"].dump() == R"(["anna","bert"])");
  BOOST_TEST(all[0]["members"] == 3);
  BOOST_TEST(all[0]["running"] == 1);
  BOOST_TEST(!all[0].contains("gives_way"));
  BOOST_TEST(other_shoals_json(nullptr, {}).empty());
}

BOOST_AUTO_TEST_CASE(the_shoal_that_was_replaced_by_force_gives_way) {
  core::view v = ours();
  const auto way = [&v](std::vector<core::shoal_id> replaced) {
    return other_shoals_json(
      &v, {{peer(3), {shoal(2), "anna", 2, 1, std::move(replaced), 0}}})[0];
  };
  BOOST_TEST(way({shoal(1)})["gives_way"] == "this");
  v.superseded = {{shoal(2), 7}};
  BOOST_TEST(way({shoal(3)})["gives_way"] == "other");
  v.superseded = {{shoal(4), 7}};
  BOOST_TEST(!way({shoal(3)}).contains("gives_way"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
