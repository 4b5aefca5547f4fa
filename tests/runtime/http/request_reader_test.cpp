// tests/runtime/http/request_reader_test.cpp -- requests from bytes, however
// they are cut.
#include "runtime/http/chunked_body.hpp"
#include "runtime/http/request_reader.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(reading_requests)

using namespace shoal::runtime;
using step = request_reader::step;
namespace data = boost::unit_test::data;

namespace {

constexpr std::size_t head_max = 256;
constexpr std::size_t body_max = 32;

/// What a connection would get from these bytes.
struct outcome {
  std::vector<http_request> requests;
  unsigned failed = 0; ///< status
  std::string message;
  std::size_t left = 0; ///< bytes that belong to no complete request
  bool keep_alive = true;
};

/// Reads bytes in pieces of `piece`, request after request.
outcome read(std::string_view bytes, std::size_t piece) {
  outcome out;
  request_reader reader(head_max, body_max);
  std::string input;
  for (;;) {
    std::string_view rest = input;
    const step s = reader.put(rest);
    input.erase(0, input.size() - rest.size());
    if (s == step::failed) {
      out.failed = reader.error().status;
      out.message = reader.error().message;
      return out;
    }
    if (s == step::complete) {
      out.keep_alive = reader.keep_alive();
      out.requests.push_back(std::move(reader.request()));
      reader = request_reader(head_max, body_max);
    }
    if (s == step::more) {
      if (bytes.empty()) {
        out.left = input.size();
        return out;
      }
      input += bytes.substr(0, piece);
      bytes.remove_prefix(std::min(piece, bytes.size()));
    }
  }
}

/// Reads them whole and in pieces of several sizes: always the same.
outcome read(std::string_view bytes) {
  auto whole = read(bytes, bytes.size() + 1);
  for (const std::size_t piece : {1, 2, 3, 5, 7, 64}) {
    BOOST_TEST_CONTEXT("pieces of " << piece) {
      const auto cut = read(bytes, piece);
      BOOST_TEST(cut.failed == whole.failed);
      BOOST_TEST_REQUIRE(cut.requests.size() == whole.requests.size());
      for (std::size_t i = 0; i < cut.requests.size(); ++i) {
        BOOST_TEST(cut.requests[i].target == whole.requests[i].target);
        BOOST_TEST(cut.requests[i].body == whole.requests[i].body);
        BOOST_TEST(cut.requests[i].headers.size()
                   == whole.requests[i].headers.size());
      }
    }
  }
  return whole;
}

const std::string host = "Host: a\r\n";

struct wrong {
  const char* bytes;
  unsigned status;
};
std::ostream& operator<<(std::ostream& out, const wrong& w) {
  return out << w.bytes;
}

const wrong wrongs[] = {
  {"\x16\x03\x01\x02", 400},               // TLS
  {"GET / HTTP/1.0\r\n\r\n\r\n\x16", 400}, // behind a request, too
  {"GET\r\n\r\n", 400},
  {"GET / HTTP/1.1\r\n\r\n", 400},                       // no Host
  {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400}, // two
  {"GET / HTTP/1.1\nHost: a\n\n", 400},                  // bare LF
  {"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400},
  {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
  {"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400},
  {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
  {"GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505},
  // Two ways to tell the end of the body.
  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
   "Transfer-Encoding: chunked\r\n\r\n",
   400},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
   "Content-Length: 3\r\n\r\n",
   400},
  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
   "Content-Length: 4\r\n\r\n",
   400},
  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\n", 400},
  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -3\r\n\r\n", 400},
  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\n", 400},
  {"POST / HTTP/1.1\r\nHost: a\r\n"
   "Content-Length: 18446744073709551616\r\n\r\n",
   400},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
   501},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
   501},
  {"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
   "Transfer-Encoding: chunked\r\n\r\n",
   400},
  // Too large.
  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 33\r\n\r\n", 413},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n21\r\n",
   413},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
   "10\r\n0123456789abcdef\r\n11\r\n",
   413},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
   "10000000000000000\r\n",
   413},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
   "-1\r\n",
   400},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
   "0x1\r\n",
   400},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
   "1 \r\n",
   400},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
   "1\na\n0\n\n",
   400},
  // Chunks that are none.
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
   400},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
   "1\r\nab\r\n0\r\n\r\n",
   400},
  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
   "0\r\nbad trailer\r\n\r\n",
   400},
};

} // namespace

