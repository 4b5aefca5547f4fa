// tests/runtime/http/http_clients_test.cpp -- clients that leave, that are slow,
// or that are many, and the end of a server.
#include "tests/runtime/http/raw_client.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <thread>
#include <vector>

namespace http_clients {

using namespace shoal::runtime;
using namespace shoal::test;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

namespace {

/// Writes until the client is too slow. @returns the bytes written
std::size_t write_until(http_exchange& e, http_write state) {
  const std::string piece(1024, 'x');
  for (std::size_t bytes = 0;; bytes += piece.size())
    if (const auto now = e.write(piece); now == state)
      return bytes;
}

} // namespace

} // namespace http_clients

BOOST_FIXTURE_TEST_SUITE(http_clients, http_clients::http_fixture)

BOOST_DATA_TEST_CASE(a_client_that_leaves_is_reported_at_once,
                     data::make({0, 1, 2, 3, 4, 5}), how) {
  start();
  auto client = connect();
  client.send(get("/a"));
  const auto e = handler->next();
  const auto watcher = std::make_shared<notices>();
  e->watch(watcher);
  if (how >= 3) { // it only reads
    e->begin_stream(200, {});
    e->write(""); // the head alone
    BOOST_TEST(client.read_head().status == 200u);
  }
  switch (how % 3) {
  case 0:
    client.close();
    break;
  case 1:
    client.reset();
    break;
  case 2:
    client.half_close();
    break;
  }
  watcher->wait_closed();
  BOOST_TEST(!e->respond(200, {}, ""));
  BOOST_TEST((e->write("x") == http_write::gone));
  wait_for(&http_counts::gone, 1);
  BOOST_TEST(watcher->closes() == 1);
  BOOST_TEST(server->counts().waiting == 0u);
  BOOST_TEST(server->counts().streams == 0u);
  const auto late = std::make_shared<notices>();
  e->watch(late); // was told already
  BOOST_TEST(late->closes() == 0);
}

BOOST_AUTO_TEST_CASE(a_half_closed_client_gets_answers_that_are_ready) {
  start();
  auto client = connect();
  client.send(get("/now/1") + get("/now/2"));
  client.half_close();
  BOOST_TEST(client.read().header("x-path") == "/now/1");
  BOOST_TEST(client.read().header("x-path") == "/now/2");
  BOOST_TEST(client.read_to_end().empty());
  auto silent = connect();
  silent.half_close();
  BOOST_TEST(silent.read_to_end().empty());
  auto partial = connect();
  partial.send("GET /now HTTP/1.1\r\nHo");
  partial.half_close();
  BOOST_TEST(partial.read_to_end().empty());
}

/// The server reads ahead so far and no further, and still answers all.
BOOST_AUTO_TEST_CASE(what_is_sent_ahead_has_a_limit) {
  config.limits.read_ahead_max = 1000;
  start();
  auto client = connect();
  client.send(get("/held"));
  const auto e = handler->next();
  std::size_t sent = 0;
  std::string ahead = post("/now", std::string(4 << 20, 'x'));
  ahead += ahead + ahead + ahead + ahead;
  // Sooner or later nothing more goes through.
  while (const auto count =
           client.send_some(std::string_view(ahead).substr(sent))) {
    sent += count;
    if (sent == ahead.size())
      break;
  }
  BOOST_TEST(sent < ahead.size());
  std::thread rest([&] { client.send(std::string_view(ahead).substr(sent)); });
  e->respond(200, {}, "first");
  BOOST_TEST(client.read().body == "first");
  for (int i = 0; i < 5; ++i)
    BOOST_TEST(client.read().body.size() == std::size_t(4 << 20));
  rest.join();
}

BOOST_AUTO_TEST_CASE(a_reset_is_noticed_though_much_was_sent_ahead) {
  config.limits.read_ahead_max = 1000;
  start();
  auto client = connect();
  client.send(get("/held"));
  const auto e = handler->next();
  const auto watcher = std::make_shared<notices>();
  e->watch(watcher);
  client.send(std::string(5000, 'x'));
  client.reset();
  watcher->wait_closed();
  BOOST_TEST(!e->respond(200, {}, ""));
}

