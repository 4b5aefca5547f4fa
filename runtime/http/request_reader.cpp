// runtime/http/request_reader.cpp -- Boost.Beast parses heads; the rest is ours.
//
// Of Boost 1.74 only that is used: a head that comes in pieces escapes its limit,
// and a last chunk that does ends the process by an assertion.
#include "runtime/http/request_reader.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/http/chunked_body.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

namespace shoal::runtime {
namespace {

namespace http = boost::beast::http;
using beast_view = boost::beast::string_view;
using error_code = boost::beast::error_code;

std::string text_of(beast_view text) {
  return {text.data(), text.size()};
}

std::string lower(std::string text) {
  for (char& c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Takes path and query out of "/path?query" or "http://host/path?query".
void split_target(http_request& request) {
  std::string_view rest = request.target;
  if (!rest.starts_with('/'))
    if (const auto scheme = rest.find("://"); scheme != rest.npos) {
      const auto slash = rest.find('/', scheme + 3);
      rest = slash == rest.npos ? std::string_view("/") : rest.substr(slash);
    }
  const auto mark = rest.find('?');
  request.path = rest.substr(0, mark);
  if (mark != rest.npos)
    request.query = rest.substr(mark + 1);
}

} // namespace

class request_reader::parser : public http::basic_parser<true> {
public:
  parser(std::size_t head_max, std::size_t body_max)
    : head_max_(head_max), body_max_(body_max), body_(body_max) {
    header_limit(static_cast<std::uint32_t>(head_max));
    body_limit(body_max);
  }

  step put_bytes(std::string_view& input) {
    if (failure)
      return step::failed;
    return head_complete_ ? put_body(input) : put_head(input);
  }

  bool has_body() const {
    return chunked() || content_length().value_or(0) > 0;
  }

  bool begun = false;
  std::optional<openai::api_error> failure;
  http_request request;
  bool chunks = false; ///< the client speaks HTTP/1.1
  bool expects_continue = false;

private:
  /// The parser gets the head whole: in pieces, it would wait for the end of
  /// what is wrong from its first byte.
  step put_head(std::string_view& input) {
    if (!begun)
      skip_empty_lines(input);
    if (!begun)
      return step::more;
    const std::string_view part = input.substr(0, head_max_ - empty_bytes_);
    const auto end = find_end(part);
    if (failure)
      return step::failed;
    if (end == 0)
      return part.size() < head_max_ - empty_bytes_ ? step::more
                                                    : fail(too_long());
    error_code error;
    const auto taken = put(boost::asio::buffer(input.data(), end), error);
    input.remove_prefix(end);
    if (!error && (taken != end || !is_header_done()))
      error = http::error::bad_line_ending;
    if (error)
      return fail(error);
    if (chunks ? hosts_ != 1 : hosts_ > 1)
      return fail(openai::refused_request(
        400, "the request has not exactly one Host header", "bad_request"));
    head_complete_ = true;
    return step::head;
  }

  /// Some clients send one after a body.
  void skip_empty_lines(std::string_view& input) {
    while (input.starts_with("\r\n") && empty_bytes_ + 2 <= head_max_) {
      input.remove_prefix(2);
      empty_bytes_ += 2;
    }
    begun = !input.empty() && input != "\r";
  }

  /// @returns the size of the head, or 0 if it is not complete
  std::size_t find_end(std::string_view part) {
    if (!part.empty() && scanned_ == 0
        && !std::isalpha(static_cast<unsigned char>(part[0])))
      fail(openai::refused_request(
        400, "not a valid HTTP request: this port speaks HTTP only",
        "bad_request"));
    for (; scanned_ < part.size(); ++scanned_) {
      if (part[scanned_] != '\n')
        continue;
      const auto before = part.substr(0, scanned_);
      if (before.ends_with("\r\n\r"))
        return scanned_ + 1;
      if (!before.ends_with('\r'))
        fail(openai::refused_request(
          400, "not a valid HTTP request: a line ends without CR",
          "bad_request"));
    }
    return 0;
  }

  step put_body(std::string_view& input) {
    if (!chunked()) {
      const auto length = content_length().value_or(0);
      const auto count =
        std::min<std::uint64_t>(length - request.body.size(), input.size());
      request.body.append(input.substr(0, count));
      input.remove_prefix(count);
      return request.body.size() == length ? step::complete : step::more;
    }
    switch (body_.put(input, request.body)) {
    case chunked_body::step::more:
      return step::more;
    case chunked_body::step::complete:
      return step::complete;
    case chunked_body::step::malformed:
      return fail(openai::refused_request(
        400, "the chunks of the body are not valid", "bad_request"));
    case chunked_body::step::too_large:
      return fail(error_code(http::error::body_limit));
    }
    return step::failed;
  }

  step fail(openai::api_error why) {
    failure = std::move(why);
    return step::failed;
  }
  step fail(error_code error) {
    if (failure) // by one of the functions below
      return step::failed;
    if (error == http::error::header_limit)
      return fail(too_long());
    if (error == http::error::body_limit)
      return fail(
        openai::refused_request(413,
                                "the body of the request is longer than "
                                  + std::to_string(body_max_) + " bytes",
                                "body_too_large"));
    if (error == http::error::bad_version)
      return fail(
        openai::refused_request(505, "this server speaks HTTP/1.1 and HTTP/1.0",
                                "http_version_not_supported"));
    return fail(openai::refused_request(
      400, "not a valid HTTP request: " + error.message(), "bad_request"));
  }
  openai::api_error too_long() const {
    return openai::refused_request(
      431,
      "the request line and headers are longer than "
        + std::to_string(head_max_) + " bytes",
      "head_too_large");
  }

  void on_request_impl(http::verb, beast_view method, beast_view target,
                       int version, error_code&) override {
    request.method = text_of(method);
    request.target = text_of(target);
    split_target(request);
    chunks = version >= 11;
  }

  void on_field_impl(http::field, beast_view name, beast_view value,
                     error_code& error) override {
    http_header header{lower(text_of(name)), text_of(value)};
    if (header.name == "host")
      ++hosts_;
    if (header.name == "expect")
      expects_continue = chunks && lower(header.value) == "100-continue";
    if (header.name == "transfer-encoding"
        && (!chunks || lower(header.value) != "chunked")) {
      failure = openai::refused_request(
        501, "the only Transfer-Encoding is \"chunked\"",
        "unsupported_encoding");
      error = http::error::bad_transfer_encoding;
      return;
    }
    request.headers.push_back(std::move(header));
  }

  // Bodies do not come to the parser.
  std::size_t on_body_impl(beast_view, error_code&) override { return 0; }
  std::size_t
  on_chunk_body_impl(std::uint64_t, beast_view, error_code&) override {
    return 0;
  }
  void on_response_impl(int, beast_view, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&,
                         error_code&) override {}
  void on_chunk_header_impl(std::uint64_t, beast_view, error_code&) override {}
  void on_finish_impl(error_code&) override {}

  std::size_t head_max_;
  std::size_t body_max_;
  chunked_body body_;
  std::size_t empty_bytes_ = 0; ///< of empty lines before the head
  std::size_t scanned_ = 0;     ///< bytes without the head's end
  std::size_t hosts_ = 0;
  bool head_complete_ = false;
};

request_reader::request_reader(std::size_t head_bytes_max,
                               std::size_t body_bytes_max)
  : parser_(std::make_unique<parser>(head_bytes_max, body_bytes_max)) {
}
request_reader::~request_reader() = default;
request_reader::request_reader(request_reader&&) noexcept = default;
request_reader& request_reader::operator=(request_reader&&) noexcept = default;

request_reader::step request_reader::put(std::string_view& input) {
  return parser_->put_bytes(input);
}

const openai::api_error& request_reader::error() const {
  SHOAL_ASSERT(parser_->failure);
  return *parser_->failure;
}

bool request_reader::begun() const noexcept {
  return parser_->begun;
}

http_request& request_reader::request() noexcept {
  return parser_->request;
}

bool request_reader::has_body() const {
  return parser_->has_body();
}

bool request_reader::keep_alive() const {
  return parser_->keep_alive();
}

bool request_reader::takes_chunks() const {
  return parser_->chunks;
}

bool request_reader::expects_continue() const {
  return parser_->expects_continue;
}

} // namespace shoal::runtime
