// tests/transport/tls/stranger_test.cpp -- the TLS fabric against strangers.
//
// Any host that reaches the port may send any bytes. Each case does so by raw
// socket or by its own OpenSSL client, and then checks that an honest peer is
// still admitted: nothing is lost, nothing crashes.
#include "tests/transport/tls/strangers.hpp"

#include <netdb.h>
#include <poll.h>

#include <optional>

namespace shoal::transport::tls {
BOOST_AUTO_TEST_SUITE(tls_strangers)

namespace {

BOOST_AUTO_TEST_CASE(another_cluster_key_is_refused_by_both) {
  host h;
  recorder other(h.notes);
  fabric peer(h.guest(make_shared_key()), other);
  peer.connect(h.where());
  BOOST_REQUIRE(h.notes.wait([&] { return other.failed.size() == 1; }));
  BOOST_TEST(other.failed.front().second == errc::refused);
  BOOST_TEST(other.ups.empty());
  BOOST_TEST(h.heard.ups.empty());
  BOOST_TEST(h.logged("another cluster key"));
  h.still_serves();
  peer.close();
}

BOOST_AUTO_TEST_CASE(garbage_before_tls_is_closed) {
  host h;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    raw_socket s(h.where());
    s.write(pattern(1 + seed * 997, seed));
    shutdown(s.fd(), SHUT_WR);
    BOOST_TEST(s.closed());
  }
  raw_socket http(h.where());
  http.write(as_bytes("GET / HTTP/1.1\r\n\r\n"));
  BOOST_TEST(http.closed());
  h.still_serves();
  BOOST_TEST(h.heard.ups.size() == 1);
}

BOOST_AUTO_TEST_CASE(a_record_of_tls_that_never_ends_is_closed) {
  config c;
  c.handshake_max = std::chrono::milliseconds(50);
  host h(c);
  raw_socket s(h.where());
  // A handshake record that claims 16 KiB and brings three bytes.
  const unsigned char head[]{22, 3, 1, 0x40, 0, 1, 0, 0};
  s.write(std::as_bytes(std::span(head)));
  BOOST_TEST(s.closed());
  h.still_serves();
}

BOOST_AUTO_TEST_CASE(a_silent_client_is_closed_by_the_deadline) {
  config c;
  c.handshake_max = std::chrono::milliseconds(50);
  host h(c);
  raw_socket silent(h.where());
  BOOST_TEST(silent.closed());
  raw_client half(h.where(), make_private_key());
  BOOST_TEST(half.closed());
  // One that has come a little further, and no more.
  raw_socket late(h.where());
  const unsigned char head[]{22, 3, 1, 0, 100, 1};
  late.write(std::as_bytes(std::span(head)));
  BOOST_TEST(late.closed());
  BOOST_TEST(h.logged("no handshake within the deadline"));
}

BOOST_AUTO_TEST_CASE(silent_clients_do_not_lock_the_door) {
  config c;
  c.door.unproved_per_address = 8;
  c.handshake_max = std::chrono::minutes(10);
  host h(c);
  std::deque<raw_socket> crowd;
  for (int i = 0; i < 40; ++i)
    crowd.emplace_back(h.where());
  h.still_serves();
  BOOST_TEST(h.logged("pushed out"));
  BOOST_TEST(crowd.front().closed());
}

BOOST_AUTO_TEST_CASE(connections_have_a_limit) {
  config c;
  c.connections_max = 2;
  host h(c);
  recorder a(h.notes), b(h.notes), over(h.notes);
  fabric first(h.guest(h.key), a), second(h.guest(h.key), b),
    third(h.guest(h.key), over);
  first.connect(h.where());
  second.connect(h.where());
  BOOST_REQUIRE(h.notes.wait([&] { return h.heard.ups.size() == 2; }));
  third.connect(h.where());
  BOOST_REQUIRE(h.notes.wait([&] { return over.failed.size() == 1; }));
  BOOST_TEST(h.logged("connections is reached"));
  BOOST_TEST(h.heard.downs.empty());
  for (auto* f : {&first, &second, &third})
    f->close();
}

BOOST_AUTO_TEST_CASE(garbage_instead_of_the_proof_is_closed_unanswered) {
  host h;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    raw_client c(h.where(), make_private_key());
    c.write(pattern(proof_bytes + seed * 1000, seed));
    BOOST_TEST(!c.answered());
  }
  BOOST_TEST(h.logged("does not speak this protocol"));
  h.still_serves();
  BOOST_TEST(h.heard.ups.size() == 1);
}