BOOST_AUTO_TEST_CASE(a_request_has_its_parts) {
  const auto out = read("POST /v1/a%2Fb?x=1&y HTTP/1.1\r\n" + host
                        + "X-One: 1\r\nx-one:  two words \r\n"
                          "Content-Length: 5\r\n\r\nhello");
  BOOST_TEST_REQUIRE(out.requests.size() == 1u, out.message);
  const auto& r = out.requests[0];
  BOOST_TEST(r.method == "POST");
  BOOST_TEST(r.target == "/v1/a%2Fb?x=1&y");
  BOOST_TEST(r.path == "/v1/a%2Fb");
  BOOST_TEST(r.query == "x=1&y");
  BOOST_TEST(r.body == "hello");
  BOOST_TEST_REQUIRE(r.headers.size() == 4u);
  BOOST_TEST(*r.header("host") == "a");
  BOOST_TEST(*r.header("x-one") == "1"); // the first
  BOOST_TEST(r.headers[2].value == "two words");
  BOOST_TEST(r.header("none") == nullptr);
}

BOOST_AUTO_TEST_CASE(requests_follow_each_other) {
  const std::string get = "GET /1 HTTP/1.1\r\n" + host + "\r\n";
  const std::string post = "POST /2 HTTP/1.1\r\n" + host
                           + "Transfer-Encoding: Chunked\r\n\r\n"
                             "3;ext=\"a\"\r\nabc\r\n1\r\nd\r\n0\r\n"
                             "Host: b\r\nX: y\r\n\r\n";
  // Old clients send an empty line behind a body.
  const auto out = read(get + post + "\r\n" + get + get.substr(0, 10));
  BOOST_TEST_REQUIRE(out.requests.size() == 3u, out.message);
  BOOST_TEST(out.requests[1].body == "abcd");
  BOOST_TEST(out.requests[1].headers.size() == 2u); // no trailers
  BOOST_TEST(*out.requests[1].header("host") == "a");
  BOOST_TEST(out.requests[2].target == "/1");
  BOOST_TEST(out.left == 10u);
}

BOOST_AUTO_TEST_CASE(targets_have_several_forms) {
  const auto path = [](const std::string& target) {
    const auto out = read("GET " + target + " HTTP/1.1\r\n" + host + "\r\n");
    BOOST_TEST_REQUIRE(out.requests.size() == 1u, out.message);
    return out.requests[0].path + "|" + out.requests[0].query;
  };
  BOOST_TEST(path("/") == "/|");
  BOOST_TEST(path("/a?") == "/a|");
  BOOST_TEST(path("/a?b?c") == "/a|b?c");
  BOOST_TEST(path("http://h:1/a?b") == "/a|b");
  BOOST_TEST(path("http://h") == "/|");
  BOOST_TEST(path("*") == "*|");
  BOOST_TEST(path("/http://h/a") == "/http://h/a|");
}

BOOST_AUTO_TEST_CASE(a_connection_goes_on_as_its_version_says) {
  const auto keeps = [](const std::string& version, const std::string& header) {
    const auto out =
      read("GET / HTTP/" + version + "\r\n" + host + header + "\r\n");
    BOOST_TEST_REQUIRE(out.requests.size() == 1u, out.message);
    return out.keep_alive;
  };
  BOOST_TEST(keeps("1.1", ""));
  BOOST_TEST(!keeps("1.1", "Connection: close\r\n"));
  BOOST_TEST(!keeps("1.0", ""));
  BOOST_TEST(keeps("1.0", "Connection: Keep-Alive\r\n"));
}

