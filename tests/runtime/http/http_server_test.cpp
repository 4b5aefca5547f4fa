// tests/runtime/http/http_server_test.cpp -- requests and answers over sockets.
#include "runtime/core/setup_error.hpp"
#include "tests/runtime/http/raw_client.hpp"

#include <boost/test/unit_test.hpp>

#include <thread>

namespace http_requests {

using namespace shoal::runtime;
using namespace shoal::test;
using namespace std::chrono_literals;

} // namespace http_requests

BOOST_FIXTURE_TEST_SUITE(http_requests, http_requests::http_fixture)

BOOST_AUTO_TEST_CASE(a_connection_takes_request_after_request) {
  start();
  auto client = connect();
  for (const std::string body : {"one", "", "three"}) {
    client.send(post("/now/" + body, body));
    const auto a = client.read();
    BOOST_TEST(a.status == 200u);
    BOOST_TEST(a.body == body);
    BOOST_TEST(a.header("x-path") == "/now/" + body);
    BOOST_TEST(a.header("server") == "shoal");
    BOOST_TEST(a.header("connection") == "keep-alive");
    BOOST_TEST(!a.header("date").empty());
  }
  const auto counts = server->counts();
  BOOST_TEST(counts.connections == 1u);
  BOOST_TEST(counts.requests == 3u);
  BOOST_TEST(counts.open == 1u);
}

BOOST_AUTO_TEST_CASE(requests_sent_ahead_are_answered_in_order) {
  start();
  auto client = connect();
  client.send(get("/first") + post("/now/second", "2") + get("/third")
              + get("/none") + get("/now/last", "Connection: close\r\n"));
  handler->next()->respond(200, {}, "1");
  BOOST_TEST(client.read().body == "1");
  BOOST_TEST(client.read().body == "2");
  handler->next()->respond(200, {}, "3");
  BOOST_TEST(client.read().body == "3");
  BOOST_TEST(client.read().status == 404u);
  const auto last = client.read();
  BOOST_TEST(last.header("x-path") == "/now/last");
  BOOST_TEST(last.header("connection") == "close");
  BOOST_TEST(client.read_to_end().empty());
}

BOOST_AUTO_TEST_CASE(a_request_may_come_byte_by_byte) {
  start();
  auto client = connect();
  for (const char c : post("/now", "hello"))
    client.send({&c, 1});
  BOOST_TEST(client.read().body == "hello");
  for (const char c :
       "POST /now HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked"
       "\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
         + std::string())
    client.send({&c, 1});
  BOOST_TEST(client.read().body == "abcde");
}

BOOST_AUTO_TEST_CASE(a_request_is_told_whole) {
  start();
  auto client = connect();
  client.send(post("/held/a%2Fb?q=1", "body", "X-A: b\r\n"));
  const auto e = handler->next();
  const http_request& r = e->request();
  BOOST_TEST(r.method == "POST");
  BOOST_TEST(r.path == "/held/a%2Fb");
  BOOST_TEST(r.query == "q=1");
  BOOST_TEST(*r.header("x-a") == "b");
  BOOST_TEST(r.body == "body");
  BOOST_TEST(r.client.starts_with("127.0.0.1:"));
  BOOST_TEST(r.key_name.empty());
  BOOST_TEST(server->counts().waiting == 1u);
  BOOST_TEST(e->respond_json("{}"));
  BOOST_TEST(!e->respond_json("{}"));
  const auto a = client.read();
  BOOST_TEST(a.body == "{}");
  BOOST_TEST(a.header("content-type") == "application/json");
  BOOST_TEST(server->counts().waiting == 0u);
}

