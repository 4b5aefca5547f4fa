// tests/actors/completion_test.cpp -- an answer that begins again with another
// version of its model.
#include "actors/gateway/completion.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace shoal;

namespace {

/// Keeps what a client would get.
struct kept_exchange final : runtime::http_exchange {
  const runtime::http_request& request() const noexcept override {
    return asked;
  }
  void watch(std::weak_ptr<runtime::http_watcher>) override {}
  bool respond(unsigned, std::vector<runtime::http_header>,
               std::string body) override {
    got += body;
    return true;
  }
  bool begin_stream(unsigned, std::vector<runtime::http_header>) override {
    return true;
  }
  runtime::http_write write(std::string_view bytes) override {
    got += bytes;
    return runtime::http_write::ok;
  }
  bool end() override { return true; }

  runtime::http_request asked;
  std::string got;
};

struct answer {
  explicit answer(const std::string& more)
    : exchange(std::make_shared<kept_exchange>()),
      is(exchange, parsed(more), {.id = "", .model = "", .system_fingerprint = "step-1"}, nullptr) {
    BOOST_REQUIRE(is.begin());
  }
  static actors::text_request parsed(const std::string& more) {
    auto all = openai::parse_completion(
      R"({"model": "m", "prompt": [1, 2, 3], "max_tokens": 2,
          "return_token_ids": true)"
      + more + "}");
    BOOST_REQUIRE(std::holds_alternative<openai::completion_request>(all));
    actors::text_request out;
    out.writer = make_writer(std::get<openai::completion_request>(all));
    out.options = std::get<openai::completion_request>(std::move(all));
    out.prompts = {{{1, 2, 3}, ""}};
    return out;
  }
  void take(core::token_id token, bool last = false) {
    is.take(0, {{token, 0, {}}},
            last ? core::stream_end::length : core::stream_end::none);
  }
  bool got(const std::string& what) const {
    return exchange->got.find(what) != std::string::npos;
  }

  std::shared_ptr<kept_exchange> exchange;
  actors::completion is;
};

} // namespace

BOOST_AUTO_TEST_SUITE(completions)

BOOST_AUTO_TEST_CASE(an_answer_that_was_not_sent_begins_again) {
  answer a("");
  a.take(71);
  BOOST_TEST(a.is.begin_again("step-2"));
  BOOST_TEST(a.is.tokens() == 0u);
  BOOST_TEST(a.is.prompt_tokens() == 3u);
  a.take(81);
  a.take(82, true);
  BOOST_TEST(a.got("step-2"));
  BOOST_TEST(!a.got("step-1"));
  BOOST_TEST(a.got("[81,82]"));
  BOOST_TEST(!a.got("71"));
}

BOOST_AUTO_TEST_CASE(what_a_client_has_is_not_begun_again) {
  answer a(R"(, "stream": true, "return_token_ids": false)");
  BOOST_TEST(a.is.begin_again("step-2"));
  a.take(71);
  BOOST_TEST(!a.got("step-1"));
  BOOST_TEST(a.got("step-2"));
  BOOST_TEST(!a.is.begin_again("step-3"));
  a.take(72, true);
  BOOST_TEST(!a.got("step-3"));
}

BOOST_AUTO_TEST_SUITE_END()
