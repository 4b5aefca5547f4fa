// tests/runtime/http/raw_client.hpp -- a socket that speaks HTTP badly if asked
// to, a handler that is driven by its test, and a clock that is set by hand.
//
// Whatever waits has a deadline that is far off: reaching it fails the test.
#pragma once

#include "runtime/files/posix.hpp"
#include "runtime/http/http_server.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::test {

struct http_answer {
  unsigned status = 0;
  std::map<std::string, std::string> headers; ///< names in lower case
  std::string body;
  bool whole = false; ///< it came to its end

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

class raw_client {
public:
  explicit raw_client(std::uint16_t port);

  /// Sends all. @returns false if the server has closed
  bool send(std::string_view bytes);
  /// Sends what the system takes without waiting. @returns the bytes
  std::size_t send_some(std::string_view bytes);
  void half_close();
  void close();
  void reset(); ///< closes by RST
  /// A small window, so that a slow reader is noticed soon. Before the first
  /// byte.
  void small_window();

  /// Reads one answer.
  http_answer read(bool head_only = false);
  /// Reads the head of an answer; its body is left.
  http_answer read_head();
  /// Reads until `text` has come, and returns all up to its end.
  std::string read_until(std::string_view text);
  std::string read_bytes(std::size_t count);
  /// Reads up to the server's end. @returns all that still came
  std::string read_to_end();
  /// Whether something (or the end) can be read within some milliseconds.
  bool readable(int milliseconds) const;

private:
  bool more(); ///< @returns false at the end
  runtime::posix::descriptor fd_;
  std::string got_;
};

/// Counts notices, and waits for them.
class notices final : public runtime::http_watcher {
public:
  void closed() override;
  void writable() override;
  void wait_closed();
  void wait_writable(int times);
  int closes();

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int closed_ = 0;
  int writable_ = 0;
};

/// Keeps exchanges until the test takes them; paths that begin with "/now" are
/// answered at once with their body.
class held_requests final : public runtime::http_handler {
public:
  std::optional<openai::api_error>
  check(const runtime::http_request& head) override;
  void on_request(std::shared_ptr<runtime::http_exchange> exchange) override;
  /// The next exchange.
  std::shared_ptr<runtime::http_exchange> next();

private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::shared_ptr<runtime::http_exchange>> held_;
};

class hand_clock final : public runtime::http_clock {
public:
  time_point now() override {
    ++reads_;
    reads_.notify_all();
    return time_point(seconds_.load());
  }
  void advance(std::chrono::seconds by) { seconds_ = seconds_.load() + by; }
  std::uint64_t reads() const { return reads_; }
  /// Returns when it has been read again.
  void wait_for_read(std::uint64_t before) { reads_.wait(before); }

private:
  std::atomic<std::chrono::seconds> seconds_{std::chrono::seconds(1000)};
  std::atomic<std::uint64_t> reads_{0};
};

/// A server with its handler and clock.
struct http_fixture {
  std::shared_ptr<held_requests> handler = std::make_shared<held_requests>();
  std::shared_ptr<hand_clock> clock = std::make_shared<hand_clock>();
  runtime::http_config config;
  std::optional<runtime::http_server> server;

  http_fixture();
  void start() { server.emplace(config, handler); }
  raw_client connect() { return raw_client(server->port()); }
  /// Sets the clock forward, again and again until `done`.
  void
  advance_until(const std::function<bool()>& done, std::chrono::seconds by);
  /// The same, until the client can read.
  void
  advance_until_readable(const raw_client& client, std::chrono::seconds by);
  void advance(std::chrono::seconds by);
  /// Returns when a count has this value.
  void
  wait_for(std::uint64_t runtime::http_counts::*count, std::uint64_t value);
};

/// "GET PATH" with a Host and more headers, each with its line end.
std::string get(const std::string& path, const std::string& headers = "");
std::string post(const std::string& path, const std::string& body,
                 const std::string& headers = "");

} // namespace shoal::test
