// tests/cluster/stranger.cpp -- an attacker without the cluster key.
//
//   stranger ATTACK --port N [--seconds S] [--rate N] [--held N] [--crowd]
//
// Does one thing to a port of this machine, again and again until the time is
// over or its standard input ends, and prints what it did as a line of JSON:
// tries, bytes, the longest that a connection was kept, and what was let in,
// which is to be nothing. --rate bounds the tries per second; --held is how
// many connections stay open; --crowd has each come from an address of its own
// in 127.0.0.0/8. As `serve-...` it is the one who is dialled, and prints its
// port first.
#include "tests/support/hostile_tls.hpp"
#include "transport/tls/context.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace {

using namespace shoal;
using namespace shoal::transport::tls;
using clock_type = std::chrono::steady_clock;
using hostile_tls::bytes;

constexpr int proof_length = 60;
/// How long one waits for an end that may say nothing.
constexpr timeval patience{0, 300'000};
/// Key updates that are made before they are sent. A reader is as fast as the
/// sender, so one connection in eight is ahead from the start; the others show
/// how often it can be done.
constexpr int updates_ahead = 20000, more_updates = 200;

struct options {
  std::string attack;
  std::uint16_t port = 0;
  double seconds = 1e9;
  double rate = 0; ///< 0: as fast as it can
  std::size_t held = 1;
  bool crowd = false;
};

struct tally {
  std::uint64_t tries = 0;
  std::uint64_t refused = 0; ///< connections that did not come about
  std::uint64_t bytes = 0;
  std::uint64_t let_in = 0;
  double longest_s = 0; ///< of one that went on as long as it could
};

class wire {
public:
  explicit wire(int fd) : fd_(fd) {}
  wire(const wire&) = delete;
  ~wire() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  int fd() const { return fd_; }
  bool send(const bytes& data) const {
    std::size_t gone = 0;
    while (gone < data.size()) {
      const auto n =
        ::send(fd_, data.data() + gone, data.size() - gone, MSG_NOSIGNAL);
      if (n <= 0)
        return false;
      gone += static_cast<std::size_t>(n);
    }
    return true;
  }
  /// @returns false if the other end has closed
  bool open() const {
    char c = 0;
    const auto n = ::recv(fd_, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
  }
  /// Leaves by a reset.
  void reset() const {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }

private:
  int fd_;
};
using wire_ptr = std::unique_ptr<wire>;

class stranger {
public:
  explicit stranger(options o)
    : options_(std::move(o)), context_(make_context(make_private_key())),
      start_(clock_type::now()) {
    SSL_CTX_clear_options(context_.get(), SSL_OP_NO_TICKET);
  }

  int run();

private:
  using attack = void (stranger::*)();

  bool over() const {
    pollfd in{0, POLLIN, 0};
    char waste[64];
    return seconds() > options_.seconds
           || (::poll(&in, 1, 0) > 0 && ::read(0, waste, sizeof waste) <= 0);
  }
  double seconds() const {
    return std::chrono::duration<double>(clock_type::now() - start_).count();
  }
  void pace() const {
    while (options_.rate > 0
           && static_cast<double>(tally_.tries) > options_.rate * seconds()
           && !over())
      ::poll(nullptr, 0, 1);
  }

  wire_ptr connect();
  /// A connection that has shaken hands; null if it came to nothing.
  ssl_ptr shaken(const wire& w);
  /// Reads what answers, which nothing may.
  void expect_nothing(SSL* ssl);
  void keep(wire_ptr w);

  void reset();
  void one_byte();
  void slow_hello();
  void garbage();
  void false_proof();
  void short_proof();
  void old_version();
  void silent();
  void http();
  void key_updates();
  void tiny_records();
  void serve();
  void speak(SSL* ssl, const wire& w);

  options options_;
  ssl_ctx_ptr context_;
  clock_type::time_point start_;
  std::mt19937_64 random_{1};
  std::deque<wire_ptr> held_;
  tally tally_;
};

wire_ptr stranger::connect() {
  ++tally_.tries;
  auto w = std::make_unique<wire>(::socket(AF_INET, SOCK_STREAM, 0));
  if (w->fd() < 0)
    return nullptr;
  sockaddr_in at{};
  at.sin_family = AF_INET;
  if (options_.crowd) {
    at.sin_addr.s_addr =
      htonl(0x7f000000U | static_cast<std::uint32_t>(2 + random_() % 0xfffff0));
    (void)::bind(w->fd(), reinterpret_cast<sockaddr*>(&at), sizeof at);
  }
  setsockopt(w->fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const timeval second{1, 0};
  setsockopt(w->fd(), SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
  const int on = 1;
  setsockopt(w->fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(options_.port);
  if (::connect(w->fd(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0)
    return w;
  ++tally_.refused;
  return nullptr;
}

ssl_ptr stranger::shaken(const wire& w) {
  ssl_ptr ssl(SSL_new(context_.get()));
  if (!ssl || SSL_set_fd(ssl.get(), w.fd()) != 1)
    return nullptr;
  // Handshakes wait for their turn; the receive timeout is too short for that.
  for (int i = 0; i < 30; ++i) {
    const int result = SSL_connect(ssl.get());
    if (result == 1)
      return ssl;
    if (SSL_get_error(ssl.get(), result) != SSL_ERROR_WANT_READ)
      break;
  }
  ++tally_.refused;
  return nullptr;
}

void stranger::expect_nothing(SSL* ssl) {
  char answer[64];
  if (SSL_read(ssl, answer, sizeof answer) > 0)
    ++tally_.let_in;
}

void stranger::keep(wire_ptr w) {
  held_.push_back(std::move(w));
  if (held_.size() > options_.held)
    held_.pop_front();
}

void stranger::reset() {
  if (const auto w = connect())
    w->reset();
}

void stranger::one_byte() {
  if (const auto w = connect()) {
    w->send({22});
    w->reset();
  }
}

/// A true hello, a byte at a time, on many connections at once.
void stranger::slow_hello() {
  const auto hello =
    hostile_tls::in_records(hostile_tls::client_hello(3, 200), 16384);
  std::deque<std::pair<wire_ptr, std::size_t>> crowd;
  while (!over()) {
    while (crowd.size() < options_.held)
      if (auto w = connect())
        crowd.emplace_back(std::move(w), 0);
      else
        break;
    for (auto& [w, sent] : crowd) {
      if (sent < hello.size() && w->send({hello[sent]}))
        ++tally_.bytes;
      ++sent;
    }
    std::erase_if(crowd, [](const auto& c) { return !c.first->open(); });
    ::poll(nullptr, 0, 5);
  }
}

void stranger::garbage() {
  if (const auto w = connect()) {
    bytes noise(1 + random_() % 2000);
    for (auto& b : noise)
      b = static_cast<std::uint8_t>(random_());
    if (random_() % 2 == 0)
      noise[0] = 22; // as TLS begins
    if (w->send(noise))
      tally_.bytes += noise.size();
  }
}

void stranger::false_proof() {
  const auto w = connect();
  const auto ssl = w ? shaken(*w) : nullptr;
  if (!ssl)
    return;
  bytes proof(proof_length, 7);
  std::memcpy(proof.data(), "SHAL\3\0\0\1", 8);
  SSL_write(ssl.get(), proof.data(), proof_length);
  expect_nothing(ssl.get());
}

void stranger::short_proof() {
  auto w = connect();
  const auto ssl = w ? shaken(*w) : nullptr;
  if (!ssl)
    return;
  const bytes proof(proof_length, 7);
  SSL_write(ssl.get(), proof.data(), proof_length - 1);
  keep(std::move(w));
}

void stranger::old_version() {
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(context_.get(), TLS1_2_VERSION);
  const auto w = connect();
  if (const auto ssl = w ? shaken(*w) : nullptr)
    ++tally_.let_in;
}

void stranger::silent() {
  if (auto w = connect())
    keep(std::move(w));
}

void stranger::http() {
  if (const auto w = connect()) {
    const std::string_view text = "GET / HTTP/1.1\r\nHost: shoal\r\n\r\n";
    w->send({text.begin(), text.end()});
  }
}

/// Messages of TLS after the handshake, as fast as this core makes them.
void stranger::key_updates() {
  const auto w = connect();
  const auto ssl = w ? shaken(*w) : nullptr;
  if (!ssl)
    return;
  auto updates = hostile_tls::key_updates(
    ssl.get(), tally_.tries % 8 == 1 ? updates_ahead : more_updates);
  const auto begun = clock_type::now();
  while (!over() && w->send(updates)) {
    tally_.bytes += updates.size();
    updates = hostile_tls::key_updates(ssl.get(), more_updates);
  }
  const std::chrono::duration<double> took = clock_type::now() - begun;
  tally_.longest_s = std::max(tally_.longest_s, took.count());
}

/// A hello of 120 KB in records of one byte.
void stranger::tiny_records() {
  static const auto hello =
    hostile_tls::in_records(hostile_tls::client_hello(30000, 55000), 1);
  const auto w = connect();
  if (!w)
    return;
  const auto begun = clock_type::now();
  if (w->send(hello)) {
    char answer = 0;
    if (::recv(w->fd(), &answer, 1, 0) == 1 && answer == 22)
      ++tally_.let_in; // it has worked through all of them
  }
  tally_.bytes += hello.size();
  const std::chrono::duration<double> took = clock_type::now() - begun;
  tally_.longest_s = std::max(tally_.longest_s, took.count());
}

/// Says to one that dials what it does not want to hear, until it leaves.
void stranger::speak(SSL* ssl, const wire& w) {
  const bool updates = options_.attack == "serve-key-updates";
  const auto begun = clock_type::now();
  while (!over()) {
    const auto words = updates ? hostile_tls::key_updates(ssl, more_updates)
                               : hostile_tls::tickets(ssl, more_updates);
    if (!w.send(words))
      break;
    tally_.bytes += words.size();
  }
  const std::chrono::duration<double> took = clock_type::now() - begun;
  tally_.longest_s = std::max(tally_.longest_s, took.count());
}

void stranger::serve() {
  const wire door(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(options_.port);
  socklen_t length = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  if (::bind(door.fd(), address, length) != 0 || ::listen(door.fd(), 16) != 0
      || ::getsockname(door.fd(), address, &length) != 0)
    return std::perror("cannot listen");
  std::printf("%d\n", ntohs(at.sin_port));
  std::fflush(stdout);
  while (!over()) {
    pollfd in{door.fd(), POLLIN, 0};
    if (::poll(&in, 1, 100) <= 0)
      continue;
    const wire w(::accept(door.fd(), nullptr, nullptr));
    const timeval second{1, 0};
    for (const int which : {SO_RCVTIMEO, SO_SNDTIMEO})
      setsockopt(w.fd(), SOL_SOCKET, which, &second, sizeof second);
    ++tally_.tries;
    const ssl_ptr ssl(SSL_new(context_.get()));
    SSL_set_fd(ssl.get(), w.fd());
    if (SSL_accept(ssl.get()) == 1)
      speak(ssl.get(), w);
    else
      ++tally_.refused;
  }
}

int stranger::run() {
  const std::map<std::string_view, attack> attacks{
    {"reset", &stranger::reset},
    {"one-byte", &stranger::one_byte},
    {"slow-hello", &stranger::slow_hello},
    {"garbage", &stranger::garbage},
    {"false-proof", &stranger::false_proof},
    {"short-proof", &stranger::short_proof},
    {"old-version", &stranger::old_version},
    {"silent", &stranger::silent},
    {"http", &stranger::http},
    {"key-updates", &stranger::key_updates},
    {"tiny-records", &stranger::tiny_records},
    {"serve-key-updates", &stranger::serve},
    {"serve-tickets", &stranger::serve}};
  const auto found = attacks.find(options_.attack);
  if (found == attacks.end()) {
    std::fprintf(stderr, "no such attack: %s; there are",
                 options_.attack.c_str());
    for (const auto& a : attacks)
      std::fprintf(stderr, " %s", a.first.data());
    std::fprintf(stderr, "\n");
    return 2;
  }
  do {
    (this->*found->second)();
    pace();
  } while (!over());
  std::printf("{\"attack\": \"%s\", \"tries\": %llu, \"refused\": %llu, "
              "\"bytes\": %llu, \"let_in\": %llu, \"longest_s\": %.3f}\n",
              options_.attack.c_str(),
              static_cast<unsigned long long>(tally_.tries),
              static_cast<unsigned long long>(tally_.refused),
              static_cast<unsigned long long>(tally_.bytes),
              static_cast<unsigned long long>(tally_.let_in), tally_.longest_s);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  options o;
  o.attack = argc > 1 ? argv[1] : "none";
  for (int i = 2; i < argc; ++i) {
    const std::string_view name = argv[i];
    const bool more = i + 1 < argc;
    if (name == "--crowd")
      o.crowd = true;
    else if (name == "--port" && more)
      o.port = static_cast<std::uint16_t>(std::stoi(argv[++i]));
    else if (name == "--seconds" && more)
      o.seconds = std::stod(argv[++i]);
    else if (name == "--rate" && more)
      o.rate = std::stod(argv[++i]);
    else if (name == "--held" && more)
      o.held = static_cast<std::size_t>(std::stoul(argv[++i]));
    else
      return std::fprintf(stderr, "unknown option: %s\n", argv[i]), 2;
  }
  return stranger(std::move(o)).run();
}
