// tests/transport/shm/order_test.cpp -- the order of events in one turn of a
// thread.
//
// A handler that waits holds a fabric's thread, so that all calls made
// meanwhile are handled in one turn.
#include "tests/conformance/fixture.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/shm/layout.hpp"

BOOST_AUTO_TEST_SUITE(shm_order)

using namespace shoal::transport;
using namespace shoal::transport::conformance;

namespace {

struct three {
  three() {
    meet(a, b);
    meet(a, c);
    BOOST_REQUIRE(notes.wait([&] {
      return heard_a.ups.size() == 2 && heard_b.ups.size() == 1
             && heard_c.ups.size() == 1;
    }));
  }
  ~three() {
    a.close();
    b.close();
    c.close();
  }
  static introduced::config settings(std::uint8_t who) {
    introduced::config s;
    s.self[0] = who;
    return s;
  }
  static void meet(fabric& x, fabric& y) {
    x.connect(y.local_address());
    y.connect(x.local_address());
  }
  /// Holds the thread of `at` with a message from `from`, until `gate` opens.
  void hold(recorder& at, const peer_id& to, fabric& from) {
    gate.lock();
    at.on_message = [this](const peer_id&, std::span<const std::byte>) {
      if (held)
        return;
      notes.post([this] { held = true; });
      gate.lock();
    };
    BOOST_REQUIRE(!from.send(to, as_bytes("stand still")));
    BOOST_REQUIRE(notes.wait([this] { return held; }));
  }
  /// Waits until a's thread has handled all earlier calls.
  void after_a() {
    const auto before = heard_c.received;
    BOOST_REQUIRE(!a.send(id_c, as_bytes("done")));
    BOOST_REQUIRE(notes.wait([&] { return heard_c.received > before; }));
  }

  board notes;
  std::mutex gate;
  bool held = false;
  recorder heard_a{notes}, heard_b{notes}, heard_c{notes};
  const peer_id id_a = settings(1).self, id_b = settings(2).self,
                id_c = settings(3).self;
  shm::fabric a{settings(1), heard_a}, b{settings(2), heard_b},
    c{settings(3), heard_c};
};

} // namespace

// With one line left before the end of the ring, no part of a transfer fits.
BOOST_AUTO_TEST_CASE(a_cancel_before_the_first_byte_begins_nothing) {
  three t;
  std::vector<std::byte> got(1000), again(1000);
  const auto sent = pattern(1000, 1);
  outcome in(t.notes), out(t.notes), in_again(t.notes), out_again(t.notes);
  BOOST_REQUIRE(!t.b.post_receive(t.id_a, {7, 0, 0}, got, in.done()));
  t.hold(t.heard_b, t.id_b, t.a); // two lines
  std::size_t left = shm::ring_bytes - 3 * shm::line_bytes;
  while (left > 0) {
    const auto part = std::min(left - shm::line_bytes, shm::payload_bytes_max);
    BOOST_REQUIRE(!t.a.send(t.id_b, pattern(part, 1)));
    left -= part + shm::line_bytes;
  }
  t.after_a();
  BOOST_REQUIRE(!t.a.send_bulk(t.id_b, {7, 0, 0}, sent, out.done()));
  t.after_a();
  t.a.cancel(7);
  BOOST_REQUIRE(out.wait());
  BOOST_TEST(out.result == errc::canceled);
  t.gate.unlock();
  BOOST_REQUIRE(!t.b.post_receive(t.id_a, {8, 0, 0}, again, in_again.done()));
  BOOST_REQUIRE(!t.a.send_bulk(t.id_b, {8, 0, 0}, sent, out_again.done()));
  BOOST_REQUIRE((in_again.wait() && out_again.wait()));
  BOOST_TEST((!in_again.result && !out_again.result));
  t.b.cancel(7); // no byte has come for it
  BOOST_REQUIRE(in.wait());
  BOOST_TEST(in.result == errc::canceled);
  BOOST_TEST((t.heard_a.downs.empty() && t.heard_b.downs.empty()));
}

BOOST_AUTO_TEST_CASE(a_drop_after_a_connect_drops) {
  three t;
  t.hold(t.heard_a, t.id_a, t.b);
  t.a.connect(t.b.local_address()); // nothing: it is up
  t.a.drop(t.id_b);
  t.gate.unlock();
  BOOST_REQUIRE(t.notes.wait([&] { return t.heard_b.downs[t.id_a] > 0; }));
  t.b.connect(t.a.local_address()); // a does not know of it
  BOOST_REQUIRE(t.notes.wait([&] { return !t.heard_b.failed.empty(); }));
  BOOST_TEST(t.heard_a.downs[t.id_b] == 1);
  BOOST_TEST(t.heard_a.ups[t.id_b] == 1);
}

BOOST_AUTO_TEST_SUITE_END()
