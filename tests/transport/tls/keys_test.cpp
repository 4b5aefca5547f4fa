// tests/transport/tls/keys_test.cpp -- replaced keys, revocations and copied
// identities between TLS fabrics.
#include "tests/conformance/fixture.hpp"
#include "transport/tls/fabric.hpp"

namespace shoal::transport::tls {
namespace {

using namespace conformance;

/// A fabric, what it reports, and what it was told.
struct end {
  explicit end(board& b) : heard(b), notes(b) {
    c.identity = make_private_key();
    c.cluster_key = {1};
    c.instance = make_instance();
    c.refused = [this](refusal why, const std::string&) {
      notes.post([&] { told.push_back(why); });
    };
  }
  ~end() {
    if (link)
      link->close();
  }
  void open() { link = std::make_unique<fabric>(c, heard); }
  bool is_up(const end& peer) {
    return notes.wait([&] { return heard.ups[peer.link->id()] > 0; });
  }
  bool is_down(const end& peer) {
    return notes.wait([&] { return heard.downs[peer.link->id()] > 0; });
  }
  bool is_told(refusal why) {
    return notes.wait([&] { return std::ranges::count(told, why) > 0; });
  }
  bool has_failed(std::size_t times) {
    return notes.wait([&] { return heard.failed.size() >= times; });
  }
  void dial(const end& to) { link->connect(to.link->local_address()); }

  config c;
  recorder heard;
  board& notes;
  std::vector<refusal> told;
  std::unique_ptr<fabric> link;
};

struct two_ends {
  board notes;
  end a{notes};
  end b{notes};
};

BOOST_FIXTURE_TEST_SUITE(tls_keys, two_ends)

BOOST_AUTO_TEST_CASE(a_revoked_peer_is_dropped_and_learns_why) {
  a.open();
  b.open();
  b.dial(a);
  BOOST_REQUIRE(a.is_up(b));
  keyring keys;
  keys.current = {2};
  keys.replaced = {{1}};
  keys.revoked = {b.link->id()};
  a.link->set_keys(keys);
  BOOST_TEST(a.is_down(b));
  BOOST_TEST((a.heard.why_down == errc::canceled));
  BOOST_TEST(b.is_down(a));
  b.dial(a);
  BOOST_TEST(b.is_told(refusal::revoked));
}

BOOST_AUTO_TEST_CASE(a_replaced_key_admits_a_known_peer) {
  a.open();
  b.open();
  keyring keys;
  keys.current = {2};
  keys.replaced = {{1}};
  a.link->set_keys(keys);
  b.dial(a);
  BOOST_TEST(b.is_told(refusal::key_replaced));
  keys.known = {b.link->id()};
  a.link->set_keys(keys);
  BOOST_REQUIRE(b.has_failed(1));
  b.dial(a);
  BOOST_TEST(a.is_up(b));
}

BOOST_AUTO_TEST_CASE(a_pending_key_is_tried_after_a_refusal) {
  a.open();
  b.open();
  keyring keys;
  keys.current = {2};
  a.link->set_keys(keys);
  keys.current = {1};
  keys.pending = {{2}};
  b.link->set_keys(keys);
  b.dial(a);
  BOOST_REQUIRE(b.has_failed(1));
  b.dial(a);
  BOOST_TEST(a.is_up(b));
}

BOOST_AUTO_TEST_CASE(a_second_process_is_refused_while_the_first_is_heard) {
  end copy(notes);
  copy.c.identity = b.c.identity;
  a.c.alive_window = std::chrono::hours(1);
  a.open();
  b.open();
  copy.open();
  b.dial(a);
  BOOST_REQUIRE(a.is_up(b));
  BOOST_REQUIRE(b.is_up(a));
  BOOST_REQUIRE(!push(*b.link, a.link->id(), as_bytes("here")));
  BOOST_REQUIRE(notes.wait([&] { return a.heard.received > 0; }));
  copy.dial(a);
  BOOST_TEST(copy.is_told(refusal::duplicate));
  BOOST_TEST(a.heard.downs.empty());
  b.link->close(); // then the other may have its place
  BOOST_REQUIRE(a.is_down(b));
  BOOST_REQUIRE(copy.has_failed(1));
  copy.dial(a);
  BOOST_TEST(copy.is_up(a));
}

BOOST_AUTO_TEST_CASE(of_two_that_meet_the_higher_instance_is_refused) {
  b.c.identity = a.c.identity;
  for (end* e : {&a, &b}) {
    e->c.alive_window = std::chrono::hours(1);
    e->c.instance = e == &a ? 7 : 8;
    e->open();
  }
  a.dial(b);
  BOOST_TEST(b.is_told(refusal::duplicate));
  BOOST_REQUIRE(a.has_failed(1));
  notes.post([&] { b.told.clear(); });
  b.dial(a);
  BOOST_TEST(b.is_told(refusal::duplicate));
  BOOST_REQUIRE(b.has_failed(1));
  BOOST_TEST(a.told.empty());
  BOOST_TEST(a.heard.ups.empty());
}

BOOST_AUTO_TEST_CASE(only_the_expected_peer_may_answer) {
  b.c.expected = peer_id{9};
  a.open();
  b.open();
  b.dial(a);
  BOOST_REQUIRE(b.has_failed(1));
  BOOST_TEST(b.heard.ups.empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace shoal::transport::tls
