// runtime/http/http_exchange.hpp -- a request, and the way to answer it.
//
// A handler gets an exchange and answers it now or later, from any thread:
// either by respond(), or by begin_stream(), write() as often as it likes, and
// end(). An exchange that its last owner drops without an answer is answered
// with 500; a stream that is dropped before end() is cut off, so that the client
// can tell it from a complete one.
//
//   waiting --respond()--> answered
//      `--begin_stream()--> begun --write()--> streaming --end()--> answered
//                             `--respond()--> answered
//
// The client is gone when its connection fails, and also when it closes its
// sending side before the answer is complete: that is how a killed client looks.
// From then on every call does nothing and returns `gone`.
//
// Threads:   any, one at a time or not. Notices come on the server's thread:
//            they must not wait, and may call the exchange.
// Ownership: an exchange may outlive the server.
// Cost:      write() copies its bytes.
// Errors:    none of its own; a client that goes away is a notice.
#pragma once

#include "runtime/openai/api_error.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::runtime {

class key_account; // runtime/http/keys/key_account.hpp

struct http_header {
  std::string name; ///< of a request: in lower case
  std::string value;
};

/// A request whose head has been checked. It has no header with a key: what holds
/// no secret cannot tell it.
struct http_request {
  std::string method; ///< "GET"
  std::string target; ///< as sent
  std::string path;   ///< of the target, as sent: "/v1/models/a%2Fb"
  std::string query;  ///< what follows the '?', as sent
  std::vector<http_header> headers; ///< in the order in which they came
  std::string body;
  std::string client;   ///< "127.0.0.1:40312"
  std::string key_name; ///< of the API key; "": the server asks for none
  /// Of that key; null: it has no limits.
  std::shared_ptr<key_account> account;

  /// The first header of this name, in lower case; nullptr if there is none.
  const std::string* header(std::string_view lower_case_name) const;
};

/// "a%2Fb+c" -> "a/b+c". @returns nothing if a '%' lacks its two digits
std::optional<std::string> percent_decoded(std::string_view text);

/// Whether a path is one of Anthropic's API: /v1/messages, or below that.
bool is_anthropics(std::string_view path);

/// The body of an error, in the words of the API that a path belongs to:
/// Anthropic's, else OpenAI's.
std::string error_body(std::string_view path, const openai::api_error& error);

/// Its type, and whether and when another try makes sense.
std::vector<http_header> error_headers(const openai::api_error& error);

enum class http_write {
  ok,
  pause, ///< taken, but much waits for the client: go on after writable()
  gone,  ///< the client is gone, or the stream has ended
};

/// What the owner of an exchange is told.
class http_watcher {
public:
  virtual ~http_watcher() = default;
  /// The client is gone before the answer was complete, or the server has
  /// stopped. Called at most once, and last.
  virtual void closed() = 0;
  /// After a write() that returned `pause`: go on.
  virtual void writable() = 0;
};

class http_exchange {
public:
  virtual ~http_exchange() = default;

  virtual const http_request& request() const noexcept = 0;

  /// Sets who is told; it is held weakly. If the client is gone already,
  /// closed() follows at once.
  virtual void watch(std::weak_ptr<http_watcher> watcher) = 0;

  /// Answers, also instead of a stream that has nothing written. Content-Length,
  /// Date, Server and Connection are added.
  /// @returns false if the client is gone or the exchange has its answer
  virtual bool respond(unsigned status, std::vector<http_header> headers,
                       std::string body) = 0;
  /// The same with an error's status and error_body(), and Retry-After if it has
  /// one.
  bool respond(const openai::api_error& error);
  /// 200 with JSON.
  bool respond_json(std::string json);

  /// Begins an answer of unknown length. Its head is sent with the first bytes.
  /// @returns false as respond() does; and if there are too many streams: then
  ///          it has answered with 429
  virtual bool
  begin_stream(unsigned status, std::vector<http_header> headers) = 0;
  /// Whether begin_stream() has answered with 429.
  virtual bool has_refused_stream() const { return false; }
  /// @param bytes  "": the head alone
  virtual http_write write(std::string_view bytes) = 0;
  /// The answer is complete. @returns false as respond() does
  virtual bool end() = 0;
};

/// What answers requests. Called on the server's thread: it must neither wait
/// nor throw.
class http_handler {
public:
  virtual ~http_handler() = default;

  /// Called with a request without its body, before that is read: refuses what
  /// needs no body to be refused, such as an unknown path.
  virtual std::optional<openai::api_error> check(const http_request& head);
  /// Methods of the path, for the Allow header of a 405 and for CORS.
  virtual std::string allowed_methods(const http_request& head);

  virtual void on_request(std::shared_ptr<http_exchange> exchange) = 0;
};

} // namespace shoal::runtime
