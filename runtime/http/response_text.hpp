// runtime/http/response_text.hpp -- answers as bytes of HTTP/1.1.
//
// Threads: pure functions.
#pragma once

#include "runtime/http/http_exchange.hpp"

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::runtime {

struct response_head {
  unsigned status = 200;
  std::vector<http_header> headers;
  /// Bytes of the body; nothing: it comes in chunks, or until the end of the
  /// connection.
  std::optional<std::size_t> length;
  bool chunks = false;
  bool close = false; ///< the connection ends with this answer
};

/// Status line and headers, and the empty line behind them.
/// @pre no name and no value has a line end
std::string head_text(const response_head& head, std::time_t now);

/// Bytes as one chunk. @pre they are not empty: that would be the end
std::string chunk_text(std::string_view bytes);
inline constexpr std::string_view last_chunk = "0\r\n\r\n";
inline constexpr std::string_view continue_text =
  "HTTP/1.1 100 Continue\r\n\r\n";

/// "OK", "Too Many Requests"; "" for a status that has none here.
std::string_view reason_of(unsigned status);

} // namespace shoal::runtime