BOOST_AUTO_TEST_CASE(every_bit_of_the_proof_counts) {
  host h;
  for (std::size_t byte = 0; byte < proof_bytes; byte += 5) {
    raw_client c(h.where(), make_private_key());
    auto frame = c.proof(h.key, {peer_role::member, 5, 0});
    frame[byte] ^= std::byte{1};
    c.write(frame);
    BOOST_TEST(!c.answered());
  }
  raw_client mirror(h.where(), make_private_key());
  mirror.write(mirror.proof(h.key, {}, side::acceptor));
  BOOST_TEST(!mirror.answered());
  raw_client honest(h.where(), make_private_key());
  honest.write(honest.proof(h.key, {peer_role::member, 5, 0}));
  BOOST_TEST(honest.answered());
}

BOOST_AUTO_TEST_CASE(a_proof_is_worth_nothing_on_another_connection) {
  host h;
  const auto key = make_private_key();
  raw_client one(h.where(), key), two(h.where(), key);
  two.write(one.proof(h.key, {peer_role::member, 5, 0}));
  BOOST_TEST(!two.answered());
  h.still_serves();
}

BOOST_AUTO_TEST_CASE(a_malformed_frame_ends_the_peer_with_a_reason) {
  host h;
  struct lie {
    const char* reason;
    std::uint8_t stream;
    buffer bytes;
  };
  std::vector<lie> lies;
  const auto head = [](std::uint32_t length, std::uint32_t type) {
    buffer b(8);
    std::memcpy(b.data(), &length, 4);
    std::memcpy(b.data() + 4, &type, 4);
    return b;
  };
  lies.push_back({"unknown frame type", 0, head(4, 99)});
  lies.push_back({"control message over the limit", 0, head(0xffffffff, 1)});
  lies.push_back({"bulk on the control stream", 0, head(32, 2)});
  lies.push_back({"control on a bulk stream", 1, head(5, 1)});
  lies.push_back({"wrong frame length", 1, head(0x7fffffff, 2)});
  lies.push_back({"wrong frame length", 1, head(8 + chunk_bytes_max + 1, 3)});
  buffer b;
  append_chunk_head(b, 3, 10);
  lies.push_back({"not open", 1, b});
  b.clear();
  append_bulk_header(b, 0, {}, 5);
  append_chunk_head(b, 0, 6);
  lies.push_back({"more bytes", 1, b});
  b.clear();
  append_bulk_header(b, 0, {}, 5);
  append_bulk_end(b, 0, 0);
  lies.push_back({"not complete", 1, b});
  b.clear();
  append_bulk_ack(b, 7, verdict::ok);
  lies.push_back({"acknowledged what was not sent", 1, b});
  b.clear();
  for (std::uint64_t i = 0; i <= open_transfers_max; ++i)
    append_bulk_header(b, i, {}, 5);
  lies.push_back({"too many open transfers", 1, b});
  for (const auto& [reason, stream, bytes] : lies) {
    BOOST_TEST_CONTEXT(reason) {
      const auto key = make_private_key();
      raw_client c(h.where(), key);
      c.write(c.proof(h.key, {peer_role::member, 5, 0}));
      BOOST_REQUIRE(c.answered());
      std::optional<raw_client> second;
      if (stream != 0) {
        second.emplace(h.where(), key);
        second->write(second->proof(h.key, {peer_role::member, 5, 0, stream}));
        BOOST_REQUIRE(second->answered());
      }
      (second ? *second : c).write(bytes);
      BOOST_TEST(c.closed()); // one stream's lie ends the peer
      BOOST_TEST((!second || second->closed()));
      BOOST_TEST(
        h.notes.wait([&] { return h.heard.downs[id_of_private(key)] == 1; }));
      BOOST_TEST(h.logged(reason));
    }
  }
  h.still_serves();
}

