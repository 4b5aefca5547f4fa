// tests/actors/completion_test.cpp -- tokens become an answer; one that begins again
// with another version of its model.
#include "actors/gateway/completion.hpp"
#include "runtime/files/json.hpp"
#include "runtime/openai/chat_request.hpp"
#include "runtime/openai/completion_request.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(completions)

using namespace shoal;

namespace {

/// Keeps what a client would get.
struct kept_exchange final : runtime::http_exchange {
  const runtime::http_request& request() const noexcept override {
    return asked;
  }
  void watch(std::weak_ptr<runtime::http_watcher>) override {}
  bool respond(unsigned with, std::vector<runtime::http_header>,
               std::string body) override {
    status = with;
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
  unsigned status = 0; ///< 0: none, or a stream's
};

struct answer {
  explicit answer(const std::string& more,
                  std::shared_ptr<const model::tokenizer> by = nullptr)
    : answer(parsed(more), std::move(by)) {}
  answer(actors::text_request asked, std::shared_ptr<const model::tokenizer> by)
    : exchange(std::make_shared<kept_exchange>()),
      is(exchange, std::move(asked), {.id = "", .model = "", .step = 1},
         std::move(by)) {
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
  void take(core::token_id token, bool last = false, std::size_t choice = 0,
            double logprob = 0) {
    is.take(choice, {{token, logprob, {}}},
            last ? core::stream_end::length : core::stream_end::none);
  }
  bool got(const std::string& what) const {
    return exchange->got.find(what) != std::string::npos;
  }

  std::shared_ptr<kept_exchange> exchange;
  actors::completion is;
};

} // namespace

BOOST_AUTO_TEST_CASE(an_answer_that_was_not_sent_begins_again) {
  answer a("");
  a.take(71);
  BOOST_TEST(a.is.begin_again({.id = "", .model = "", .step = 2}));
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
  BOOST_TEST(a.is.begin_again({.id = "", .model = "", .step = 2}));
  a.take(71);
  BOOST_TEST(!a.got("step-1"));
  BOOST_TEST(a.got("step-2"));
  BOOST_TEST(!a.is.begin_again({.id = "", .model = "", .step = 3}));
  a.take(72, true);
  BOOST_TEST(!a.got("step-3"));
}

/// Until its first token a stream may be refused by its status.
BOOST_AUTO_TEST_CASE(a_stream_begins_with_its_first_token) {
  const char stream[] = R"(, "stream": true)"; // and the prompt's ids are told
  answer waits(stream);
  BOOST_TEST(waits.exchange->got == "");
  BOOST_TEST(waits.is.can_begin_again());
  waits.is.fail(openai::rate_limited("busy", 1));
  BOOST_TEST(waits.exchange->status == 429u);
  answer begun(stream);
  begun.take(71);
  BOOST_TEST(begun.exchange->got.starts_with("id: 0@1\n"));
  BOOST_TEST(begun.got("[1,2,3]"));
  begun.is.fail(openai::rate_limited("busy", 1));
  BOOST_TEST(begun.exchange->status == 0u);
  BOOST_TEST(begun.got("\"busy\""));
  // One that waits long is kept alive, and may go on with another version.
  answer late(stream);
  late.is.keep_alive();
  BOOST_TEST(late.exchange->got == std::string(openai::sse_keep_alive));
  BOOST_TEST(late.is.can_begin_again());
  late.is.fail(openai::rate_limited("busy", 1));
  BOOST_TEST(late.exchange->status == 0u);
  answer at_once("");
  at_once.is.keep_alive();
  BOOST_TEST(at_once.exchange->got == "");
}

/// Nothing is generated: the prompt, and that this was all.
BOOST_AUTO_TEST_CASE(a_stream_without_tokens_has_an_end) {
  auto asked = answer::parsed(R"(, "stream": true, "echo": true)");
  asked.options.max_tokens = 0;
  asked.prompts.front().text = "once upon";
  answer a(std::move(asked), nullptr);
  a.is.finish_at_once();
  BOOST_TEST(a.got("once upon"));
  BOOST_TEST(a.got(R"("finish_reason":"length")"));
  BOOST_TEST(a.got("[DONE]"));
}

/// A client that comes again has what its first stream began with.
BOOST_AUTO_TEST_CASE(an_echoed_prompt_is_told_once) {
  const char stream[] = R"(, "stream": true, "echo": true)";
  auto asked = answer::parsed(stream);
  asked.prompts.front().text = "once upon";
  answer first(std::move(asked), nullptr);
  first.take(71);
  BOOST_TEST(first.got("id: 0@1\n"));
  BOOST_TEST(first.got("once upon"));
  for (const std::uint64_t has : {0, 1}) {
    asked = answer::parsed(stream);
    asked.prompts.front().text = "once upon";
    asked.after = openai::event_id{has, 1};
    answer again(std::move(asked), nullptr);
    BOOST_TEST(again.exchange->got == "");
    BOOST_TEST(!again.is.can_begin_again());
    again.take(71);
    BOOST_TEST(again.got("71") == (has == 0));
    again.take(72, true);
    BOOST_TEST(again.got("id: 2@1\n"));
    BOOST_TEST(again.got("72"));
    BOOST_TEST(!again.got("once upon"));
  }
}

/// Three answers to a prompt: the two whose tokens are most probable are told.
BOOST_AUTO_TEST_CASE(the_best_of_several_answers_are_told) {
  answer a(R"(, "n": 2, "best_of": 3)");
  BOOST_TEST(a.is.choices() == 3u);
  BOOST_TEST((a.is.prompt_of(2) == std::vector<core::token_id>{1, 2, 3}));
  a.take(71, false, 0, -1);
  a.take(72, true, 0, -1);
  a.take(81, true, 1, -1.5); // less than both of the first on average
  BOOST_TEST(a.exchange->got.empty());
  a.take(91, true, 2, -0.5);
  const std::size_t best = a.exchange->got.find("[91]");
  const std::size_t second = a.exchange->got.find("[71,72]");
  BOOST_TEST(best < second);
  BOOST_TEST(second != std::string::npos);
  BOOST_TEST(!a.got("[81]"));
  BOOST_TEST(a.got(R"("index":1)"));
  BOOST_TEST(!a.got(R"("index":2)"));
  BOOST_TEST(a.is.tokens() == 4u);
}

BOOST_AUTO_TEST_CASE(a_stop_string_is_told_if_asked_for) {
  for (const bool told : {false, true})
    for (const bool stream : {false, true}) {
      answer a(std::string(R"(, "stop": "bc", "max_tokens": 9)")
                 + (told ? R"(, "include_stop_str_in_output": true)" : "")
                 + (stream ? R"(, "stream": true)" : ""),
               std::make_shared<const model::tokenizer>());
      for (const char c : {'a', 'b', 'c', 'd'})
        a.take(c, c == 'd');
      std::string text;
      const std::string before = R"("text":")";
      for (std::size_t at = 0;
           (at = a.exchange->got.find(before, at)) != std::string::npos;) {
        at += before.size();
        text += a.exchange->got.substr(at, a.exchange->got.find('"', at) - at);
      }
      BOOST_TEST(text == (told ? "abc" : "a"));
    }
}

BOOST_AUTO_TEST_CASE(usage_is_in_every_event_if_asked_for) {
  answer a(R"(, "stream": true, "stream_options": {"include_usage": true,
               "continuous_usage_stats": true})");
  a.take(71);
  BOOST_TEST(a.got(R"("completion_tokens":1,)"));
  a.take(72, true);
  BOOST_TEST(a.got(R"("completion_tokens":2,)"));
  BOOST_TEST(!a.got(R"("usage":null)"));
}

