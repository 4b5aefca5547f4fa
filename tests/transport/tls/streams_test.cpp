// tests/transport/tls/streams_test.cpp -- bulk never delays control.
//
// Between two nodes is a proxy that counts the data on each socket and may hold
// up one of them for ever. A message that shared a socket with bulk would not
// pass while the bulk is held; so the order of arrival is tested, never a time.
#include "tests/conformance/fixture.hpp"
#include "transport/tls/fabric.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <list>
#include <memory>
#include <utility>

namespace shoal::transport::tls {
BOOST_AUTO_TEST_SUITE(tls_streams)

namespace {

using namespace conformance;
namespace asio = boost::asio;
using tcp = asio::ip::tcp;

/// Passes TCP connections on to `to`. One that has brought more than
/// `held_after` bytes in one direction is read no further until release().
class proxy {
public:
  proxy(const std::string& to, std::size_t held_after)
    : to_(asio::ip::make_address_v4("127.0.0.1"),
          static_cast<std::uint16_t>(std::stoi(to.substr(to.rfind(':') + 1)))),
      limit_(held_after) {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~proxy() {
    io_.stop();
    thread_.join();
  }
  std::string address() const {
    return "127.0.0.1:" + std::to_string(door_.local_endpoint().port());
  }
  /// @returns how many sockets are held.
  std::size_t held() {
    std::lock_guard guard(mutex_);
    return waiting_.size();
  }
  template <class Predicate>
  bool wait(Predicate holds) {
    std::unique_lock guard(mutex_);
    return wake_.wait_for(guard, hang_after, holds);
  }
  bool wait_held() {
    return wait([&] { return !waiting_.empty(); });
  }
  std::size_t connections() {
    std::lock_guard guard(mutex_);
    return connections_;
  }
  void release() {
    asio::post(io_, [this] {
      std::vector<std::shared_ptr<way>> all;
      {
        std::lock_guard guard(mutex_);
        limit_ = SIZE_MAX;
        all = std::exchange(waiting_, {});
      }
      for (const auto& w : all)
        pump(w);
    });
  }

private:
  /// One direction of one connection.
  struct way {
    std::shared_ptr<tcp::socket> from, to;
    std::array<char, 65536> bytes;
    std::size_t passed = 0;
  };
  void accept() {
    door_.async_accept([this](auto error, tcp::socket from) {
      if (error)
        return;
      auto a = std::make_shared<tcp::socket>(std::move(from));
      auto b = std::make_shared<tcp::socket>(io_);
      boost::system::error_code failed;
      b->connect(to_, failed);
      {
        std::lock_guard guard(mutex_);
        ++connections_;
      }
      for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}}) {
        auto w = std::make_shared<way>();
        w->from = x;
        w->to = y;
        pump(w);
      }
      accept();
    });
  }
  void pump(const std::shared_ptr<way>& w) {
    {
      std::lock_guard guard(mutex_);
      if (w->passed > limit_) {
        waiting_.push_back(w);
        wake_.notify_all();
        return;
      }
    }
    w->from->async_read_some(
      asio::buffer(w->bytes), [this, w](auto error, std::size_t n) {
        boost::system::error_code failed;
        if (error) {
          w->to->shutdown(tcp::socket::shutdown_send, failed);
          return;
        }
        w->passed += n;
        asio::async_write(*w->to, asio::buffer(w->bytes, n),
                          [this, w](auto wrong, std::size_t) {
                            if (!wrong)
                              pump(w);
                          });
      });
  }

  asio::io_context io_;
  tcp::acceptor door_{io_, tcp::endpoint(tcp::v4(), 0)};
  tcp::endpoint to_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t limit_;
  std::vector<std::shared_ptr<way>> waiting_;
  std::size_t connections_ = 0;
  std::thread thread_;
};

config config_of(const shared_key& key, std::size_t streams = 1) {
  config c;
  c.identity = make_private_key();
  c.cluster_key = key;
  c.instance = make_instance();
  c.bulk_streams = streams;
  return c;
}

/// Two nodes with a proxy between them; only `a` dials.
struct pair_of {
  explicit pair_of(std::size_t held_after, std::size_t streams = 1)
    : a(config_of(key, streams), heard_a), b(config_of(key), heard_b),
      between(b.local_address(), held_after) {
    a.connect(between.address());
    BOOST_REQUIRE(notes.wait(
      [&] { return heard_a.ups.size() == 1 && heard_b.ups.size() == 1; }));
  }
  ~pair_of() {
    a.close();
    b.close();
  }
  shared_key key = make_shared_key();
  board notes;
  recorder heard_a{notes}, heard_b{notes};
  fabric a, b;
  proxy between;
};