BOOST_AUTO_TEST_CASE(a_slow_client_pauses_its_stream) {
  start();
  auto client = connect();
  client.send(get("/stream"));
  const auto e = handler->next();
  const auto watcher = std::make_shared<notices>();
  e->watch(watcher);
  e->begin_stream(200, {});
  std::size_t bytes = write_until(*e, http_write::pause) + 1024;
  std::string got;
  std::thread reader([&] { got = client.read().body; });
  for (int i = 1; i <= 3; ++i) {
    watcher->wait_writable(i);
    bytes += write_until(*e, http_write::pause) + 1024;
  }
  e->end();
  reader.join();
  BOOST_TEST(got.size() == bytes);
  BOOST_TEST(watcher->closes() == 0);
}

BOOST_AUTO_TEST_CASE(a_client_that_takes_too_little_is_dropped) {
  std::string logged;
  config.log = [&](const std::string& line) { logged += line; };
  start();
  auto client = connect();
  client.small_window();
  client.send(get("/stream"));
  const auto e = handler->next();
  const auto watcher = std::make_shared<notices>();
  e->watch(watcher);
  e->begin_stream(200, {});
  write_until(*e, http_write::gone);
  watcher->wait_closed();
  wait_for(&http_counts::dropped, 1);
  server->stop(0ms);
  BOOST_TEST(logged.starts_with("[http] dropped the client 127.0.0.1:"));
}

/// Also while the system has taken a part and nothing more goes through.
BOOST_AUTO_TEST_CASE(a_client_that_takes_nothing_is_dropped_while_writing) {
  config.limits.drop_bytes = 25 << 20;
  start();
  auto client = connect();
  client.send(get("/stream"));
  const auto e = handler->next();
  const auto watcher = std::make_shared<notices>();
  e->watch(watcher);
  e->begin_stream(200, {});
  e->write(std::string(24 << 20, 'x')); // more than the system takes
  BOOST_TEST(client.read_head().status == 200u);
  BOOST_TEST((e->write("x") == http_write::pause)); // wakes the server in vain
  auto other = connect();
  other.send(get("/now"));
  BOOST_TEST(other.read().status == 200u);
  write_until(*e, http_write::gone);
  watcher->wait_closed();
  wait_for(&http_counts::dropped, 1);
}

BOOST_AUTO_TEST_CASE(a_client_that_takes_nothing_for_long_is_dropped) {
  start();
  auto client = connect();
  client.small_window();
  client.send(get("/whole"));
  const auto e = handler->next();
  e->respond(200, {}, std::string(24 << 20, 'x'));
  advance_until([&] { return server->counts().dropped == 1; },
                config.limits.stall_time);
  wait_for(&http_counts::open, 0);
}

BOOST_AUTO_TEST_CASE(a_request_that_does_not_come_in_time_is_refused) {
  start();
  for (const std::string& part :
       {std::string("G"), get("/now").substr(0, 20),
        post("/now", "body").substr(0, post("/now", "body").size() - 1)}) {
    auto client = connect();
    client.send(part);
    advance_until_readable(client, config.limits.request_time);
    const auto a = client.read();
    BOOST_TEST(a.status == 408u);
    BOOST_TEST(a.header("connection") == "close");
    BOOST_TEST(client.read_to_end().empty());
  }
}

BOOST_AUTO_TEST_CASE(an_idle_connection_is_closed) {
  start();
  auto fresh = connect();
  advance_until_readable(fresh, config.limits.idle_time);
  BOOST_TEST(fresh.read_to_end().empty());
  auto used = connect();
  used.send(get("/now"));
  BOOST_TEST(used.read().status == 200u);
  advance_until_readable(used, config.limits.idle_time);
  BOOST_TEST(used.read_to_end().empty());
}

