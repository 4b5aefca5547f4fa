// runtime/http/http_server.hpp -- HTTP/1.1 for a handler, on a thread of its own.
//
// A connection carries one request at a time; those that a client sends ahead
// wait in its buffer. While a handler works on a request, the connection is
// still read, so that a client that goes away is noticed at once.
//
// Safety: without API keys only loopback addresses are listened on, and the
// request's Host must be one, too: a web page cannot reach the server by a name
// of its own that leads to 127.0.0.1 (DNS rebinding). With keys, each request
// must have one, unless its path is in `open_paths`. There is no TLS: put a
// reverse proxy in front of what leaves a trusted network.
//
// Threads: all members may be called from any thread but the server's own.
// Errors:  the constructor throws usage_error for what the user gave, and
//          setup_error if it cannot listen; later ones are answers to clients
//          and lines of the log, which never have a secret.
// Source:  RFC 9110, RFC 9112.
#pragma once

#include "runtime/http/http_exchange.hpp"
#include "runtime/http/keys/api_keys.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {

class key_accounts; // runtime/http/keys/key_account.hpp

struct http_limits {
  using seconds = std::chrono::seconds;

  std::size_t connections_max = 1024; ///< in all; then 503
  /// Refused connections that wait for their 503 to be read; then closed.
  std::size_t refused_max = 64;
  std::size_t head_bytes_max = 16 << 10; ///< request line and headers; 431
  std::size_t body_bytes_max = 8 << 20;  ///< of one request; 413
  /// Of all bodies that are being read or are with the handler; then 503.
  /// At least body_bytes_max.
  std::size_t bodies_bytes_max = 256 << 20;
  /// Read ahead of a request's end, while that is answered.
  std::size_t read_ahead_max = 64 << 10;
  /// Requests that the handler has and has not begun to answer; then 429.
  std::size_t requests_max = 512;
  std::size_t streams_max = 512; ///< begun and not complete; then 429
  /// Of a connection, in the kernel: what a client that does not read costs there.
  int send_buffer_bytes = 128 << 10;
  /// Bytes of a stream that wait for the client: from here the handler is told
  /// to pause, until half of it is left;
  std::size_t pause_bytes = 256 << 10;
  /// from here the client is dropped.
  std::size_t drop_bytes = 4 << 20;

  seconds idle_time{75};    ///< of a connection without a request; closed
  seconds request_time{30}; ///< to read a request, from its first byte; 408
  seconds stall_time{60};   ///< in which a client takes no byte; dropped
  seconds linger_time{2};   ///< for a client to read a refusal
  seconds retry_after{1};   ///< what a 429 or 503 of the server says

  std::size_t port_tries = 64; ///< ports that next_free_port tries
};

/// Time as the server sees it. Tests have one that they set.
class http_clock {
public:
  using time_point = std::chrono::steady_clock::time_point;
  virtual ~http_clock() = default;
  virtual time_point now() = 0;
};

struct http_config {
  /// ADDRESS:PORT or [ADDRESS]:PORT, numeric or "localhost"; port 0: any.
  std::string listen = "127.0.0.1:8080";
  bool next_free_port = false; ///< if the port is taken, one above it
  /// Nothing: no key is asked for, and only loopback is listened on.
  std::shared_ptr<const api_keys> keys;
  /// What keys with limits have left; nothing: the server makes one.
  std::shared_ptr<key_accounts> accounts;
  std::vector<std::string> open_paths; ///< need no key: "/health"
  /// Web pages of other origins that may use the server:
  /// "https://chat.example.org", or "*" for all.
  std::vector<std::string> cors_origins;
  /// Prefixes of paths where what changes something (all but GET and HEAD) is
  /// refused to web pages, except to the server's own and those of cors_origins.
  std::vector<std::string> own_pages_only;
  http_limits limits;
  std::shared_ptr<http_clock> clock;           ///< nothing: the system's
  std::function<void(const std::string&)> log; ///< from the server's thread
};

/// Totals since the start, and what is open now.
struct http_counts {
  std::uint64_t connections = 0; ///< accepted
  std::uint64_t requests = 0;    ///< given to the handler
  std::uint64_t refused = 0;     ///< answered by the server itself
  std::uint64_t dropped = 0;     ///< clients that did not take their answer
  std::uint64_t gone = 0;        ///< clients that left before their answer
  std::size_t open = 0;          ///< connections
  std::size_t waiting = 0;       ///< requests without the begin of an answer
  std::size_t streams = 0;       ///< begun, not complete
};

class http_server {
public:
  /// Listens; requests come from now on.
  http_server(http_config config, std::shared_ptr<http_handler> handler);
  ~http_server(); ///< stop(0)
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  /// "127.0.0.1:8081", "[::1]:8080".
  const std::string& endpoint() const noexcept;
  std::uint16_t port() const noexcept;

  /// Uses other keys for requests that come from now on.
  /// @pre the server has keys, and so have the new ones
  void use_keys(std::shared_ptr<const api_keys> keys);

  http_counts counts() const;

  /// Accepts nothing more, and closes connections that have no request with the
  /// handler. The others go on. Returns at once.
  void drain();
  /// drain(); returns when all answers are complete, after `grace` at the
  /// latest: then the rest is cut off, and its owners are told by closed().
  void stop(std::chrono::milliseconds grace);

  /// Tells the server that its clock was set.
  void clock_changed();

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::runtime
