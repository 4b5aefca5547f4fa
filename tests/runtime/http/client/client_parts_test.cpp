// tests/runtime/http/client/client_parts_test.cpp -- URLs, and the answers of
// servers, cut in all ways.
#include "runtime/http/client/event_stream.hpp"
#include "runtime/http/client/http_client.hpp"
#include "runtime/http/client/response_reader.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(http_client_parts)

using namespace shoal::runtime;

namespace {

using step = response_reader::step;

struct outcome {
  step last = step::more;
  int status = 0;
  std::string body, error, left;
};

outcome read(std::string_view bytes, std::size_t piece, bool ends = true,
             std::size_t head_max = 200, std::size_t body_max = 50) {
  response_reader reader(head_max, body_max);
  outcome out;
  while (out.last == step::more && !bytes.empty()) {
    out.left += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    std::string_view rest = out.left;
    out.last = reader.put(rest, out.body);
    out.left.erase(0, out.left.size() - rest.size());
  }
  if (out.last == step::more && ends)
    out.last = reader.end();
  out.status = reader.status();
  out.error = reader.error();
  return out;
}

const std::vector<std::size_t> cuts{1, 2, 3, 7, 1000};

std::vector<std::string> events_of(std::string_view bytes, std::size_t piece,
                                   std::size_t event_max = 100) {
  std::vector<std::string> out;
  event_stream events(event_max);
  auto last = event_stream::step::more;
  while (!bytes.empty() && last == event_stream::step::more) {
    last = events.put(bytes.substr(0, piece), [&](std::string_view data) {
      out.emplace_back(data);
      return data != "last";
    });
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  if (last == event_stream::step::too_large)
    out.emplace_back("too large");
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_body_ends_by_its_length_its_chunks_or_the_connection) {
  for (const std::size_t cut : cuts) {
    for (const char* text :
         {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
          "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nhe\r\n"
          "3;x=1\r\nllo\r\n0\r\n\r\n",
          "HTTP/1.0 200\nX: y\n\nhello",
          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
          "content-length:5\r\n\r\nhello"}) {
      const auto got = read(text, cut);
      BOOST_TEST(int(got.last) == int(step::complete), text);
      BOOST_TEST(got.status == 200);
      BOOST_TEST(got.body == "hello");
    }
    const auto none = read("HTTP/1.1 204 No\r\n\r\n", cut, false);
    BOOST_TEST(int(none.last) == int(step::complete));
  }
}

BOOST_AUTO_TEST_CASE(a_torn_malformed_or_large_answer_is_refused) {
  for (const std::size_t cut : cuts)
    for (const auto& [text, why] :
         std::vector<std::pair<std::string, std::string>>{
           {"SSH-2.0-x\r\n", "HTTP/1.1"},
           {"HTTP/1.1 2x0 OK\r\n", "HTTP/1.1"},
           {"HTTP/1.1 099 OK\r\n", "HTTP/1.1"},
           {"", "without an answer"},
           {"HTTP/1.1 200 OK\r\nnothing\r\n", "header"},
           {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "Content-Length"},
           {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "Content-Length"},
           {"HTTP/1.1 200 OK\r\nContent-Length: 51\r\n\r\n", "too large"},
           {"HTTP/1.1 200 OK\r\n\r\n" + std::string(51, 'x'), "too large"},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n33\r\n",
            "too large"},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1e\r\n"
              + std::string(30, 'x') + "\r\n1e\r\n" + std::string(30, 'x'),
            "too large"},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            "malformed"},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "encoded"},
           {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "broke off"},
           {"HTTP/1.1 200 OK\r\nX: " + std::string(200, 'x') + "\r\n",
            "too long"},
           {"HTTP/1.1 200 OK\r\nX: " + std::string(200, 'x'), "too long"}}) {
      const auto got = read(text, cut);
      BOOST_TEST(int(got.last) == int(step::failed), text);
      BOOST_TEST(got.error.find(why) != std::string::npos, got.error);
    }
}

BOOST_AUTO_TEST_CASE(events_are_the_same_however_they_are_cut) {
  const std::vector<std::string> expected{"one", "two\nlines", "", "last"};
  for (const std::size_t cut : cuts)
    for (const char* text :
         {"\xef\xbb\xbf"
          "data: one\n\n: a comment\nid: 4\n\nevent: x\ndata: two\ndata:lines\n"
          "\ndata\n\ndata: last\n\ndata: never\n\n",
          "data: one\r\n\r\n\r\ndata: two\r\ndata: lines\r\n\r\ndata:\r\n\r\n"
          "datas: no\r\ndata: last\r\n\r\ndata: never\r\n\r\n",
          "data: one\r\rdata: two\rdata: lines\r\rdata\r\rdata: last\r\r"})
      BOOST_TEST(events_of(text, cut) == expected,
                 boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_event_has_a_limit) {
  const std::vector<std::string> expected{"x", "too large"};
  for (const std::size_t cut : cuts) {
    BOOST_TEST(events_of("data: x\n\ndata: " + std::string(95, 'y'), cut)
                 == expected,
               boost::test_tools::per_element());
    std::string lines = "data: x\n\n";
    for (int i = 0; i < 60; ++i)
      lines += "data: y\n";
    BOOST_TEST(events_of(lines, cut) == expected,
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(urls_are_read_and_written) {
  for (const auto& [text, expected] :
       std::vector<std::pair<std::string, std::string>>{
         {"http://a.org/v1", "http://a.org:80/v1"},
         {"http://a.org:8000/v1/", "http://a.org:8000/v1"},
         {"127.0.0.1:8000", "http://127.0.0.1:8000"},
         {"https://a.org/v1", "https://a.org:443/v1"},
         {"https://a.org:8443", "https://a.org:8443"},
         {"http://[::1]:8000/x/v1", "http://[::1]:8000/x/v1"}}) {
    const auto url = parse_http_url(text);
    BOOST_TEST_REQUIRE(bool(url), text);
    BOOST_TEST(url->text() == expected);
  }
  for (const auto& [text, why] :
       std::vector<std::pair<std::string, std::string>>{
         {"ftp://a.org", "no http"},
         {"http://", "no host"},
         {"http://a.org:0", "port"},
         {"http://a.org:99999", "port"},
         {"http://a.org:", "port"},
         {"http://[::1", "no ]"},
         {"http://[::1]8000", "port"},
         {"http://user@a.org", "user"},
         {"http://a.org/v1?x=1", "more than a path"},
         {"http://a.org/v1\r\nX: y", "controls"}}) {
    const auto url = parse_http_url(text);
    BOOST_TEST(!url, text);
    if (!url)
      BOOST_TEST(url.message().find(why) != std::string::npos, url.message());
  }
}

BOOST_AUTO_TEST_CASE(a_key_is_visible_ascii) {
  BOOST_TEST(http_client::is_key("sk-A1_b.c"));
  for (const char* text : {"", "a b", "a\r\nX: y", "\xc3\xa9"})
    BOOST_TEST(!http_client::is_key(text));
}

BOOST_AUTO_TEST_SUITE_END()