BOOST_AUTO_TEST_CASE(a_stream_needs_a_peer_that_is_up) {
  host h;
  const auto key = make_private_key();
  raw_client early(h.where(), key);
  early.write(early.proof(h.key, {peer_role::member, 5, 0, 1}));
  BOOST_TEST(early.closed());
  raw_client c(h.where(), key);
  c.write(c.proof(h.key, {peer_role::member, 5, 0}));
  BOOST_REQUIRE(c.answered());
  raw_client other_process(h.where(), key);
  other_process.write(other_process.proof(h.key, {peer_role::member, 6, 0, 1}));
  BOOST_TEST(other_process.closed());
  raw_client somebody_else(h.where(), make_private_key());
  somebody_else.write(somebody_else.proof(h.key, {peer_role::member, 5, 0, 1}));
  BOOST_TEST(somebody_else.closed());
  // They are no streams of the peer, so it is not touched.
  raw_client stream(h.where(), key);
  stream.write(stream.proof(h.key, {peer_role::member, 5, 0, 1}));
  BOOST_TEST(stream.answered());
  BOOST_TEST(h.heard.downs.empty());
  // A peer has a bounded number of streams.
  std::deque<raw_client> many;
  for (int i = 1; i < 2 * streams_max; ++i) {
    many.emplace_back(h.where(), key);
    many.back().write(many.back().proof(h.key, {peer_role::member, 5, 0, 2}));
    BOOST_REQUIRE(many.back().answered());
  }
  raw_client over(h.where(), key);
  over.write(over.proof(h.key, {peer_role::member, 5, 0, 2}));
  BOOST_TEST(over.closed());
  BOOST_TEST(h.heard.downs.empty());
}

BOOST_AUTO_TEST_CASE(too_many_bytes_before_the_proof_are_not_read) {
  config c;
  c.handshake_max = std::chrono::minutes(10);
  host h(c);
  // A handshake record of the maximum length, of a message that claims to be
  // even longer: OpenSSL alone would go on reading.
  const unsigned char head[]{22, 3, 1, 0x40, 0, 1, 0, 0x7f, 0xff, 3, 3};
  raw_socket s(h.where());
  s.write(std::as_bytes(std::span(head)));
  s.write(pattern(16384 - 6, 1));
  BOOST_TEST(s.closed());
  h.still_serves();
}

// A byte at a time, 1,000 connections at once, and behind them a member: with
// a deadline far away, only the limits of the door let it in.
BOOST_AUTO_TEST_CASE(a_member_gets_in_through_a_thousand_slow_strangers) {
  config c;
  c.handshake_max = std::chrono::minutes(10);
  host h(c);
  const unsigned char hello[]{22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3};
  const std::size_t strangers = long_run() ? 5000 : 1000;
  // As many as the process may have descriptors for are open at a time.
  std::deque<raw_socket> crowd;
  std::size_t most = 0;
  for (std::size_t i = 0; i < strangers; ++i) {
    if (crowd.size() >= 300)
      crowd.pop_front();
    crowd.emplace_back(h.where());
    for (std::size_t b = 0; b < i % (sizeof hello + 1); ++b)
      crowd.back().write(std::as_bytes(std::span(hello)).subspan(b, 1));
    if (i % 250 == 249)
      h.still_serves();
    most = std::max(most, crowd.size());
  }
  h.still_serves();
  BOOST_TEST(most == 300);
  BOOST_TEST(h.logged("pushed out"));
  BOOST_TEST(h.heard.ups.size() == strangers / 250 + 1);
}