BOOST_AUTO_TEST_CASE(the_head_is_told_before_the_body) {
  request_reader reader(head_max, body_max);
  std::string_view input;
  BOOST_TEST((reader.put(input) == step::more));
  BOOST_TEST(!reader.begun());
  const std::string head = "POST / HTTP/1.1\r\n" + host
                           + "Expect: 100-Continue\r\n"
                             "Content-Length: 2\r\n\r\n";
  input = head;
  BOOST_TEST((reader.put(input) == step::head));
  BOOST_TEST(reader.begun());
  BOOST_TEST(reader.has_body());
  BOOST_TEST(reader.takes_chunks());
  BOOST_TEST(reader.expects_continue());
  BOOST_TEST((reader.put(input) == step::more));
  input = "abc";
  BOOST_TEST((reader.put(input) == step::complete));
  BOOST_TEST(input == "c");
  BOOST_TEST(reader.request().body == "ab");
}

BOOST_AUTO_TEST_CASE(no_body_is_expected_of_get) {
  request_reader reader(head_max, body_max);
  const std::string bytes = "GET / HTTP/1.0\r\n\r\n";
  std::string_view input = bytes;
  BOOST_TEST((reader.put(input) == step::head));
  BOOST_TEST(!reader.has_body());
  BOOST_TEST(!reader.takes_chunks());
  BOOST_TEST((reader.put(input) == step::complete));
}

BOOST_DATA_TEST_CASE(what_is_no_request_is_refused, data::make(wrongs)) {
  BOOST_TEST(read(sample.bytes).failed == sample.status);
}

BOOST_AUTO_TEST_CASE(the_head_has_a_limit_in_all) {
  const std::string line = "GET / HTTP/1.1\r\n" + host;
  const std::string fits =
    line + "X: " + std::string(head_max - line.size() - 7, 'x') + "\r\n\r\n";
  BOOST_TEST(fits.size() == head_max);
  BOOST_TEST(read(fits).requests.size() == 1u);
  BOOST_TEST(read(fits + fits).requests.size() == 2u);
  const std::string longer =
    line + "X: " + std::string(head_max - line.size() - 6, 'x') + "\r\n\r\n";
  BOOST_TEST(read(longer).failed == 431u);
  // Without an end, and in many short lines.
  BOOST_TEST(read("GET /" + std::string(head_max, 'a')).failed == 431u);
  std::string many = line;
  while (many.size() <= head_max)
    many += "a:b\r\n";
  BOOST_TEST(read(many).failed == 431u);
  BOOST_TEST(read(many + "\r\n").failed == 431u);
  std::string blank;
  while (blank.size() <= head_max)
    blank += "\r\n";
  BOOST_TEST(read(blank).failed == 431u);
}

BOOST_AUTO_TEST_CASE(the_body_has_a_limit) {
  const std::string head = "POST / HTTP/1.1\r\n" + host;
  BOOST_TEST(read(head + "Content-Length: 32\r\n\r\n" + std::string(32, 'x'))
               .requests.size()
             == 1u);
  BOOST_TEST(read(head + "Transfer-Encoding: chunked\r\n\r\n20\r\n"
                  + std::string(32, 'x') + "\r\n0\r\n\r\n")
               .requests.size()
             == 1u);
}

/// What is not the body has limits, too.
BOOST_AUTO_TEST_CASE(lines_between_chunks_have_limits) {
  const std::string head =
    "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n";
  const auto size_line = [](std::size_t bytes) {
    return "1;" + std::string(bytes - 4, 'x') + "\r\n";
  };
  BOOST_TEST(read(head + size_line(chunk_line_bytes_max) + "a\r\n0\r\n\r\n")
               .requests.size()
             == 1u);
  BOOST_TEST(
    read(head + size_line(chunk_line_bytes_max + 1) + "a\r\n0\r\n\r\n").failed
    == 400u);
  BOOST_TEST(read(head + std::string(chunk_line_bytes_max, '0')).failed
             == 400u);
  const auto trailers = [](std::size_t bytes) {
    return "0\r\nA: b\r\nX: " + std::string(bytes - 13, 'x') + "\r\n\r\n";
  };
  BOOST_TEST(read(head + trailers(trailer_bytes_max)).requests.size() == 1u);
  BOOST_TEST(read(head + trailers(trailer_bytes_max + 1)).failed == 400u);
}

BOOST_AUTO_TEST_SUITE_END()
