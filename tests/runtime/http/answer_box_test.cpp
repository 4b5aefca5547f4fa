// tests/runtime/http/answer_box_test.cpp -- answers between threads, on one.
#include "runtime/http/answer_box.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace answers {

using namespace shoal::runtime;

namespace {

struct notices final : http_watcher {
  int closes = 0;
  int writables = 0;
  void closed() override { ++closes; }
  void writable() override { ++writables; }
};

struct fixture {
  std::shared_ptr<open_answers> open = std::make_shared<open_answers>();
  int woken = 0;
  std::shared_ptr<notices> watcher = std::make_shared<notices>();

  std::unique_ptr<answer_box> make(bool watched = true) {
    auto box = std::make_unique<answer_box>(answer_limits{2, 10, 100, 3}, open,
                                            [this] { ++woken; });
    if (watched)
      box->watch(watcher);
    return box;
  }
};

} // namespace

} // namespace answers

BOOST_FIXTURE_TEST_SUITE(answers, answers::fixture)

BOOST_AUTO_TEST_CASE(a_whole_answer_is_taken_at_once) {
  const auto box = make();
  BOOST_TEST(open->waiting == 1u);
  BOOST_TEST(box->take().empty());
  BOOST_TEST(box->respond(404, {{"A", "b"}}, "text"));
  BOOST_TEST(woken == 1);
  BOOST_TEST(open->waiting == 0u);
  BOOST_TEST(box->complete());
  const auto t = box->take();
  BOOST_TEST_REQUIRE(bool(t.head));
  BOOST_TEST(t.head->status == 404u);
  BOOST_TEST(t.head->whole);
  BOOST_TEST(t.head->headers.at(0).value == "b");
  BOOST_TEST(t.bytes == "text");
  BOOST_TEST(t.complete);
  BOOST_TEST(box->take().empty());
}

BOOST_AUTO_TEST_CASE(an_answer_is_given_once) {
  const auto box = make();
  BOOST_TEST((box->write("x") == http_write::gone)); // none has begun
  BOOST_TEST(!box->end());
  BOOST_TEST(box->respond(200, {}, ""));
  BOOST_TEST(!box->respond(200, {}, ""));
  BOOST_TEST(!box->begin_stream(200, {}));
  BOOST_TEST((box->write("x") == http_write::gone));
  BOOST_TEST(!box->end());
  box->close();
  BOOST_TEST(watcher->closes == 0); // it was complete
}

BOOST_AUTO_TEST_CASE(many_writes_wake_the_server_once) {
  const auto box = make();
  BOOST_TEST(box->begin_stream(200, {}));
  BOOST_TEST((box->write("ab") == http_write::ok));
  BOOST_TEST((box->write("cd") == http_write::ok));
  BOOST_TEST(woken == 1);
  auto t = box->take();
  BOOST_TEST(bool(t.head));
  BOOST_TEST(!t.head->whole);
  BOOST_TEST(t.bytes == "abcd");
  BOOST_TEST(!t.complete);
  BOOST_TEST((box->write("e") == http_write::ok));
  BOOST_TEST(box->end());
  BOOST_TEST(woken == 2);
  t = box->take();
  BOOST_TEST(!t.head);
  BOOST_TEST(t.bytes == "e");
  BOOST_TEST(t.complete);
}

BOOST_AUTO_TEST_CASE(a_stream_that_has_sent_nothing_may_be_refused) {
  const auto refused = make();
  BOOST_TEST(refused->begin_stream(200, {}));
  BOOST_TEST(open->waiting == 0u);
  BOOST_TEST(open->streams == 1u);
  BOOST_TEST(woken == 0);
  BOOST_TEST(refused->respond(503, {}, "no"));
  BOOST_TEST(open->streams == 0u);
  BOOST_TEST((refused->write("x") == http_write::gone));
  auto t = refused->take();
  BOOST_TEST(t.head->status == 503u);
  BOOST_TEST(t.head->whole);
  BOOST_TEST(t.bytes == "no");
  const auto given_up = make();
  given_up->begin_stream(200, {});
  given_up->abandon();
  BOOST_TEST(given_up->take().head->status == 500u);
  const auto empty = make();
  empty->begin_stream(200, {});
  BOOST_TEST(empty->end());
  BOOST_TEST(empty->take().head->status == 200u);
  woken = 0;
  const auto begun = make();
  begun->begin_stream(200, {});
  BOOST_TEST((begun->write("") == http_write::ok)); // the head alone
  BOOST_TEST(woken == 1);
  BOOST_TEST(!begun->respond(503, {}, "no"));
  t = begun->take();
  BOOST_TEST(t.head->status == 200u);
  BOOST_TEST(!t.head->whole);
  BOOST_TEST(t.bytes == "");
}