/// A tokenizer of bytes, and a special token that a file has beside them.
std::shared_ptr<const model::tokenizer> with_special_token() {
  auto file = model::parse_json(model::byte_tokenizer::to_json());
  file["added_tokens"].push_back({{"id", 256},
                                  {"content", "<pad>"},
                                  {"single_word", false},
                                  {"lstrip", false},
                                  {"rstrip", false},
                                  {"normalized", false},
                                  {"special", true}});
  auto read = model::text::hf_tokenizer::parse(model::json_text(file));
  BOOST_REQUIRE(read);
  return std::make_shared<const model::tokenizer>(*std::move(read));
}

BOOST_AUTO_TEST_CASE(special_tokens_are_told_if_asked_for) {
  const auto by = with_special_token();
  for (const bool told : {false, true}) {
    answer a(told ? R"(, "skip_special_tokens": false)" : "", by);
    a.take('a');
    a.take(256, true);
    BOOST_TEST(a.got(told ? R"("text":"a<pad>")" : R"("text":"a")"));
  }
}

/// They have no text, but a name.
BOOST_AUTO_TEST_CASE(special_tokens_are_named_in_lists_of_chances) {
  answer a(R"(, "logprobs": 0)", with_special_token());
  a.take('a');
  a.take(256, true);
  BOOST_TEST(a.got(R"("tokens":["a","<pad>"])"));
  BOOST_TEST(!a.got("token_id:"));
}

/// Offsets are those of the text that the client gets, also of one that it gets
/// in parts of characters, and behind a prompt that it gets, too.
BOOST_AUTO_TEST_CASE(parts_of_a_character_begin_where_it_does) {
  answer a(R"(, "logprobs": 0, "max_tokens": 9)", with_special_token());
  for (const char byte : std::string_view("a\xe2\x82\xac\xe2z"))
    a.take(static_cast<unsigned char>(byte));
  a.take('!', true);
  BOOST_TEST(a.got("\"text\":\"a\u20ac\ufffdz!\""));
  BOOST_TEST(a.got(R"("text_offset":[0,1,1,1,2,3,4])"));
  BOOST_TEST(a.got(R"("tokens":["a","bytes:\\xe2","bytes:\\x82",)"));
}

