// tests/runtime/node/gate_test.cpp -- which peers' messages pass, and in which
// order.
#include "runtime/node/gate.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <set>
#include <thread>
#include <utility>

namespace shoal::runtime {
BOOST_AUTO_TEST_SUITE(gates)

namespace {

core::peer_id peer(std::uint8_t n) {
  core::peer_id id{};
  id[0] = n;
  return id;
}

/// Writes down what passes.
class passed final : public message_handler {
public:
  void take(const peer& f, core::cluster::message&& m) override { add(f, m); }
  void take(const peer& f, core::job_message&& m) override { add(f, m); }
  void take(const peer& f, core::serve_message&& m) override { add(f, m); }
  void take(const peer& f, link_credit&& m) override { add(f, m); }
  void take(const peer& f, blob_request&& m) override { add(f, m); }
  void take(const peer& f, blob_chunk&& m) override { add(f, m); }
  void take(const peer& f, paired_address&& m) override { add(f, m); }
  void take(const peer& f, role_message&& m) override { add(f, m); }
  void take(const peer& f, client_request&& m) override { add(f, m); }
  void take(const peer& f, client_reply&& m) override { add(f, m); }
  void take(const peer& f, link_probe&& m) override { add(f, m); }

  std::vector<std::uint64_t> attempts() const {
    std::vector<std::uint64_t> list;
    for (const envelope& e : seen)
      list.push_back(std::get<link_credit>(e).attempt);
    return list;
  }

  std::vector<envelope> seen;
  std::function<void(const envelope&)> then; ///< after each

private:
  template <class Message>
  void add(const peer&, Message& m) {
    seen.emplace_back(std::in_place_type<Message>, std::move(m));
    if (then)
      then(envelope(seen.back()));
  }
};

struct world {
  void credit(std::uint8_t from, std::uint64_t attempt) {
    link_credit c;
    c.attempt = attempt;
    door.take(peer(from), envelope(c), 100);
  }
  passed out;
  std::vector<envelope>& seen = out.seen;
  gate door{out};
};

/// One of each kind.
template <std::size_t... Kind>
std::vector<envelope> all_kinds(std::index_sequence<Kind...>) {
  return {envelope(std::in_place_index<Kind>)...};
}

} // namespace

BOOST_AUTO_TEST_CASE(messages_that_make_a_view_pass_from_all_peers) {
  world w;
  w.door.take(peer(1), envelope(core::cluster::message{}), 10);
  w.door.take(peer(1), envelope(core::job_message{}), 10);
  w.door.take(peer(1), envelope(blob_chunk{}), 10);
  BOOST_TEST(w.seen.size() == 3);
}

BOOST_AUTO_TEST_CASE(messages_that_count_only_from_members_are_held) {
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

BOOST_AUTO_TEST_CASE(messages_before_the_view_pass_with_it_in_order) {
  world w;
  for (std::uint64_t i = 0; i < 5; ++i)
    w.credit(1, i);
  w.door.members({peer(2)});
  BOOST_TEST(w.seen.empty());
  w.door.members({peer(1), peer(2)});
  w.credit(1, 5);
  BOOST_TEST(w.out.attempts() == (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}),
             boost::test_tools::per_element());
  BOOST_TEST(w.door.dropped() == 0);
}

BOOST_AUTO_TEST_CASE(messages_during_a_release_wait_their_turn) {
  world w;
  w.out.then = [&](const envelope& e) {
    const auto attempt = std::get<link_credit>(e).attempt;
    if (attempt
        < 3) // as from the progress thread, in the middle of the release
      std::thread([&] { w.credit(1, attempt + 3); }).join();
  };
  for (std::uint64_t i = 0; i < 3; ++i)
    w.credit(1, i);
  w.door.members({peer(1)});
  BOOST_TEST(w.out.attempts() == (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}),
             boost::test_tools::per_element());
}

/// What a stranger says is held or passes, and nothing is taken for another
/// kind on the way.
BOOST_AUTO_TEST_CASE(each_kind_is_dispatched_as_the_kind_that_it_is) {
  const auto kinds =
    all_kinds(std::make_index_sequence<std::variant_size_v<envelope>>());
  world w;
  std::size_t held = 0;
  for (const envelope& e : kinds) {
    const std::size_t before = w.seen.size();
    w.door.take(peer(1), envelope(e), 10);
    held += senders_of(e) == senders::members;
    if (senders_of(e) == senders::members)
      BOOST_TEST(w.seen.size() == before);
    else
      BOOST_TEST(w.seen.back().index() == e.index());
  }
  BOOST_TEST(held == 6);
  w.door.members({peer(1)});
  BOOST_TEST(w.seen.size() == kinds.size());
  std::set<std::size_t> indices;
  for (const envelope& e : w.seen)
    indices.insert(e.index());
  BOOST_TEST(indices.size() == kinds.size());
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

BOOST_AUTO_TEST_CASE(held_messages_are_bounded) {
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
