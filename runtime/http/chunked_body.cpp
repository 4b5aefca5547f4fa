// runtime/http/chunked_body.cpp -- a line, its bytes, and so on.
#include "runtime/http/chunked_body.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

namespace shoal::runtime {

chunked_body::line
chunked_body::take_line(std::string_view& input, std::size_t bytes_max,
                        std::string_view& text) {
  const std::string_view part = input.substr(0, bytes_max);
  const auto end = part.find('\n');
  if (end == part.npos)
    return input.size() >= bytes_max ? line::malformed : line::none;
  if (end == 0 || part[end - 1] != '\r')
    return line::malformed;
  text = part.substr(0, end - 1);
  input.remove_prefix(end + 1);
  const auto control = [](unsigned char c) {
    return (c < ' ' && c != '\t') || c == 0x7f;
  };
  return std::ranges::any_of(text, control) ? line::malformed : line::complete;
}

chunked_body::step
chunked_body::read_size(std::string_view text, std::size_t body_bytes) {
  std::uint64_t size = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, size, 16);
  if (error == std::errc::result_out_of_range)
    return step::too_large;
  if (error != std::errc() || text.starts_with('-')
      || (end != last && *end != ';'))
    return step::malformed;
  if (size > body_bytes_max_ - body_bytes)
    return step::too_large;
  left_ = size;
  state_ = size == 0 ? state::trailers : state::bytes;
  return step::more;
}

chunked_body::step
chunked_body::put(std::string_view& input, std::string& body) {
  std::string_view text;
  for (;;) {
    switch (state_) {
    case state::bytes: {
      const auto count = std::min(left_, input.size());
      body.append(input.substr(0, count));
      input.remove_prefix(count);
      left_ -= count;
      if (left_ > 0)
        return step::more;
      state_ = state::bytes_end;
      break;
    }
    case state::bytes_end:
      if (input.size() < 2 && std::string_view("\r\n").starts_with(input))
        return step::more;
      if (!input.starts_with("\r\n"))
        return step::malformed;
      input.remove_prefix(2);
      state_ = state::size;
      break;
    case state::size:
    case state::trailers: {
      const bool size = state_ == state::size;
      const auto before = input.size();
      const auto got = take_line(
        input, size ? chunk_line_bytes_max : trailer_bytes_max - trailer_bytes_,
        text);
      if (got == line::none)
        return step::more;
      if (got == line::malformed)
        return step::malformed;
      if (size) {
        if (const step s = read_size(text, body.size()); s != step::more)
          return s;
        break;
      }
      trailer_bytes_ += before - input.size();
      if (text.empty())
        state_ = state::complete;
      else if (text.find(':') == text.npos)
        return step::malformed;
      break;
    }
    case state::complete:
      return step::complete;
    }
  }
}

} // namespace shoal::runtime