/// Evaluation harnesses ask for one token behind a prompt, and take the last entry for
/// it.
BOOST_AUTO_TEST_CASE(the_token_that_ends_a_text_has_a_probability) {
  answer a(R"(, "logprobs": 0)", with_special_token());
  a.take('a', false, 0, -0.5);
  a.is.take(0, {{256, -0.25, {}}}, core::stream_end::stop);
  BOOST_TEST(a.got(R"("text":"a")"));
  BOOST_TEST(a.got(R"("tokens":["a","<pad>"],"token_logprobs":[-0.5,-0.25])"));
  BOOST_TEST(a.got(R"("completion_tokens":2)"));
}

BOOST_AUTO_TEST_CASE(a_special_token_that_is_told_counts_in_offsets) {
  answer a(R"(, "logprobs": 0, "skip_special_tokens": false)",
           with_special_token());
  a.take(256);
  a.take('a', true);
  BOOST_TEST(a.got(R"("text":"<pad>a")"));
  BOOST_TEST(a.got(R"("text_offset":[0,5])"));
}

/// It was told before text that was held back, and had no stop strings.
BOOST_AUTO_TEST_CASE(a_special_token_that_is_told_is_part_of_the_text) {
  const std::string shown = R"(, "skip_special_tokens": false, "stop": )";
  answer held(shown + R"(["ab"])", with_special_token());
  held.take('a');
  held.take(256, true);
  BOOST_TEST(held.got(R"("text":"a<pad>")"), held.exchange->got);
  answer stopped(shown + R"(["pad>b"], "max_tokens": 9)", with_special_token());
  stopped.take(256);
  stopped.take('b');
  BOOST_TEST(stopped.got(R"("text":"<")"), stopped.exchange->got);
  BOOST_TEST(stopped.got(R"("finish_reason":"stop")"));
}

namespace {

/// The answer to a chat with tools, whose calls are written as Hermes models do.
answer answer_with_calls(bool several,
                         std::vector<core::token_id> prompt = {1, 2, 3}) {
  auto chat = openai::parse_chat(
    std::string(R"({"messages":[{"role":"user","content":"a"}],"tools":)"
                R"([{"type":"function","function":{"name":"f"}}],)"
                R"("parallel_tool_calls":)")
    + (several ? "true}" : "false}"));
  BOOST_REQUIRE(std::holds_alternative<openai::chat_request>(chat));
  actors::text_request asked;
  asked.writer = make_writer(std::get<openai::chat_request>(chat));
  asked.options = std::get<openai::chat_request>(std::move(chat));
  asked.options.max_tokens = 1000;
  asked.chat = true;
  asked.how.seed = 7;
  asked.format.calls = openai::call_format::hermes;
  asked.prompts = {{std::move(prompt), ""}};
  return {std::move(asked), std::make_shared<const model::tokenizer>()};
}

std::string call_of(const std::string& name) {
  return R"(<tool_call>{"name": ")" + name
         + R"(", "arguments": {}}</tool_call>)";
}

} // namespace

/// What marks a call is no text of the answer, unless it was asked for.
BOOST_AUTO_TEST_CASE(a_mark_of_a_call_has_no_stop_strings) {
  model::token_text text(nullptr, {"<tool", "ab"});
  text.show([](core::token_id) { return std::string("<tool_call>"); }, false);
  BOOST_TEST(text.push(1) == "<tool_call>");
  BOOST_TEST(!text.stopped());
  model::token_text searched(nullptr, {"<tool"});
  searched.show([](core::token_id) { return std::string("<tool_call>"); },
                true);
  BOOST_TEST(searched.push(1).empty());
  BOOST_TEST(searched.stopped());
}

/// Each turn of a chat with one seed had the same ids.
BOOST_AUTO_TEST_CASE(ids_of_calls_differ_from_turn_to_turn) {
  std::vector<std::string> ids;
  for (const core::token_id last : {3, 4, 3}) {
    answer a = answer_with_calls(true, {1, 2, last});
    for (const char c : call_of("f"))
      a.take(c);
    a.is.take(0, {{0, 0, {}}}, core::stream_end::stop);
    const std::string& got = a.exchange->got;
    const auto at = got.find("\"call_");
    BOOST_REQUIRE(at != std::string::npos);
    ids.push_back(got.substr(at + 1, got.find('"', at + 1) - at - 1));
  }
  BOOST_TEST(ids[0] != ids[1]);
  BOOST_TEST(ids[0] == ids[2]);
}

BOOST_AUTO_TEST_CASE(the_first_call_ends_the_text_if_asked_for) {
  for (const bool several : {true, false}) {
    answer a = answer_with_calls(several);
    const std::string text = call_of("first") + call_of("second");
    const std::size_t first = call_of("first").size();
    for (std::size_t i = 0; i != text.size() && (several || i != first); ++i) {
      BOOST_TEST(!a.got("finish_reason"));
      a.take(text[i]);
    }
    if (several)
      a.is.take(0, {{0, 0, {}}}, core::stream_end::stop);
    BOOST_TEST(a.got("\"completion_tokens\":"
                     + std::to_string(several ? text.size() + 1 : first)));
    BOOST_TEST(a.got(R"("name":"first")"));
    BOOST_TEST(a.got(R"("name":"second")") == several);
    BOOST_TEST(a.got(R"("finish_reason":"tool_calls")"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
