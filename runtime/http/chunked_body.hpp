// runtime/http/chunked_body.hpp -- the body of a request that comes in chunks.
//
//   chunk = size in hex [";" extension] CRLF, that many bytes, CRLF
//   the last has size 0, no bytes, and trailers: lines, up to an empty one
//
// Extensions and trailers are read and forgotten. The result does not depend on
// how the bytes are cut.
//
// Threads: one. Errors: a status and a sentence.
// Source:  RFC 9112, section 7.1.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal::runtime {

/// Of one line that begins a chunk; real ones have some ten bytes.
inline constexpr std::size_t chunk_line_bytes_max = 1024;
/// Of all trailers.
inline constexpr std::size_t trailer_bytes_max = 8 << 10;

class chunked_body {
public:
  enum class step { more, complete, malformed, too_large };

  explicit chunked_body(std::size_t body_bytes_max)
    : body_bytes_max_(body_bytes_max) {}

  /// Takes bytes from the front of `input` and adds those of the body to it.
  /// What it leaves, less than a line, stands at the front of the next input.
  step put(std::string_view& input, std::string& body);

private:
  enum class state { size, bytes, bytes_end, trailers, complete };

  enum class line { none, complete, malformed };
  /// Takes a line with its end from the front of `input`.
  static line take_line(std::string_view& input, std::size_t bytes_max,
                        std::string_view& text);
  step read_size(std::string_view text, std::size_t body_bytes);

  std::size_t body_bytes_max_;
  state state_ = state::size;
  std::size_t left_ = 0; ///< bytes of the present chunk
  std::size_t trailer_bytes_ = 0;
};

} // namespace shoal::runtime