constexpr std::size_t some = 1 << 20;

// From either end: b cannot dial, and asks a for a stream.
BOOST_AUTO_TEST_CASE(messages_pass_while_bulk_is_held_up) {
  for (const bool from_dialler : {true, false}) {
    pair_of p(some);
    auto& from = from_dialler ? p.a : p.b;
    auto& to = from_dialler ? p.b : p.a;
    const auto sent = pattern(64 * some, 1);
    std::vector<std::byte> got(sent.size());
    outcome in(p.notes), out(p.notes);
    BOOST_REQUIRE(!to.post_receive(from.id(), {1, 1, 1}, got, in.done()));
    BOOST_REQUIRE(!from.send_bulk(to.id(), {1, 1, 1}, sent, out.done()));
    BOOST_REQUIRE(p.between.wait_held());
    constexpr std::size_t count = 1000;
    for (std::size_t i = 0; i < count; ++i) {
      BOOST_REQUIRE(!push(p.a, p.b.id(), pattern(200, i)));
      BOOST_REQUIRE(!push(p.b, p.a.id(), pattern(200, i)));
    }
    BOOST_REQUIRE(p.notes.wait([&] {
      return p.heard_a.received == count && p.heard_b.received == count;
    }));
    BOOST_TEST((in.runs == 0 && out.runs == 0));
    BOOST_TEST(p.between.held() == 1);
    p.between.release();
    BOOST_REQUIRE((in.wait() && out.wait()));
    BOOST_TEST((!in.result && !out.result));
    BOOST_TEST((sent == got));
  }
}

// Nothing is held up here, and yet every message, queued after the bulk, is
// there before the bulk is.
BOOST_AUTO_TEST_CASE(messages_overtake_bulk) {
  pair_of p(SIZE_MAX);
  const auto sent = pattern((long_run() ? 1024 : 128) * some, 1);
  std::vector<std::byte> got(sent.size());
  outcome out(p.notes);
  constexpr std::size_t count = 100;
  struct first {
    pair_of* p;
    std::size_t passed = 0;
    bool done = false;
  } in{&p};
  BOOST_REQUIRE(!p.b.post_receive(p.a.id(), {1, 1, 1}, got,
                                  {[](void* self, std::error_code) noexcept {
                                     auto& f = *static_cast<first*>(self);
                                     f.p->notes.post([&] {
                                       f.passed = f.p->heard_b.received;
                                       f.done = true;
                                     });
                                   },
                                   &in}));
  BOOST_REQUIRE(!p.a.send_bulk(p.b.id(), {1, 1, 1}, sent, out.done()));
  for (std::size_t i = 0; i < count; ++i)
    BOOST_REQUIRE(!push(p.a, p.b.id(), pattern(200, i)));
  BOOST_REQUIRE(p.notes.wait([&] { return in.done; }));
  BOOST_TEST(in.passed == count);
  BOOST_REQUIRE(out.wait());
  BOOST_TEST((sent == got));
}

BOOST_AUTO_TEST_CASE(streams_are_opened_when_there_is_bulk) {
  pair_of p(SIZE_MAX, 3);
  BOOST_REQUIRE(!push(p.a, p.b.id(), pattern(10, 1)));
  BOOST_REQUIRE(p.notes.wait([&] { return p.heard_b.received == 1; }));
  BOOST_TEST(p.between.connections() == 1);
  constexpr std::uint32_t count = 30;
  std::deque<outcome> all;
  std::vector<std::vector<std::byte>> sent, got;
  for (std::uint32_t i = 0; i < count; ++i) {
    sent.push_back(pattern(100000 + i, i));
    got.emplace_back(sent.back().size());
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    BOOST_REQUIRE(!p.b.post_receive(p.a.id(), {1, 1, i}, got[i],
                                    all.emplace_back(p.notes).done()));
    BOOST_REQUIRE(!p.a.send_bulk(p.b.id(), {1, 1, i}, sent[i],
                                 all.emplace_back(p.notes).done()));
  }
  for (auto& one : all) {
    BOOST_REQUIRE(one.wait());
    BOOST_TEST(!one.result);
  }
  BOOST_TEST((sent == got));
  BOOST_TEST(p.between.connections() == 4);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace shoal::transport::tls