BOOST_AUTO_TEST_CASE(a_client_is_shown_as_one) {
  host h;
  recorder heard(h.notes);
  auto c = h.guest(h.key);
  c.role = peer_role::client;
  c.listen = "";
  c.capabilities = 0xabc;
  fabric client(c, heard);
  BOOST_TEST(client.local_address().empty());
  client.connect(h.where());
  BOOST_REQUIRE(h.notes.wait([&] { return heard.ups[h.node->id()] == 1; }));
  BOOST_REQUIRE(h.notes.wait([&] { return h.heard.ups[client.id()] == 1; }));
  const auto& seen = h.heard.last[client.id()];
  BOOST_TEST((seen.role == peer_role::client));
  BOOST_TEST(seen.instance == c.instance);
  BOOST_TEST(seen.capabilities == 0xabcu);
  BOOST_TEST((heard.last[h.node->id()].role == peer_role::member));
  BOOST_TEST(!client.send(h.node->id(), as_bytes("status")));
  BOOST_TEST(h.notes.wait([&] { return h.heard.received == 1; }));
  client.close();
}

// They would compute other plans; a client computes none.
BOOST_AUTO_TEST_CASE(members_of_unlike_planners_refuse_each_other) {
  config c;
  c.planner = 1;
  host h(c);
  std::mutex mutex;
  std::vector<refusal> told;
  recorder heard(h.notes);
  auto other = h.guest(h.key);
  other.planner = 2;
  other.refused = [&](refusal why, const std::string&) {
    const std::lock_guard lock(mutex);
    told.push_back(why);
  };
  fabric newer(other, heard);
  newer.connect(h.where());
  BOOST_REQUIRE(h.notes.wait([&] { return heard.failed.size() == 1; }));
  BOOST_TEST(heard.ups.empty());
  BOOST_TEST(h.logged("plans otherwise"));
  {
    const std::lock_guard lock(mutex);
    BOOST_REQUIRE(told.size() == 1);
    BOOST_TEST((told.front() == refusal::other_planner));
  }
  newer.close();
  recorder asks(h.notes);
  other.role = peer_role::client;
  other.identity = make_private_key();
  other.refused = {};
  fabric client(other, asks);
  client.connect(h.where());
  BOOST_TEST(h.notes.wait([&] { return asks.ups[h.node->id()] == 1; }));
  client.close();
  h.still_serves();
}

BOOST_AUTO_TEST_CASE(a_restarted_process_is_down_then_up) {
  host h;
  recorder heard(h.notes);
  auto c = h.guest(h.key);
  fabric old(c, heard);
  old.connect(h.where());
  BOOST_REQUIRE(h.notes.wait([&] { return h.heard.order == "u"; }));
  c.instance += 1; // the old one is still connected, as after a cut
  recorder again(h.notes);
  fabric fresh(c, again);
  fresh.connect(h.where());
  BOOST_REQUIRE(h.notes.wait([&] { return h.heard.order == "udu"; }));
  BOOST_TEST(h.heard.last[old.id()].instance == c.instance);
  BOOST_REQUIRE(h.notes.wait([&] { return heard.downs[h.node->id()] == 1; }));
  fresh.close();
  old.close();
}

BOOST_AUTO_TEST_CASE(an_address_that_cannot_be_bound_throws) {
  host h;
  recorder heard(h.notes);
  auto c = h.guest(h.key);
  c.listen = h.where();
  BOOST_CHECK_THROW(fabric(c, heard), std::system_error);
  c.listen = "no port";
  BOOST_CHECK_THROW(fabric(c, heard), std::invalid_argument);
  c.listen = "[::1]:0";
  fabric six(c, heard);
  BOOST_TEST(six.local_address().starts_with("[::1]:"));
  // A name, where there is one: a bare root has no /etc/hosts.
  addrinfo* found = nullptr;
  const bool named = getaddrinfo("localhost", nullptr, nullptr, &found) == 0;
  if (named)
    freeaddrinfo(found);
  six.connect((named ? "localhost" : "127.0.0.1")
              + h.where().substr(h.where().rfind(':')));
  BOOST_TEST(h.notes.wait([&] { return heard.ups[h.node->id()] == 1; }));
  for (const char* wrong : {"", "x", "host:", ":1", "::1:80", "[::1]",
                            "a:65536", "a:1x", "127.0.0.1:0"})
    six.connect(wrong);
  BOOST_TEST(h.notes.wait([&] { return heard.failed.size() == 9; }));
  six.close();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace shoal::transport::tls
