// tests/transport/tls/flood_test.cpp -- bytes that only the TLS library sees.
//
// Some bytes never become bytes of the protocol: a hello in tiny records,
// messages of TLS after the handshake. Strangers, servers that we dial and
// members may send them without end. Each case does, and then checks that the
// sender is closed and that an honest peer is served meanwhile.
#include "tests/support/hostile_tls.hpp"
#include "tests/transport/tls/strangers.hpp"

#include <atomic>

namespace shoal::transport::tls {
BOOST_AUTO_TEST_SUITE(tls_floods)

namespace {

/// Enough that no loop which ends only when the socket is empty ends soon.
constexpr int burst = 20000;

std::span<const std::byte> view_of(const hostile_tls::bytes& b) {
  return std::as_bytes(std::span(b));
}

/// Reads what comes until the other end closes.
buffer all_of(const raw_socket& s) {
  buffer out;
  std::array<std::byte, 4096> piece{};
  for (;;) {
    const auto got = ::recv(s.fd(), piece.data(), piece.size(), 0);
    if (got <= 0)
      return out;
    out.insert(out.end(), piece.begin(), piece.begin() + got);
  }
}

/// Sends key updates on a thread of its own, until it is closed.
class flooder {
public:
  explicit flooder(const std::string& address)
    : client_(address, make_private_key()), thread_([this] {
        auto count = burst; // so that it is ahead from the start
        while (!over_) {
          const auto b = hostile_tls::key_updates(client_.ssl(), count);
          if (::send(client_.raw().fd(), b.data(), b.size(), MSG_NOSIGNAL) < 0)
            return;
          count = 1000;
        }
      }) {}
  ~flooder() {
    over_ = true;
    thread_.join();
  }
  bool closed() const { return client_.closed(); }

private:
  std::atomic<bool> over_{false};
  raw_client client_;
  std::thread thread_;
};

/// A port to be dialled.
class listener {
public:
  listener() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    auto* address = reinterpret_cast<sockaddr*>(&at);
    BOOST_REQUIRE(::bind(fd_, address, length) == 0);
    BOOST_REQUIRE(::listen(fd_, 8) == 0);
    BOOST_REQUIRE(::getsockname(fd_, address, &length) == 0);
    where_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  ~listener() { ::close(fd_); }
  int fd() const { return fd_; }
  const std::string& where() const { return where_; }

private:
  int fd_;
  std::string where_;
};

/// A server that completes the handshake with every peer that dials, then sends
/// something and reads until the end.
class hostile_server {
public:
  using speech = std::function<hostile_tls::bytes(SSL*)>;

  explicit hostile_server(speech say, bool with_tickets = false)
    : context_(make_context(make_private_key())) {
    if (with_tickets)
      SSL_CTX_clear_options(context_.get(), SSL_OP_NO_TICKET);
    thread_ = std::thread([this, say] { serve(say); });
  }
  ~hostile_server() {
    ::shutdown(door_.fd(), SHUT_RDWR);
    thread_.join();
  }
  const std::string& where() const { return door_.where(); }

private:
  void serve(const speech& say) {
    for (;;) {
      const int fd = ::accept(door_.fd(), nullptr, nullptr);
      if (fd < 0)
        return;
      const timeval limit{hang_after.count(), 0};
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
      const ssl_ptr ssl(SSL_new(context_.get()));
      SSL_set_fd(ssl.get(), fd);
      if (SSL_accept(ssl.get()) == 1) {
        const auto words = say(ssl.get());
        (void)::send(fd, words.data(), words.size(), MSG_NOSIGNAL);
        std::array<char, 4096> waste{};
        while (::recv(fd, waste.data(), waste.size(), 0) > 0)
          ;
      }
      ::close(fd);
    }
  }

