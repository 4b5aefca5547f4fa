// tests/runtime/node/gate_test.cpp -- whose messages pass, and in what order.
#include "runtime/node/gate.hpp"

#include <boost/test/unit_test.hpp>

#include <thread>

namespace shoal::runtime {
namespace {

core::peer_id peer(std::uint8_t n) {
  core::peer_id id{};
  id[0] = n;
  return id;
}

/// A gate that writes down what passes.
struct world {
  struct passed {
    core::peer_id from;
    envelope what;
  };
  void credit(std::uint8_t from, std::uint64_t attempt) {
    link_credit c;
    c.attempt = attempt;
    door.take(peer(from), envelope(c), 100);
  }
  std::vector<std::uint64_t> attempts() const {
    std::vector<std::uint64_t> list;
    for (const auto& p : seen)
      list.push_back(std::get<link_credit>(p.what).attempt);
    return list;
  }
  std::vector<passed> seen;
  gate door{[this](const core::peer_id& from, envelope&& e) {
    seen.push_back({from, std::move(e)});
  }};
};

} // namespace

BOOST_AUTO_TEST_SUITE(gates)

BOOST_AUTO_TEST_CASE(what_makes_a_view_passes_from_everybody) {
  world w;
  w.door.take(peer(1), envelope(core::cluster::message{}), 10);
  w.door.take(peer(1), envelope(core::job_message{}), 10);
  w.door.take(peer(1), envelope(blob_chunk{}), 10);
  BOOST_TEST(w.seen.size() == 3);
}

BOOST_AUTO_TEST_CASE(what_counts_from_members_only_does_not) {
  world w;
  w.door.members({peer(2)});
  w.door.take(peer(1), envelope(link_credit{}), 10);
  w.door.take(peer(1), envelope(blob_request{}), 10);
  w.door.take(peer(1), envelope(role_message{}), 10);
  w.door.take(peer(1), envelope(paired_address{}), 10);
  BOOST_TEST(w.seen.empty());
  w.door.take(peer(2), envelope(role_message{}), 10);
  BOOST_TEST(w.seen.size() == 1);
  w.door.gone(peer(1));
  BOOST_TEST(w.door.dropped() == 4);
  w.door.members({peer(1), peer(2)});
  BOOST_TEST(w.seen.size() == 1);
}

BOOST_AUTO_TEST_CASE(what_came_before_the_view_passes_with_it_in_order) {
  world w;
  for (std::uint64_t i = 0; i < 5; ++i)
    w.credit(1, i);
  w.door.members({peer(2)});
  BOOST_TEST(w.seen.empty());
  w.door.members({peer(1), peer(2)});
  w.credit(1, 5);
  BOOST_TEST(w.attempts() == (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}),
             boost::test_tools::per_element());
  BOOST_TEST(w.door.dropped() == 0);
}

BOOST_AUTO_TEST_CASE(what_comes_while_others_are_released_waits_its_turn) {
  std::vector<std::uint64_t> seen;
  gate* self = nullptr;
  gate door([&](const core::peer_id&, envelope&& e) {
    const auto attempt = std::get<link_credit>(e).attempt;
    seen.push_back(attempt);
    if (attempt >= 3)
      return;
    // As from the progress thread, in the middle of the release.
    link_credit c;
    c.attempt = attempt + 3;
    std::thread([&] { self->take(peer(1), envelope(c), 100); }).join();
  });
  self = &door;
  for (std::uint64_t i = 0; i < 3; ++i) {
    link_credit c;
    c.attempt = i;
    door.take(peer(1), envelope(c), 100);
  }
  door.members({peer(1)});
  BOOST_TEST(seen == (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_expelled_peer_is_not_heard_until_it_is_admitted_anew) {
  world w;
  w.door.members({peer(1)});
  w.credit(1, 0);
  w.door.members({});
  w.credit(1, 1);
  BOOST_TEST(w.seen.size() == 1);
  w.door.members({peer(1)});
  BOOST_TEST(w.seen.size() == 2);
}

BOOST_AUTO_TEST_CASE(what_is_held_is_bounded) {
  world w;
  for (std::uint64_t i = 0; i < 2 * gate::held_max; ++i)
    w.credit(1, i);
  BOOST_TEST(w.door.dropped() == gate::held_max);
  const auto big = gate::held_bytes_max / 2;
  for (std::uint8_t p = 2; p < 200; ++p)
    for (int i = 0; i < 3; ++i)
      w.door.take(peer(p), envelope(role_message{}), big);
  // No third of any peer, and of all together no more than the limit.
  const auto fit = (gate::all_bytes_max - gate::held_max * 100) / big;
  BOOST_TEST(w.door.dropped() == gate::held_max + 198 * 3 - fit);
  std::set<core::peer_id> all;
  for (std::uint8_t p = 1; p < 200; ++p)
    all.insert(peer(p));
  w.door.members(all);
  BOOST_TEST(w.seen.size() == gate::held_max + fit);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
