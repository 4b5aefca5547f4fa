// tests/conformance/fixture.hpp -- handlers and helpers of the fabric suite.
//
// Tests wait for required events, never for time to pass; the only deadline
// turns a hang into a failure.
#pragma once

#include "transport/fabric.hpp"
#include "transport/limits.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <thread>

namespace shoal::transport::conformance {

/// On emulated machines SHOAL_HANG_AFTER sets more seconds.
inline std::chrono::seconds hang_after_seconds() {
  const char* text = std::getenv("SHOAL_HANG_AFTER");
  const long value = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return std::chrono::seconds(value > 0 ? value : 60);
}
inline const std::chrono::seconds hang_after = hang_after_seconds();

/// Whether the machine is emulated, so that fewer repetitions have to suffice.
inline bool emulated() {
  return std::getenv("SHOAL_HANG_AFTER") != nullptr;
}

inline bool long_run() {
  return std::getenv("SHOAL_LONG") != nullptr;
}

/// Written by the handler and the completions of one test, which waits for it.
class board {
public:
  template <class Change>
  void post(Change change) {
    std::lock_guard guard(mutex_);
    change();
    wake_.notify_all();
  }

  template <class Predicate>
  [[nodiscard]] bool wait(Predicate holds) {
    std::unique_lock guard(mutex_);
    return wake_.wait_for(guard, hang_after, holds);
  }

private:
  std::mutex mutex_;
  std::condition_variable wake_;
};

/// Records everything that a fabric reports.
class recorder final : public fabric_handler {
public:
  explicit recorder(board& b) : board_(b) {}

  void up(const peer_info& peer) override {
    board_.post([&] {
      ++ups[peer.id];
      last[peer.id] = peer;
      order.push_back('u');
    });
  }
  void down(const peer_id& peer, std::error_code why) override {
    board_.post([&] {
      ++downs[peer];
      why_down = why;
      order.push_back('d');
    });
  }
  void message(const peer_id& peer, std::span<const std::byte> bytes) override {
    if (on_message)
      on_message(peer, bytes);
    board_.post([&] {
      messages[peer].emplace_back(bytes.begin(), bytes.end());
      ++received;
    });
  }
  void
  connect_failed(const std::string& address, std::error_code why) override {
    board_.post([&] { failed.emplace_back(address, why); });
  }
  void reached(const std::string& address, const peer_id& peer) override {
    board_.post([&] { reached_at.emplace_back(address, peer); });
  }

  std::function<void(const peer_id&, std::span<const std::byte>)> on_message;
  std::map<peer_id, int> ups;
  std::map<peer_id, int> downs;
  std::map<peer_id, peer_info> last;
  std::string order; ///< 'u' and 'd' in order of arrival
  std::error_code why_down;
  std::map<peer_id, std::deque<std::vector<std::byte>>> messages;
  std::size_t received = 0;
  std::vector<std::pair<std::string, std::error_code>> failed;
  std::vector<std::pair<std::string, peer_id>> reached_at;

private:
  board& board_;
};

/// One expected completion.
class outcome {
public:
  explicit outcome(board& b) : board_(b) {}
  outcome(const outcome&) = delete;
  outcome& operator=(const outcome&) = delete;

  completion done() {
    return {[](void* self, std::error_code result) noexcept {
              auto& o = *static_cast<outcome*>(self);
              o.board_.post([&] {
                ++o.runs;
                o.result = result;
              });
            },
            this};
  }
  [[nodiscard]] bool wait() {
    return board_.wait([&] { return runs > 0; });
  }

  int runs = 0;
  std::error_code result;

private:
  board& board_;
};

/// A fabric and its id, made by a factory.
struct made {
  std::unique_ptr<fabric> link;
  peer_id id;
};

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Bytes that differ at every place and with every seed.
inline std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::size_t i = 0; i < size; i += 8) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    std::memcpy(bytes.data() + i, &x, std::min<std::size_t>(8, size - i));
  }
  return bytes;
}

/// Sends again while the queue is full.
inline std::error_code
push(fabric& from, const peer_id& to, std::span<const std::byte> message) {
  for (;;) {
    const auto error = from.send(to, message);
    if (error != errc::would_block)
      return error;
    std::this_thread::yield();
  }
}

/// N fabrics, each connected to all others.
template <class Factory>
class group {
public:
  explicit group(std::size_t count, limits queue = {}, bool connected = true) {
    for (std::size_t i = 0; i < count; ++i) {
      handlers.push_back(std::make_unique<recorder>(notes));
      nodes.push_back(factory.make(*handlers.back(), queue));
    }
    for (std::size_t i = 0; connected && i < count; ++i)
      for (std::size_t j = 0; j < i; ++j)
        nodes[i].link->connect(nodes[j].link->local_address());
    for (std::size_t i = 0; connected && i < count; ++i)
      for (std::size_t j = 0; j < count; ++j)
        BOOST_REQUIRE(i == j || is_up(i, j));
  }
  ~group() {
    for (auto& n : nodes)
      if (n.link)
        n.link->close();
  }

  fabric& at(std::size_t i) { return *nodes[i].link; }
  const peer_id& id(std::size_t i) const { return nodes[i].id; }
  recorder& heard(std::size_t i) { return *handlers[i]; }

  bool is_up(std::size_t at, std::size_t peer) {
    return notes.wait([&] { return handlers[at]->ups[id(peer)] > 0; });
  }
  bool is_down(std::size_t at, std::size_t peer) {
    return notes.wait([&] { return handlers[at]->downs[id(peer)] > 0; });
  }

  /// Moves one transfer and checks it.
  void
  exchange(std::size_t from, std::size_t to, bulk_tag tag, std::size_t size) {
    const auto sent = pattern(size, tag.sequence + size);
    std::vector<std::byte> got(size);
    outcome in(notes), out(notes);
    BOOST_REQUIRE(!at(to).post_receive(id(from), tag, got, in.done()));
    BOOST_REQUIRE(!at(from).send_bulk(id(to), tag, sent, out.done()));
    BOOST_REQUIRE(in.wait());
    BOOST_REQUIRE(out.wait());
    BOOST_TEST(!in.result);
    BOOST_TEST(!out.result);
    BOOST_TEST((sent == got));
  }

  board notes;
  Factory factory;
  std::vector<std::unique_ptr<recorder>> handlers;
  std::vector<made> nodes;
};

} // namespace shoal::transport::conformance
