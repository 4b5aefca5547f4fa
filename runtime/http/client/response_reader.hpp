// runtime/http/client/response_reader.hpp -- foreign bytes become an answer.
//
//   HTTP/1.1 STATUS reason CRLF, headers, an empty line, a body
//
// The body comes in chunks, by Content-Length, or up to the end of the
// connection. Answers of 1xx before it are skipped. The result does not depend
// on how the bytes are cut.
//
// Threads: one. Errors: a sentence.
// Source:  RFC 9112, sections 4, 6.3 and 7.1.
#pragma once

#include "runtime/http/chunked_body.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::runtime {

class response_reader {
public:
  enum class step { more, complete, failed };

  /// @param head_bytes_max of all answers before the body
  /// @param body_bytes_max of the body, without what frames its chunks
  response_reader(std::size_t head_bytes_max, std::size_t body_bytes_max)
    : head_left_(head_bytes_max), body_left_(body_bytes_max),
      chunks_(body_bytes_max) {}

  /// Takes bytes from the front of `input` and adds those of the body to
  /// `body`. What it leaves stands at the front of the next input.
  step put(std::string_view& input, std::string& body);
  /// The connection has ended: the answer is complete, or it is torn.
  step end();

  int status() const noexcept { return status_; } ///< 0: no head yet
  const std::string& error() const noexcept { return error_; }

private:
  enum class part { status_line, headers, sized, chunked, to_end, complete };

  step fail(std::string text);
  /// Takes a line of the head without its end; nothing: it is not whole.
  std::optional<std::string_view> take_line(std::string_view& input);
  step read_status(std::string_view line);
  step read_header(std::string_view line);
  step end_head();
  step put_body(std::string_view& input, std::string& body);

  std::size_t head_left_;
  std::size_t body_left_;
  chunked_body chunks_;
  part part_ = part::status_line;
  int status_ = 0;
  int heard_ = 0; ///< status of the head that is being read
  bool is_chunked_ = false;
  std::optional<std::size_t> size_; ///< Content-Length; then what is left
  std::string error_;
};

} // namespace shoal::runtime