BOOST_AUTO_TEST_CASE(a_slow_client_pauses_the_handler) {
  const auto box = make();
  box->begin_stream(200, {});
  BOOST_TEST((box->write("123456789") == http_write::ok));
  BOOST_TEST((box->write("0") == http_write::pause));
  BOOST_TEST((box->write("1") == http_write::pause));
  BOOST_TEST(box->take().bytes.size() == 11u);
  box->sent(5);
  BOOST_TEST(watcher->writables == 0); // 6 of at most 5 wait
  BOOST_TEST((box->write("") == http_write::pause));
  box->sent(1);
  BOOST_TEST(watcher->writables == 1);
  box->sent(5);
  BOOST_TEST(watcher->writables == 1);
  BOOST_TEST((box->write("x") == http_write::ok));
}

BOOST_AUTO_TEST_CASE(a_client_that_takes_nothing_is_dropped) {
  const auto box = make();
  box->begin_stream(200, {});
  BOOST_TEST((box->write(std::string(60, 'x')) == http_write::pause));
  BOOST_TEST(box->take().bytes.size() == 60u);
  BOOST_TEST((box->write(std::string(40, 'x')) == http_write::pause));
  BOOST_TEST(!box->take().slow);
  BOOST_TEST((box->write("x") == http_write::gone));
  BOOST_TEST(box->take().slow);
  box->close();
  BOOST_TEST(watcher->closes == 1);
}

BOOST_AUTO_TEST_CASE(the_owner_is_told_once_that_the_client_is_gone) {
  const auto box = make();
  box->close();
  box->close();
  BOOST_TEST(watcher->closes == 1);
  BOOST_TEST(open->waiting == 0u);
  BOOST_TEST(!box->respond(200, {}, "x"));
  BOOST_TEST((box->write("x") == http_write::gone));
  BOOST_TEST(woken == 0);
  BOOST_TEST(box->take().empty());
  const auto late = make(false);
  late->close();
  late->watch(watcher);
  BOOST_TEST(watcher->closes == 2);
  late->watch(watcher);
  BOOST_TEST(watcher->closes == 2);
}

BOOST_AUTO_TEST_CASE(an_owner_that_is_gone_is_not_told) {
  const auto box = make();
  watcher.reset();
  box->close();
  BOOST_TEST(!box->complete());
}

BOOST_AUTO_TEST_CASE(streams_have_a_limit) {
  const auto first = make();
  auto second = make();
  const auto third = make();
  BOOST_TEST(first->begin_stream(200, {}));
  BOOST_TEST(second->begin_stream(200, {}));
  BOOST_TEST(!third->has_refused_stream());
  BOOST_TEST(!third->begin_stream(200, {}));
  BOOST_TEST(third->has_refused_stream());
  BOOST_TEST(!third->begin_stream(200, {}));
  BOOST_TEST(!second->has_refused_stream());
  const auto t = third->take();
  BOOST_TEST_REQUIRE(bool(t.head));
  BOOST_TEST(t.head->status == 429u);
  BOOST_TEST(t.head->headers.at(1).name == "Retry-After");
  BOOST_TEST(t.head->headers.at(1).value == "3");
  BOOST_TEST(t.complete);
  BOOST_TEST((third->write("x") == http_write::gone));
  BOOST_TEST(open->streams == 2u);
  second.reset();
  BOOST_TEST(open->streams == 1u);
  BOOST_TEST(make()->begin_stream(200, {}));
  BOOST_TEST(open->streams == 1u); // it went away with its box
}

BOOST_AUTO_TEST_CASE(a_dropped_exchange_is_answered_or_cut) {
  const auto first = make();
  first->abandon();
  BOOST_TEST(first->take().head->status == 500u);
  const auto second = make();
  second->begin_stream(200, {});
  second->write("x");
  second->abandon();
  BOOST_TEST(second->take().cut);
  const auto third = make();
  third->respond(200, {}, "");
  third->abandon();
  BOOST_TEST(third->take().head->status == 200u);
}

BOOST_AUTO_TEST_SUITE_END()