/// No limit of time holds for the handler, and none is over before its time.
BOOST_AUTO_TEST_CASE(a_handler_may_take_its_time) {
  start();
  auto client = connect();
  client.send(get("/now") + get("/held"));
  BOOST_TEST(client.read().status == 200u);
  const auto e = handler->next();
  for (int i = 0; i < 100; ++i)
    advance(3600s);
  e->begin_stream(200, {});
  e->write("");
  BOOST_TEST(client.read_head().status == 200u);
  // After another answer, the server knows that this client has taken its own.
  auto other = connect();
  other.send(get("/now"));
  BOOST_TEST(other.read().status == 200u);
  for (int i = 0; i < 100; ++i)
    advance(3600s);
  e->write("x");
  e->end();
  BOOST_TEST(client.read_until("0\r\n\r\n") == "1\r\nx\r\n0\r\n\r\n");
  client.send(get("/now").substr(0, 9));
  advance(config.limits.request_time - 1s);
  client.send(get("/now").substr(9));
  BOOST_TEST(client.read().status == 200u);
}

BOOST_AUTO_TEST_CASE(a_refused_client_is_not_waited_for_long) {
  start();
  auto client = connect();
  client.send("nonsense\r\n\r\n");
  BOOST_TEST(client.read().status == 400u);
  BOOST_TEST(client.read_to_end().empty());
  advance_until([&] { return server->counts().open == 0; },
                config.limits.linger_time);
}

BOOST_AUTO_TEST_CASE(many_clients_are_served_at_once) {
  start();
  std::vector<std::unique_ptr<raw_client>> clients;
  for (std::size_t i = 0; i < 300; ++i) {
    clients.push_back(std::make_unique<raw_client>(server->port()));
    clients.back()->send(get("/held/" + std::to_string(i)));
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const auto e = handler->next();
    e->respond(200, {}, e->request().path);
  }
  for (std::size_t i = 0; i < clients.size(); ++i)
    BOOST_TEST(clients[i]->read().body == "/held/" + std::to_string(i));
}

BOOST_AUTO_TEST_CASE(one_connection_too_many_is_told) {
  config.limits.connections_max = 3;
  config.limits.refused_max = 2;
  start();
  std::vector<std::unique_ptr<raw_client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<raw_client>(server->port()));
    clients.back()->send(get("/now"));
    BOOST_TEST(clients.back()->read().status == 200u);
  }
  auto fourth = connect();
  const auto a = fourth.read();
  BOOST_TEST(a.status == 503u);
  BOOST_TEST(a.header("retry-after") == "1");
  BOOST_TEST(a.header("connection") == "close");
  auto fifth = connect();
  BOOST_TEST(fifth.read().status == 503u);
  auto sixth = connect(); // beyond refused_max: no word
  BOOST_TEST(sixth.read_to_end().empty());
  clients[1]->send(get("/now")); // the others do not notice
  BOOST_TEST(clients[1]->read().status == 200u);
  clients.clear();
  fourth.close();
  fifth.close();
  wait_for(&http_counts::open, 0);
  auto again = connect();
  again.send(get("/now"));
  BOOST_TEST(again.read().status == 200u);
}

BOOST_AUTO_TEST_CASE(too_many_requests_and_streams_are_told_to_come_again) {
  config.limits.requests_max = 1;
  config.limits.streams_max = 1;
  config.limits.retry_after = 7s;
  start();
  auto first = connect();
  auto second = connect();
  first.send(post("/a", "a"));
  const auto a = handler->next();
  second.send(post("/b", "b"));
  auto refused = second.read();
  BOOST_TEST(refused.status == 429u);
  BOOST_TEST(refused.header("retry-after") == "7");
  BOOST_TEST(refused.header("connection") == "keep-alive");
  second.send(get("/now")); // a balancer's look, which takes no work
  BOOST_TEST(second.read().status == 200u);
  BOOST_TEST(refused.body.find("rate_limit_exceeded") != refused.body.npos);
  BOOST_TEST(a->begin_stream(200, {}));
  second.send(get("/b"));
  BOOST_TEST(!handler->next()->begin_stream(200, {}));
  refused = second.read();
  BOOST_TEST(refused.status == 429u);
  BOOST_TEST(refused.header("retry-after") == "7");
  a->end();
  BOOST_TEST(first.read().whole);
  wait_for(&http_counts::streams, 0);
  second.send(get("/b"));
  const auto b = handler->next();
  BOOST_TEST(b->begin_stream(200, {}));
}

