// runtime/http/request_reader.hpp -- foreign bytes become a request.
//
// Bytes come in pieces of any size, and the result does not depend on how they
// are cut. The head is told of before the body is read, so that a request can be
// refused without its body.
//
//   more <-> more --> head --> more <-> more --> complete
//                 (failed from each of them)
//
// Stricter than the RFCs where servers that differ have let requests be
// smuggled: one Host, no Transfer-Encoding but "chunked", no trailers are
// taken.
//
// Threads: one. Cost: linear, also for bytes that come one by one.
// Errors:  as an api_error with status 400, 413, 431, 501 or 505.
#pragma once

#include "runtime/http/http_exchange.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace shoal::runtime {

class request_reader {
public:
  enum class step {
    more,     ///< more bytes are needed
    head,     ///< the head is complete; put() goes on with the body
    complete, ///< the request is complete: take no more
    failed,   ///< it is no valid request: see error()
  };

  request_reader(std::size_t head_bytes_max, std::size_t body_bytes_max);
  ~request_reader();
  request_reader(request_reader&&) noexcept;
  request_reader& operator=(request_reader&&) noexcept;

  /// Takes bytes from the front of `input`. Those that it leaves, at most
  /// head_bytes_max if it wants more, stand at the front of the next input.
  /// Returns `head` once, also for a request without a body; then `complete`
  /// comes from another call, for which an empty input is enough.
  step put(std::string_view& input);

  /// @pre put() returned `failed`
  const openai::api_error& error() const;

  /// Whether a byte of the request has come.
  bool begun() const noexcept;
  /// The request: its head since `head`, its body when `complete`.
  http_request& request() noexcept;

  // Since `head`:
  bool has_body() const;
  bool keep_alive() const;       ///< the client wants to go on afterwards
  bool takes_chunks() const;     ///< it is HTTP/1.1
  bool expects_continue() const; ///< it sends the body after "100 Continue"

private:
  class parser;
  std::unique_ptr<parser> parser_;
};

} // namespace shoal::runtime