BOOST_AUTO_TEST_CASE(old_clients_get_old_answers) {
  start();
  auto client = connect();
  client.send("GET /now HTTP/1.0\r\n\r\n");
  BOOST_TEST(client.read().header("connection") == "close");
  BOOST_TEST(client.read_to_end().empty());
  auto kept = connect();
  for (int twice = 0; twice < 2; ++twice) {
    kept.send("GET /now HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    BOOST_TEST(kept.read().header("connection") == "keep-alive");
  }
  // Without chunks, the end of the connection is that of the stream.
  kept.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto e = handler->next();
  e->begin_stream(200, {});
  e->write("ab");
  e->write("c");
  e->end();
  const auto a = kept.read();
  BOOST_TEST(a.header("transfer-encoding").empty());
  BOOST_TEST(a.header("connection") == "close");
  BOOST_TEST(a.body == "abc");
}

BOOST_AUTO_TEST_CASE(head_has_no_body) {
  start();
  auto client = connect();
  client.send("HEAD /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
  handler->next()->respond(200, {}, "12345");
  BOOST_TEST(client.read(true).header("content-length") == "5");
  client.send("HEAD /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto e = handler->next();
  e->begin_stream(200, {});
  e->write("");
  BOOST_TEST(client.read(true).status == 200u);
  e->write("x");
  e->end();
  client.send(get("/now", "X: y\r\n"));
  BOOST_TEST(client.read().header("x-path") == "/now");
}

BOOST_AUTO_TEST_CASE(a_client_may_wait_before_it_sends_a_body) {
  start();
  auto client = connect();
  const std::string head = "POST /now HTTP/1.1\r\nHost: localhost\r\n"
                           "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  client.send(head);
  BOOST_TEST(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ab");
  BOOST_TEST(client.read().body == "ab");
  // It did not wait: the answer is the same.
  client.send(head + "cd");
  BOOST_TEST(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  BOOST_TEST(client.read().body == "cd");
  // Refused without its body.
  client.send("POST /none HTTP/1.1\r\nHost: localhost\r\n"
              "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  const auto a = client.read();
  BOOST_TEST(a.status == 404u);
  BOOST_TEST(a.header("connection") == "close");
  BOOST_TEST(client.read_to_end().empty());
}

BOOST_AUTO_TEST_CASE(a_stream_comes_as_it_is_written) {
  start();
  auto client = connect();
  client.send(get("/stream"));
  const auto e = handler->next();
  std::thread writer([&] {
    BOOST_TEST(e->begin_stream(200, {{"Content-Type", "text/event-stream"}}));
    BOOST_TEST((e->write("data: 1\n\n") == http_write::ok));
  });
  writer.join();
  const auto head = client.read_head();
  BOOST_TEST(head.header("transfer-encoding") == "chunked");
  BOOST_TEST(head.header("content-type") == "text/event-stream");
  BOOST_TEST(client.read_until("\n\n\r\n") == "9\r\ndata: 1\n\n\r\n");
  BOOST_TEST(server->counts().streams == 1u);
  e->write("data: 2\n\n");
  BOOST_TEST(client.read_until("\n\n\r\n") == "9\r\ndata: 2\n\n\r\n");
  BOOST_TEST(e->end());
  BOOST_TEST((e->write("x") == http_write::gone));
  BOOST_TEST(client.read_until("\r\n\r\n") == "0\r\n\r\n");
  client.send(get("/now"));
  BOOST_TEST(client.read().status == 200u);
  BOOST_TEST(server->counts().streams == 0u);
}

BOOST_AUTO_TEST_CASE(an_exchange_that_is_dropped_is_answered) {
  start();
  auto client = connect();
  client.send(get("/a"));
  handler->next().reset();
  const auto a = client.read();
  BOOST_TEST(a.status == 500u);
  BOOST_TEST(a.body.find(R"("code":"internal_error")") != a.body.npos);
  client.send(get("/b"));
  auto e = handler->next();
  e->begin_stream(200, {});
  e->write("x");
  e.reset();
  BOOST_TEST(client.read_head().status == 200u);
  BOOST_TEST(client.read_to_end() == "1\r\nx\r\n"); // and no last chunk
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_told_as_json) {
  config.limits.head_bytes_max = 512;
  config.limits.body_bytes_max = 100;
  config.limits.bodies_bytes_max = 100;
  start();
  const auto ask = [&](const std::string& bytes) {
    auto client = connect();
    client.send(bytes);
    auto a = client.read();
    BOOST_TEST(a.header("content-type") == "application/json");
    BOOST_TEST(a.body.starts_with(R"({"error":{"message":")"), a.body);
    if (a.header("connection") == "close")
      BOOST_TEST(client.read_to_end().empty());
    return std::to_string(a.status) + " " + a.header("connection");
  };
  BOOST_TEST(ask(get("/none")) == "404 keep-alive");
  BOOST_TEST(ask(post("/none", "x")) == "404 close");
  BOOST_TEST(ask("nonsense\r\n\r\n") == "400 close");
  BOOST_TEST(ask("GET / HTTP/3.0\r\n\r\n") == "505 close");
  BOOST_TEST(ask("GET / HTTP/1.1\r\n\r\n") == "400 close");
  BOOST_TEST(ask(get("/" + std::string(600, 'x'))) == "431 close");
  BOOST_TEST(ask(get("/", "X: " + std::string(600, 'x') + "\r\n"))
             == "431 close");
  BOOST_TEST(ask(post("/now", std::string(101, 'x'))) == "413 close");
  BOOST_TEST(ask("POST /now HTTP/1.1\r\nHost: localhost\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n65\r\n")
             == "413 close");
  BOOST_TEST(ask("GET / HTTP/1.1\r\nHost: evil.org\r\n\r\n")
             == "403 keep-alive");
  BOOST_TEST(server->counts().refused == 10u);
  BOOST_TEST(server->counts().requests == 0u);
}

/// A client that is still sending must not lose the answer by a reset.
BOOST_AUTO_TEST_CASE(a_refusal_is_read_by_a_client_that_still_sends) {
  start();
  auto client = connect();
  const std::size_t bytes = 32 << 20;
  client.send("POST /now HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
              + std::to_string(bytes) + "\r\n\r\n");
  BOOST_TEST(client.send(std::string(bytes, 'x')));
  BOOST_TEST(client.read().status == 413u);
  BOOST_TEST(client.read_to_end().empty());
}

BOOST_AUTO_TEST_CASE(keys_are_asked_for_and_can_be_replaced) {
  const auto first = make_api_key("ann");
  const auto second = make_api_key("bob");
  const auto file = [](const std::string& lines) {
    return std::make_shared<const api_keys>(*api_keys::parse(lines, "keys"));
  };
  config.keys = file(first.line);
  std::string logged;
  config.log = [&](const std::string& line) { logged += line; };
  start();
  auto client = connect();
  const auto ask = [&](const std::string& key) {
    client.send("GET /held HTTP/1.1\r\nHost: my.org\r\nAuthorization: Bearer "
                + key + "\r\n\r\n");
    const auto a = client.read();
    if (a.status == 401)
      BOOST_TEST(a.header("www-authenticate") == "Bearer");
    return a.status;
  };
  client.send("GET /held HTTP/1.1\r\nHost: my.org\r\nAuthorization: Bearer "
              + first.key + "\r\n\r\n");
  {
    const auto e = handler->next();
    BOOST_TEST(e->request().key_name == "ann");
    BOOST_TEST(e->request().header("authorization") == nullptr);
    e->respond(200, {}, "");
  }
  BOOST_TEST(client.read().status == 200u);
  BOOST_TEST(ask(second.key) == 401u);
  server->use_keys(file(second.line));
  BOOST_TEST(ask(first.key) == 401u);
  BOOST_TEST(logged.find("sk-") == logged.npos);
}

BOOST_AUTO_TEST_CASE(a_key_has_its_limit_of_requests) {
  const auto ann = make_api_key("ann", {2, 0});
  const auto bob = make_api_key("bob");
  config.keys = std::make_shared<const api_keys>(
    *api_keys::parse(ann.line + bob.line, "keys"));
  config.open_paths = {"/now/open"};
  start();
  auto client = connect();
  const auto ask = [&](const std::string& line, const std::string& key) {
    client.send(line + " HTTP/1.1\r\nHost: my.org\r\nContent-Length: 0\r\n"
                + (key.empty() ? "" : "Authorization: Bearer " + key + "\r\n")
                + "\r\n");
    return client.read();
  };
  for (const char* const left : {"1", "0"}) {
    const auto a = ask("POST /now", ann.key);
    BOOST_TEST(a.status == 200u);
    BOOST_TEST(a.header("x-ratelimit-limit-requests") == "2");
    BOOST_TEST(a.header("x-ratelimit-remaining-requests") == left);
    BOOST_TEST(a.header("x-ratelimit-limit-tokens").empty());
  }
  const auto refused = ask("POST /now", ann.key);
  BOOST_TEST(refused.status == 429u);
  BOOST_TEST(refused.header("retry-after") == "30");
  BOOST_TEST(refused.header("x-ratelimit-reset-requests") == "1m0s");
  BOOST_TEST(refused.body.find(R"("type":"rate_limit_error")")
             != std::string::npos);
  BOOST_TEST(refused.body.find(ann.key) == std::string::npos);
  BOOST_TEST(refused.header("anthropic-ratelimit-requests-limit").empty());
  // Anthropic's form, where their clients ask.
  const auto theirs = ask("POST /v1/messages", ann.key);
  BOOST_TEST(theirs.body.starts_with(
    R"({"type":"error","error":{"type":"rate_limit_error")"));
  BOOST_TEST(theirs.header("anthropic-ratelimit-requests-limit") == "2");
  BOOST_TEST(theirs.header("anthropic-ratelimit-requests-remaining") == "0");
  const std::string reset = theirs.header("anthropic-ratelimit-requests-reset");
  BOOST_TEST(reset.size() == std::string("2026-11-27T08:30:00Z").size());
  BOOST_TEST(reset.ends_with("Z"));
  BOOST_TEST(theirs.header("anthropic-ratelimit-tokens-limit").empty());
  // Looking is free, and others are not concerned.
  const auto looked = ask("GET /now", ann.key);
  BOOST_TEST(looked.status == 200u);
  BOOST_TEST(looked.header("x-ratelimit-remaining-requests") == "0");
  const auto others = ask("POST /now", bob.key);
  BOOST_TEST(others.status == 200u);
  BOOST_TEST(others.header("x-ratelimit-limit-requests").empty());
  BOOST_TEST(ask("GET /now/open", "").status == 200u);
  // What a path does not take is not counted.
  clock->advance(30s);
  BOOST_TEST(ask("POST /none", ann.key).status == 404u);
  BOOST_TEST(ask("POST /now", ann.key).status == 200u);
  BOOST_TEST(ask("POST /now", ann.key).status == 429u);
}

BOOST_AUTO_TEST_CASE(browsers_may_ask_first) {
  config.cors_origins = {"https://a.org"};
  start();
  auto client = connect();
  client.send("OPTIONS /v1 HTTP/1.1\r\nHost: localhost\r\nOrigin: "
              "https://a.org\r\nAccess-Control-Request-Method: POST\r\n\r\n");
  auto a = client.read();
  BOOST_TEST(a.status == 204u);
  BOOST_TEST(a.header("access-control-allow-origin") == "https://a.org");
  client.send(get("/now", "Origin: https://a.org\r\n"));
  BOOST_TEST(client.read().header("access-control-allow-origin")
             == "https://a.org");
  client.send(get("/now"));
  BOOST_TEST(client.read().header("access-control-allow-origin").empty());
}

BOOST_AUTO_TEST_CASE(a_port_in_use_is_told_or_passed_over) {
  start();
  auto other = config;
  other.listen = server->endpoint();
  BOOST_CHECK_EXCEPTION(
    http_server(other, handler), setup_error, [&](const setup_error& e) {
      return std::string(e.what())
             == "cannot listen for HTTP on " + server->endpoint()
                  + ": the port is in use; choose another "
                    "one";
    });
  other.next_free_port = true;
  const http_server next(other, handler);
  BOOST_TEST(next.port() > server->port());
  BOOST_TEST(next.port() < server->port() + other.limits.port_tries);
  BOOST_TEST(next.endpoint() == "127.0.0.1:" + std::to_string(next.port()));
  auto third = other;
  third.limits.port_tries = 1;
  BOOST_CHECK_THROW(http_server(third, handler), setup_error);
}

BOOST_AUTO_TEST_CASE(other_machines_are_not_served_without_keys) {
  config.listen = "0.0.0.0:0";
  BOOST_CHECK_THROW(start(), usage_error);
  config.listen = "127.0.0.1";
  BOOST_CHECK_THROW(start(), usage_error);
  config.listen = "192.0.2.1:0"; // nobody's
  config.keys = std::make_shared<const api_keys>();
  BOOST_CHECK_THROW(start(), setup_error);
}

BOOST_AUTO_TEST_SUITE_END()
