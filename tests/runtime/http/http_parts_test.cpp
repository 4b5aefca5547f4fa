// tests/runtime/http/http_parts_test.cpp -- addresses, routes, the gate, texts
// of answers and times that are due.
#include "runtime/core/ids.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/http/deadlines.hpp"
#include "runtime/http/http_routes.hpp"
#include "runtime/http/listen_address.hpp"
#include "runtime/http/request_gate.hpp"
#include "runtime/http/response_text.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(http_parts)

using namespace shoal::runtime;
using namespace std::chrono_literals;

namespace {

http_request request(std::string method, std::string path,
                     std::vector<http_header> headers = {}) {
  http_request r;
  r.method = std::move(method);
  r.target = r.path = std::move(path);
  r.headers = std::move(headers);
  return r;
}

std::string
value_of(const std::vector<http_header>& headers, const std::string& name) {
  std::string all;
  for (const auto& h : headers)
    if (h.name == name)
      all += (all.empty() ? "" : "; ") + h.value;
  return all;
}

http_routes routes() {
  http_routes r;
  const auto none = [](const std::shared_ptr<http_exchange>&) {};
  r.add("GET", "/v1/models", none);
  r.add("GET", "/v1/models/*", none);
  r.add("DELETE", "/v1/models/*", none);
  r.add("POST", "/v1/models/exact", none);
  r.add("POST", "/v1/completions", none, "application/json");
  r.add("GET", "/v1/*", none);
  return r;
}

unsigned status(const std::optional<shoal::openai::api_error>& error) {
  return error ? error->status : 200;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_address_to_listen_on_is_numeric) {
  const auto shown = [](const std::string& text) {
    const auto a = parse_listen(text);
    return to_text(a.ip, a.port);
  };
  BOOST_TEST(shown("127.0.0.1:8080") == "127.0.0.1:8080");
  BOOST_TEST(shown("Localhost:0") == "127.0.0.1:0");
  BOOST_TEST(shown("[::1]:65535") == "[::1]:65535");
  BOOST_TEST(shown("0.0.0.0:1") == "0.0.0.0:1");
  for (const char* wrong :
       {"", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
        "127.0.0.1:-1", "127.0.0.1:80x", "::1:8080", "[::1]", "[::1]8080",
        "[::1", "example.org:80", "127.1:80"})
    BOOST_CHECK_THROW((void)parse_listen(wrong), usage_error);
}

BOOST_AUTO_TEST_CASE(other_machines_need_keys) {
  const auto exposed = [](const std::string& text) {
    try {
      check_exposure(parse_listen(text), text, false);
      return false;
    } catch (const usage_error&) {
      return true;
    }
  };
  BOOST_TEST(!exposed("127.0.0.1:1"));
  BOOST_TEST(!exposed("127.9.9.9:1"));
  BOOST_TEST(!exposed("[::1]:1"));
  BOOST_TEST(!exposed("[::ffff:127.0.0.1]:1"));
  BOOST_TEST(exposed("0.0.0.0:1"));
  BOOST_TEST(exposed("[::]:1"));
  BOOST_TEST(exposed("10.0.0.1:1"));
  check_exposure(parse_listen("0.0.0.0:1"), "0.0.0.0:1", true);
}

BOOST_AUTO_TEST_CASE(a_host_is_this_machine_or_not) {
  for (const char* here :
       {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:1",
        "127.255.0.1:99", "[::1]", "[::1]:8080", "localhost:65535"})
    BOOST_TEST(is_loopback_host(here), here);
  for (const char* there :
       {"", "evil.org", "evil.org:8080", "localhost.evil.org", "127.0.0.1.org",
        "10.0.0.1", "0.0.0.0", "[::]", "::1", "localhost:x", "localhost:99999",
        "localhost:", "127.0.0.1:8080:1", "[::1", "locaLhosta", "2130706433"})
    BOOST_TEST(!is_loopback_host(there), there);
}

BOOST_AUTO_TEST_CASE(a_path_has_its_methods) {
  auto r = routes();
  BOOST_TEST(status(r.check(request("GET", "/v1/models"))) == 200u);
  BOOST_TEST(status(r.check(request("HEAD", "/v1/models"))) == 200u);
  BOOST_TEST(status(r.check(request("GET", "/v1/models/a/b"))) == 200u);
  BOOST_TEST(status(r.check(request("GET", "/v1/models/"))) == 200u); // /v1/*
  BOOST_TEST(status(r.check(request("DELETE", "/v1/models/"))) == 405u);
  BOOST_TEST(status(r.check(request("POST", "/v1/models/exact"))) == 200u);
  BOOST_TEST(status(r.check(request("GET", "/v1/models/exact"))) == 405u);
  for (const char* none : {"/", "", "/v1", "/v1/", "/V1/models", "*"})
    BOOST_TEST(status(r.check(request("GET", none))) == 404u, none);
  const auto wrong = r.check(request("PUT", "/v1/models/a"));
  BOOST_TEST(status(wrong) == 405u);
  BOOST_TEST(wrong->message
             == "the path \"/v1/models/a\" takes GET, HEAD, DELETE, not "
                "\"PUT\"");
  BOOST_TEST(r.allowed_methods(request("PUT", "/v1/models/exact")) == "POST");
}

BOOST_AUTO_TEST_CASE(a_part_of_a_path_may_be_any) {
  http_routes r;
  const auto none = [](const std::shared_ptr<http_exchange>&) {};
  r.add("GET", "/jobs/{job}", none);
  r.add("GET", "/jobs/{job}/events", none);
  r.add("POST", "/jobs/{job}/end", none);
  r.add("GET", "/jobs/exact", none);
  r.add("GET", "/jobs/exact/*", none);
  const auto methods = [&](const std::string& path) {
    return r.allowed_methods(request("GET", path));
  };
  BOOST_TEST(methods("/jobs/a%2Fb") == "GET, HEAD");
  BOOST_TEST(methods("/jobs/a/events") == "GET, HEAD");
  BOOST_TEST(methods("/jobs/a/end") == "POST");
  BOOST_TEST(methods("/jobs/exact/end") == "POST"); // before those with a star
  BOOST_TEST(methods("/jobs/exact/other") == "GET, HEAD");
  for (const char* nothing :
       {"/jobs", "/jobs/", "/jobs//end", "/jobs/a/", "/jobs/a/other",
        "/jobs/a/end/", "/jobs/a/b/end", "/other/a/end"})
    BOOST_TEST(methods(nothing) == "", nothing);
}

BOOST_AUTO_TEST_CASE(a_body_has_its_type) {
  auto r = routes();
  const auto with = [&](const char* type) {
    return status(
      r.check(request("POST", "/v1/completions", {{"content-type", type}})));
  };
  BOOST_TEST(with("application/json") == 200u);
  BOOST_TEST(with("Application/JSON ; charset=utf-8") == 200u);
  BOOST_TEST(with("text/plain") == 415u);
  BOOST_TEST(with("application/jsonx") == 415u);
  BOOST_TEST(with("") == 415u);
  const auto none = r.check(request("POST", "/v1/completions"));
  BOOST_TEST(none->message
             == "the Content-Type is missing, must be application/json");
}

BOOST_AUTO_TEST_CASE(the_gate_asks_for_host_then_key_then_path) {
  auto r = routes();
  http_config config;
  const request_gate open(config, true);
  auto good = request("GET", "/v1/models", {{"host", "localhost:1"}});
  BOOST_TEST(!open.check(good, r).refused);
  auto rebound = request("GET", "/v1/models", {{"host", "evil.org"}});
  BOOST_TEST(status(open.check(rebound, r).refused) == 403u);
  // A key that nobody asked for is removed, too.
  auto told = request("GET", "/v1/models",
                      {{"host", "localhost"}, {"authorization", "Bearer x"}});
  BOOST_TEST(!open.check(told, r).refused);
  BOOST_TEST(told.header("authorization") == nullptr);

  const auto key = make_api_key("ann");
  config.keys =
    std::make_shared<const api_keys>(*api_keys::parse(key.line, "keys"));
  config.open_paths = {"/v1/models"};
  const request_gate closed(config, true);
  const auto with = [&](const std::string& path, const std::string& value) {
    auto q =
      request("GET", path, {{"host", "any.org"}, {"authorization", value}});
    const auto verdict = closed.check(q, r);
    BOOST_TEST(q.header("authorization") == nullptr);
    if (status(verdict.refused) == 401) {
      BOOST_TEST(value_of(verdict.headers, "WWW-Authenticate") == "Bearer");
      const bool unknown = verdict.refused->message.find("does not know")
                           != std::string::npos;
      BOOST_TEST(unknown == value.starts_with("Bearer s"), value);
    }
    return std::to_string(status(verdict.refused)) + q.key_name;
  };
  BOOST_TEST(with("/v1/x", "Bearer " + key.key) == "200ann");
  BOOST_TEST(with("/v1/x", "bearer  " + key.key) == "200ann");
  BOOST_TEST(with("/v1/x", key.key) == "401");
  BOOST_TEST(with("/v1/x", "Basic " + key.key) == "401");
  BOOST_TEST(with("/v1/x", "Bearer " + key.key + "x") == "401");
  BOOST_TEST(with("/v1/x", "Bearer ") == "401");
  BOOST_TEST(with("/none", "") == "401"); // paths are not told to strangers
  BOOST_TEST(with("/v1/models", "") == "200");
  BOOST_TEST(with("/v1/models", "Bearer " + key.key) == "200ann");
  // By the header of Anthropic's clients; that one is removed, too.
  const auto by_other = [&](const std::string& value,
                            const std::string& bearer) {
    auto q = request(
      "GET", "/v1/x",
      {{"host", "any.org"}, {"x-api-key", value}, {"authorization", bearer}});
    const auto verdict = closed.check(q, r);
    BOOST_TEST(q.headers.size() == 1u);
    return std::to_string(status(verdict.refused)) + q.key_name;
  };
  BOOST_TEST(by_other(key.key, "") == "200ann");
  BOOST_TEST(by_other(key.key, "Bearer none") == "200ann");
  BOOST_TEST(by_other("none", "Bearer " + key.key) == "200ann");
  BOOST_TEST(by_other("none", "Bearer none") == "401");
}

BOOST_AUTO_TEST_CASE(errors_are_worded_by_the_api_of_their_path) {
  const auto error = shoal::openai::invalid_request("no");
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens"})
    BOOST_TEST(error_body(path, error).starts_with("{\"type\":\"error\""));
  for (const char* path : {"/v1/messages2", "/v1/chat/completions", ""})
    BOOST_TEST(error_body(path, error).starts_with("{\"error\":"));
}

BOOST_AUTO_TEST_CASE(compressed_bodies_are_refused) {
  auto r = routes();
  const request_gate gate(http_config{}, true);
  const auto with = [&](const char* coding) {
    auto q = request(
      "POST", "/v1/completions",
      {{"content-type", "application/json"}, {"content-encoding", coding}});
    return status(gate.check(q, r).refused);
  };
  BOOST_TEST(with("gzip") == 415u);
  BOOST_TEST(with("identity") == 200u);
}

BOOST_AUTO_TEST_CASE(pages_of_other_origins_are_told_if_allowed) {
  auto r = routes();
  http_config config;
  std::string names = "idempotency-key, x-stainless-lang";
  const auto ask = [&](const std::string& method, const std::string& origin) {
    auto q = request(method, "/v1/completions",
                     {{"host", "localhost"},
                      {"content-type", "application/json"},
                      {"origin", origin},
                      {"access-control-request-headers", names},
                      {"access-control-request-method", "POST"}});
    return request_gate(config, true).check(q, r);
  };
  auto v = ask("OPTIONS", "https://a.org"); // off
  BOOST_TEST(!v.preflight);
  BOOST_TEST(status(v.refused) == 405u);
  BOOST_TEST(value_of(v.headers, "Allow") == "POST");
  BOOST_TEST(value_of(v.headers, "Access-Control-Allow-Origin").empty());

  config.cors_origins = {"https://a.org", "https://b.org"};
  v = ask("OPTIONS", "https://b.org");
  BOOST_TEST(v.preflight);
  BOOST_TEST(value_of(v.headers, "Access-Control-Allow-Origin")
             == "https://b.org");
  BOOST_TEST(value_of(v.headers, "Access-Control-Allow-Methods") == "POST");
  BOOST_TEST(value_of(v.headers, "Access-Control-Allow-Headers") == names);
  for (const std::string& wrong :
       {std::string("a: b"), std::string("a\x01"), std::string(2049, 'a')}) {
    names = wrong;
    BOOST_TEST(value_of(ask("OPTIONS", "https://b.org").headers,
                        "Access-Control-Allow-Headers")
                 .empty());
  }
  BOOST_TEST(value_of(v.headers, "Vary") == "Origin");
  v = ask("POST", "https://a.org");
  BOOST_TEST(!v.refused);
  BOOST_TEST(value_of(v.headers, "Access-Control-Allow-Origin")
             == "https://a.org");
  v = ask("OPTIONS", "https://a.org.evil.org");
  BOOST_TEST(!v.preflight);
  BOOST_TEST(value_of(v.headers, "Access-Control-Allow-Origin").empty());
  config.cors_origins = {"*"};
  v = ask("OPTIONS", "https://any.org");
  BOOST_TEST(value_of(v.headers, "Access-Control-Allow-Origin") == "*");
}

BOOST_AUTO_TEST_CASE(only_own_pages_change_what_is_reserved_to_them) {
  http_routes r;
  for (const char* path : {"/shoal/jobs", "/other"}) {
    r.add(
      "POST", path, [](auto) {}, "application/json");
    r.add("GET", path, [](auto) {});
  }
  http_config config;
  config.own_pages_only = {"/shoal/"};
  const auto code = [&](const char* method, const char* path,
                        const std::string& origin) {
    auto q = request(method, path,
                     {{"host", "localhost:80"},
                      {"content-type", "application/json"},
                      {"origin", origin}});
    const auto v = request_gate(config, true).check(q, r);
    return v.refused ? v.refused->code : "";
  };
  BOOST_TEST(code("POST", "/shoal/jobs", "http://localhost:80") == "");
  BOOST_TEST(code("POST", "/shoal/jobs", "http://LOCALHOST:80") == "");
  for (const char* origin : {"http://localhost", "http://localhost:8", "null",
                             "", "localhost:80", "http://localhost:80/"})
    BOOST_TEST(code("POST", "/shoal/jobs", origin) == "origin_not_allowed");
  BOOST_TEST(code("GET", "/shoal/jobs", "http://a.org") == "");
  BOOST_TEST(code("POST", "/other", "http://a.org") == "");
  config.cors_origins = {"http://a.org"};
  BOOST_TEST(code("POST", "/shoal/jobs", "http://a.org") == "");
  BOOST_TEST(code("POST", "/shoal/jobs", "http://b.org")
             == "origin_not_allowed");
}

BOOST_AUTO_TEST_CASE(an_answer_is_a_head_and_a_body) {
  response_head head;
  head.headers = {{"A", "b"}};
  head.length = 5;
  BOOST_TEST(head_text(head, 784111777)
             == "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                "Server: shoal\r\nA: b\r\nContent-Length: 5\r\n"
                "Connection: keep-alive\r\n\r\n");
  head = {};
  head.status = 299;
  head.chunks = true;
  head.close = true;
  BOOST_TEST(head_text(head, 0)
             == "HTTP/1.1 299 \r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
                "Server: shoal\r\nTransfer-Encoding: chunked\r\n"
                "Connection: close\r\n\r\n");
  head = {};
  head.status = 204;
  head.length = 0;
  BOOST_TEST(head_text(head, 0).find("Content-Length") == std::string::npos);
  BOOST_TEST(chunk_text(std::string(26, 'x'))
             == "1a\r\n" + std::string(26, 'x') + "\r\n");
}

BOOST_AUTO_TEST_CASE(paths_are_decoded) {
  BOOST_TEST(percent_decoded("a%2Fb+%c3%A9").value() == "a/b+\xc3\xa9");
  BOOST_TEST(percent_decoded("").value().empty());
  for (const char* wrong : {"%", "%1", "a%g1", "%%20"})
    BOOST_TEST(!percent_decoded(wrong), wrong);
}

BOOST_AUTO_TEST_CASE(what_is_due_comes_in_order) {
  deadlines<int> due;
  const deadlines<int>::time_point zero{};
  int a = 0;
  int b = 0;
  BOOST_TEST(!due.next());
  due.set(&a, zero + 5s);
  due.set(&b, zero + 3s);
  due.set(&a, zero + 2s);
  BOOST_TEST((due.next() == zero + 2s));
  BOOST_TEST(due.take_due(zero + 1s) == nullptr);
  BOOST_TEST(due.take_due(zero + 9s) == &a);
  due.remove(&b);
  due.remove(&b);
  BOOST_TEST(due.take_due(zero + 9s) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