  listener door_;
  ssl_ctx_ptr context_;
  std::thread thread_;
};

/// A process that would be a member, dials `to` and is refused.
void must_leave(const hostile_server& to, const char* reason) {
  host h;
  h.node->connect(to.where());
  BOOST_REQUIRE(h.notes.wait([&] { return h.heard.failed.size() == 1; }));
  BOOST_TEST(h.heard.failed.front().second == errc::refused);
  BOOST_TEST(h.logged(reason), h.lines);
  BOOST_TEST(h.heard.ups.empty());
  h.still_serves();
}

buffer control_frame(std::string_view text) {
  buffer out;
  append_control(out, as_bytes(text));
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_message_of_tls_before_the_proof_ends_the_connection) {
  host h;
  for (const int count : {1, 3, burst}) {
    raw_client c(h.where(), make_private_key());
    c.raw().write(view_of(hostile_tls::key_updates(c.ssl(), count)));
    BOOST_TEST(c.closed());
  }
  BOOST_TEST(h.logged("a message of TLS before its proof"));
  h.still_serves();
  BOOST_TEST(h.heard.ups.size() == 1);
}

// A connection that is always full of the most expensive messages.
BOOST_AUTO_TEST_CASE(a_flood_of_key_updates_delays_no_peer) {
  host h;
  for (int i = 0; i < 3; ++i) {
    const flooder flood(h.where());
    h.still_serves();
    BOOST_TEST(flood.closed());
  }
}

BOOST_AUTO_TEST_CASE(a_hello_in_tiny_records_ends_at_the_limit_of_bytes) {
  config c;
  c.handshake_max = std::chrono::minutes(10);
  host h(c);
  const auto hello = hostile_tls::client_hello(30000, 55000);
  for (const std::size_t record : {1, 2, 100, 16384}) {
    raw_socket s(h.where());
    s.write(view_of(hostile_tls::in_records(hello, record)));
    const auto answer = all_of(s);
    BOOST_TEST(answer.empty(), "answered a hello of 120 KB in records of "
                                 << record << " bytes");
  }
  BOOST_TEST(h.logged("too many bytes before the proof"));
  // It is one that would have been answered.
  raw_socket small(h.where());
  small.write(
    view_of(hostile_tls::in_records(hostile_tls::client_hello(10, 10), 1)));
  std::byte first{};
  BOOST_TEST(::recv(small.fd(), &first, 1, 0) == 1);
  BOOST_TEST((first == std::byte{22}));
  h.still_serves();
}

BOOST_AUTO_TEST_CASE(work_before_the_proof_has_a_limit_per_connection) {
  config c;
  c.unproved_work_max = std::chrono::milliseconds(0);
  host h(c);
  raw_socket s(h.where());
  s.write(
    view_of(hostile_tls::in_records(hostile_tls::client_hello(10, 10), 16384)));
  BOOST_TEST(s.closed());
  BOOST_TEST(h.logged("too much work before the proof"));
  // The same for one that we dial, here one that never answers.
  const listener mute;
  h.node->connect(mute.where());
  BOOST_REQUIRE(h.notes.wait([&] { return h.heard.failed.size() == 1; }));
  BOOST_TEST(h.heard.failed.front().second == errc::refused);
}

BOOST_AUTO_TEST_CASE(a_server_that_we_dial_floods_in_vain) {
  const hostile_server updates(
    [](SSL* ssl) { return hostile_tls::key_updates(ssl, burst); });
  must_leave(updates, "a message of TLS before its proof");
  const hostile_server tickets(
    [](SSL* ssl) { return hostile_tls::tickets(ssl, 2000); }, true);
  must_leave(tickets, "a message of TLS before its proof");
  const hostile_server garbage([](SSL* ssl) {
    return hostile_tls::written_by(ssl, [&] {
      const buffer data(16000);
      for (int i = 0; i < 10; ++i)
        SSL_write(ssl, data.data(), static_cast<int>(data.size()));
    });
  });
  must_leave(garbage, "too many bytes before the proof");
}

// The library must be asked again: the socket will not say so.
BOOST_AUTO_TEST_CASE(messages_between_key_updates_arrive) {
  host h;
  raw_client c(h.where(), make_private_key());
  c.write(c.proof(h.key, {peer_role::member, 5, 0}));
  BOOST_REQUIRE(c.answered());
  hostile_tls::bytes all;
  const auto say = [&](std::string_view text) {
    hostile_tls::append(all, hostile_tls::written_by(c.ssl(), [&] {
                          const auto frame = control_frame(text);
                          SSL_write(c.ssl(), frame.data(),
                                    static_cast<int>(frame.size()));
                        }));
  };
  for (const int kind :
       {SSL_KEY_UPDATE_NOT_REQUESTED, SSL_KEY_UPDATE_REQUESTED}) {
    say("before");
    hostile_tls::append(all, hostile_tls::key_updates(c.ssl(), 2, kind));
    say("after");
  }
  c.raw().write(view_of(all));
  BOOST_TEST(h.notes.wait([&] { return h.heard.received == 4; }));
  // A TLS record alone wakes no reader, and the data after it is read.
  c.raw().write(view_of(hostile_tls::key_updates(c.ssl(), 1)));
  c.write(control_frame("last"));
  BOOST_TEST(h.notes.wait([&] { return h.heard.received == 5; }));
}

BOOST_AUTO_TEST_CASE(a_member_that_floods_is_no_peer_any_more) {
  host h;
  const auto key = make_private_key();
  raw_client c(h.where(), key);
  c.write(c.proof(h.key, {peer_role::member, 5, 0}));
  BOOST_REQUIRE(c.answered());
  c.raw().write(view_of(hostile_tls::key_updates(c.ssl(), burst)));
  BOOST_TEST(
    h.notes.wait([&] { return h.heard.downs[id_of_private(key)] == 1; }));
  BOOST_TEST(h.logged("messages of TLS"));
  h.still_serves();
}

// 600 addresses, a failure each: what they have written is bounded.
BOOST_AUTO_TEST_CASE(strangers_of_many_addresses_write_few_lines) {
  config c;
  c.handshake_max = std::chrono::minutes(10);
  host h(c);
  for (int i = 0; i < 600; ++i) {
    raw_socket s(h.where(), "127.9." + std::to_string(i / 200) + "."
                              + std::to_string(1 + i % 200));
    s.write(as_bytes("GET / HTTP/1.1\r\n\r\n"));
    BOOST_TEST(s.closed());
  }
  h.still_serves();
  std::size_t closed = 0;
  h.notes.post([&] {
    for (auto at = h.lines.find("connection closed"); at != std::string::npos;
         at = h.lines.find("connection closed", at + 1))
      ++closed;
  });
  BOOST_TEST(closed >= 1);
  // As many at once as there may be, and one a second of the test.
  BOOST_TEST(closed < 150);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::transport::tls