BOOST_AUTO_TEST_CASE(bodies_have_a_limit_in_all) {
  config.limits.body_bytes_max = 1000;
  config.limits.bodies_bytes_max = 1500;
  start();
  auto first = connect();
  auto second = connect();
  first.send(post("/a", std::string(1000, 'x')));
  auto e = handler->next();
  second.send(post("/now", std::string(501, 'x')));
  BOOST_TEST(second.read().status == 503u);
  auto third = connect();
  third.send(post("/now", std::string(500, 'x')));
  BOOST_TEST(third.read().status == 200u);
  e->respond(200, {}, "");
  BOOST_TEST(first.read().status == 200u);
  e.reset(); // the body goes with its exchange
  third.send(post("/now", std::string(1000, 'x')));
  BOOST_TEST(third.read().status == 200u);
}

BOOST_AUTO_TEST_CASE(a_server_that_stops_cuts_streams_off) {
  start();
  auto client = connect();
  auto idle = connect();
  client.send(get("/stream"));
  const auto e = handler->next();
  const auto watcher = std::make_shared<notices>();
  e->watch(watcher);
  e->begin_stream(200, {});
  e->write("x");
  BOOST_TEST(client.read_head().status == 200u);
  server->stop(0ms);
  BOOST_TEST(watcher->closes() == 1);
  BOOST_TEST((e->write("y") == http_write::gone));
  BOOST_TEST(!e->end());
  BOOST_TEST(client.read_to_end().find("0\r\n\r\n") == std::string::npos);
  BOOST_TEST(idle.read_to_end().empty());
  BOOST_CHECK_THROW(connect(), std::runtime_error);
  server.reset(); // the exchange outlives it
  BOOST_TEST(!e->respond(200, {}, ""));
}

BOOST_AUTO_TEST_CASE(a_server_that_drains_completes_what_it_has) {
  start();
  auto streaming = connect();
  auto waiting = connect();
  auto idle = connect();
  streaming.send(get("/stream") + get("/now"));
  const auto stream = handler->next();
  stream->begin_stream(200, {});
  waiting.send(get("/waiting"));
  const auto e = handler->next();
  server->drain();
  BOOST_TEST(idle.read_to_end().empty());
  BOOST_CHECK_THROW(connect(), std::runtime_error);
  std::thread stopping([&] { server->stop(1h); });
  stream->write("x");
  stream->end();
  BOOST_TEST(streaming.read().whole);
  BOOST_TEST(streaming.read_to_end().empty()); // nothing new begins
  streaming.close();
  e->respond(200, {}, "y");
  const auto a = waiting.read();
  BOOST_TEST(a.body == "y");
  BOOST_TEST(a.header("connection") == "close");
  waiting.close();
  stopping.join();
  BOOST_TEST(server->counts().open == 0u);
}

/// Every pair of calls from other threads is safe; run under the race checker.
BOOST_AUTO_TEST_CASE(threads_may_answer_while_clients_leave) {
  start();
  std::atomic<bool> over{false};
  std::thread answers([&] {
    while (!over) {
      const auto e = handler->next();
      if (e->request().path == "/end")
        return;
      const auto watcher = std::make_shared<notices>();
      e->watch(watcher);
      e->begin_stream(200, {});
      for (int i = 0; i < 20; ++i)
        e->write("some bytes");
      e->end();
    }
  });
  for (int i = 0; i < 200; ++i) {
    auto client = connect();
    client.send(get("/stream"));
    if (i % 3 == 0)
      client.reset();
    else if (i % 3 == 1)
      BOOST_TEST(client.read().body.size() == 200u);
  }
  auto last = connect();
  last.send(get("/end"));
  answers.join();
  server->stop(0ms);
  BOOST_TEST(server->counts().open == 0u);
  BOOST_TEST(server->counts().streams == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
