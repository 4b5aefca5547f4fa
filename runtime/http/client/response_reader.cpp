// runtime/http/client/response_reader.cpp -- a head line by line, then a body.
#include "runtime/http/client/response_reader.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <system_error>
#include <utility>

namespace shoal::runtime {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::string_view trimmed_value(std::string_view text) {
  const auto first = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, out);
  return !text.empty() && error == std::errc() && end == last
         && text.front() != '-';
}

} // namespace

response_reader::step response_reader::fail(std::string text) {
  error_ = std::move(text);
  part_ = part::complete;
  return step::failed;
}

std::optional<std::string_view>
response_reader::take_line(std::string_view& input) {
  const auto end = input.find('\n');
  if (end == input.npos)
    return {};
  std::string_view line = input.substr(0, end);
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  head_left_ -= std::min(head_left_, end + 1);
  input.remove_prefix(end + 1);
  return line;
}

response_reader::step response_reader::read_status(std::string_view line) {
  constexpr std::string_view begin = "HTTP/1.";
  constexpr std::size_t digits = 3;
  const std::size_t at = begin.size() + 2; // the minor version, a space
  if (!line.starts_with(begin) || line.size() < at + digits
      || line[at - 1] != ' ' || !read_number(line.substr(at, digits), heard_)
      || heard_ < 100
      || (line.size() > at + digits && line[at + digits] != ' '))
    return fail("it does not speak HTTP/1.1");
  is_chunked_ = false;
  size_.reset();
  part_ = part::headers;
  return step::more;
}

response_reader::step response_reader::read_header(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == line.npos)
    return fail("a header of its answer is malformed");
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed_value(line.substr(colon + 1));
  if (same_name(name, "transfer-encoding")) {
    if (!same_name(value, "chunked"))
      return fail("its answer is encoded in a way that is not known here");
    is_chunked_ = true;
  } else if (same_name(name, "content-length")) {
    std::size_t size = 0;
    if (!read_number(value, size) || (size_ && *size_ != size))
      return fail("the Content-Length of its answer is malformed");
    size_ = size;
  }
  return step::more;
}

response_reader::step response_reader::end_head() {
  if (heard_ < 200) {
    part_ = part::status_line;
    return step::more;
  }
  status_ = heard_;
  if (status_ == 204 || status_ == 304)
    size_ = 0;
  if (is_chunked_ && status_ != 204 && status_ != 304)
    part_ = part::chunked;
  else
    part_ = size_ ? part::sized : part::to_end;
  if (part_ == part::sized && *size_ > body_left_)
    return fail("its answer is too large");
  return step::more;
}

response_reader::step
response_reader::put_body(std::string_view& input, std::string& body) {
  if (part_ == part::chunked) {
    std::string piece;
    const auto got = chunks_.put(input, piece);
    if (got == chunked_body::step::malformed)
      return fail("a chunk of its answer is malformed");
    if (got == chunked_body::step::too_large || piece.size() > body_left_)
      return fail("its answer is too large");
    body_left_ -= piece.size();
    body += piece;
    if (got == chunked_body::step::more)
      return step::more;
    part_ = part::complete;
    return step::complete;
  }
  const std::size_t count =
    part_ == part::sized ? std::min(*size_, input.size()) : input.size();
  if (count > body_left_)
    return fail("its answer is too large");
  body_left_ -= count;
  body += input.substr(0, count);
  input.remove_prefix(count);
  if (part_ == part::to_end)
    return step::more;
  *size_ -= count;
  if (*size_ > 0)
    return step::more;
  part_ = part::complete;
  return step::complete;
}

response_reader::step
response_reader::put(std::string_view& input, std::string& body) {
  for (;;) {
    if (part_ == part::complete)
      return error_.empty() ? step::complete : step::failed;
    if (part_ != part::status_line && part_ != part::headers)
      return put_body(input, body);
    const bool cut = input.find('\n') >= head_left_;
    if (cut && input.size() >= head_left_)
      return fail("the head of its answer is too long");
    const auto line = take_line(input);
    if (!line)
      return step::more;
    const step s = part_ == part::status_line ? read_status(*line)
                   : line->empty()            ? end_head()
                                              : read_header(*line);
    if (s != step::more)
      return s;
  }
}

response_reader::step response_reader::end() {
  if (part_ == part::complete)
    return error_.empty() ? step::complete : step::failed;
  if (part_ != part::to_end)
    return fail(status_ == 0 ? "it closed the connection without an answer"
                             : "its answer broke off");
  part_ = part::complete;
  return step::complete;
}

} // namespace shoal::runtime
