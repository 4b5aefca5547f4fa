// runtime/http/client/http_client.hpp -- asks an HTTP/1.1 server, one request at
// a time, each over a connection of its own.
//
// Another file descriptor that becomes readable stops what is under way: the
// connection is closed, so that the server ends its work.
//
// Threads: one. Calls block: to connect (TLS included) at most `connect_max`, for an answer
//          until it is there, the connection ends, or `wake` is readable.
// Errors:  a sentence without the address; an answer of any status is none.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/http/client/event_stream.hpp"
#include "runtime/http/client/tls_stream.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace shoal::runtime {

namespace http_client_limits {
inline constexpr std::size_t head_bytes_max = 64 << 10;
/// Of an answer that is kept whole: a list of models, an error.
inline constexpr std::size_t reply_bytes_max = 4 << 20;
/// Of a stream: 128 Ki tokens, each in an event of a kilobyte.
inline constexpr std::size_t stream_bytes_max = 128 << 20;
inline constexpr std::size_t event_bytes_max = 1 << 20;
} // namespace http_client_limits

struct http_url {
  bool secure = false; ///< by TLS: https
  std::string host;    ///< without brackets
  std::string port = "80";
  std::string path; ///< "/v1"; without a '/' at its end

  /// "host:port", as in a Host header; brackets around an IPv6 address.
  [[nodiscard]] std::string authority() const;
  /// "http://host:port/v1"
  [[nodiscard]] std::string text() const;
};

/// Reads "http[s]://host[:port][/path]", or "host:port[/path]".
[[nodiscard]] model::result<http_url> parse_http_url(std::string_view text);

struct http_reply {
  int status = 0;
  std::string body;     ///< of a stream: only that of an answer that is no 200
  bool stopped = false; ///< by `wake`, or by who takes the events
};

class http_client {
public:
  struct settings {
    http_url base;
    /// Of https: must not be null then.
    std::shared_ptr<const tls_trust> trust;
    std::string key; ///< sent as Authorization: Bearer; empty: none
    int wake = -1;   ///< stops what is under way when it is readable; -1: none
    std::chrono::milliseconds connect_max{10000};
  };

  explicit http_client(settings s) : settings_(std::move(s)) {}

  /// Whether the text can be sent as a key: visible ASCII.
  [[nodiscard]] static bool is_key(std::string_view text);

  /// @param path below that of the base URL: "/models"
  [[nodiscard]] model::result<http_reply> get(const std::string& path);
  /// Sends JSON, and hands on the data of each event of an answer of 200.
  [[nodiscard]] model::result<http_reply>
  stream(const std::string& path, const std::string& json,
         const event_stream::taker& take);

private:
  model::result<http_reply>
  ask(const std::string& request, const event_stream::taker* take);
  std::string head_of(const char* method, const std::string& path) const;

  settings settings_;
};

} // namespace shoal::runtime
