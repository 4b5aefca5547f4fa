// tests/actors/gateway_test.cpp -- the gateway's actor, with everything around it
// made by hand: which messages go out in which order.
#include "tests/actors/gateway_fixture.hpp"

namespace shoal::actors {

BOOST_AUTO_TEST_SUITE(gateways)

/// While a long prompt waits to be tokenized, tokens of others go out, and the
/// gateway answers; prompts come to pipelines in their order.
BOOST_AUTO_TEST_CASE(a_long_prompt_holds_up_no_tokens) {
  world w;
  const auto first = w.ask(http_question::completion, body("ab"));
  BOOST_TEST(w.requests().empty()); // nothing was tokenized in the actor
  BOOST_REQUIRE(w.prompts_.waiting.size() == 1u);
  w.prompts_.run_one();
  w.settle();
  BOOST_REQUIRE(w.requests().size() == 1u);
  const core::serve_request one = w.requests().front();
  BOOST_TEST((one.tokens == std::vector<core::token_id>{'a', 'b'}));

  const auto long_one =
    w.ask(http_question::chat, chat(std::string(40'000, 'x')));
  const auto short_one = w.ask(http_question::chat, chat("y"));
  BOOST_TEST(w.prompts_.waiting.size() == 2u);
  core::stream_news news{
    one.stream, 2, {{'c', -1, {}}}, core::stream_end::none, true};
  w.say(core::serve_news{w.header, {news}});
  BOOST_TEST(first->got.find("\"text\":\"c\"") != std::string::npos);
  const auto list = std::make_shared<client>("/v1/models", "");
  caf::anon_send(w.gateway, http_ask{list, http_question::models});
  w.settle();
  BOOST_TEST(list->status == 200u);
  BOOST_TEST(w.requests().size() == 1u);

  w.prompts_.run_one();
  w.prompts_.run_one();
  w.settle();
  const auto all = w.requests();
  BOOST_REQUIRE(all.size() == 3u);
  BOOST_TEST(all[1].tokens.size() == 40'001u);
  BOOST_TEST((all[2].tokens == std::vector<core::token_id>{'y', ':'}));
}

/// A prompt is taken from what a key may use before pipelines see it; what they
/// generate then is charged, also beyond that.
BOOST_AUTO_TEST_CASE(a_key_pays_for_prompt_and_answer) {
  std::chrono::steady_clock::time_point now{std::chrono::seconds(1000)};
  const auto account = std::make_shared<runtime::key_account>(
    "ann", runtime::key_limits{0, 6}, [&] { return now; });
  world w;
  const auto ask = [&](const std::string& prompt) {
    const auto out = std::make_shared<client>("/v1/x", body(prompt));
    out->asked.account = account;
    caf::anon_send(w.gateway, http_ask{out, http_question::completion});
    w.settle();
    w.prompts_.run_one();
    w.settle();
    return out;
  };
  const auto left = [&] { return account->headers()[1].second; };
  const auto first = ask("abc");
  BOOST_REQUIRE(w.requests().size() == 1u);
  BOOST_TEST(left() == "3");
  const core::serve_request one = w.requests().front();
  w.say(core::serve_news{w.header,
                         {{one.stream,
                           3,
                           {{'d', -1, {}}, {'e', -1, {}}},
                           core::stream_end::none,
                           true}}});
  BOOST_TEST(left() == "1");
  const auto second = ask("xy");
  BOOST_TEST(second->status == 429u);
  BOOST_TEST(second->got.find("rate_limit_error") != std::string::npos);
  BOOST_TEST(w.requests().size() == 1u);
  // The first one goes on, and owes what is not there.
  w.say(core::serve_news{w.header,
                         {{one.stream,
                           5,
                           {{'f', -1, {}}, {'g', -1, {}}, {'h', -1, {}}},
                           core::stream_end::length,
                           true}}});
  BOOST_TEST(first->ended);
  BOOST_TEST(first->got.find("\"text\":\"") != std::string::npos);
  BOOST_TEST(left() == "0");
  BOOST_TEST(account->take_prompt(2)->retry_after_s == 40u); // 2 owed, 6 s each
  now += std::chrono::seconds(40);
  ask("xy");
  BOOST_TEST(w.requests().size() == 2u);
  BOOST_TEST(account->refusals().tokens == 2u);
  const auto page = std::make_shared<client>("/metrics", "");
  const auto accounts =
    std::make_shared<runtime::key_accounts>([&] { return now; });
  (void)accounts->of({"bob", {}, {0, 1}})->take_prompt(2);
  caf::anon_send(w.gateway, http_ask{page, http_question::metrics, accounts});
  w.settle();
  BOOST_TEST(page->got.find("shoal_key_refused_requests_total{key_name=\"bob\","
                            "limit=\"tokens\"} 1")
             != std::string::npos);
}

/// What is refused for want of room has cost nothing; what has begun has.
BOOST_AUTO_TEST_CASE(a_key_gets_back_what_a_busy_model_refuses) {
  const auto account = std::make_shared<runtime::key_account>(
    "ann", runtime::key_limits{0, 100},
    [] { return std::chrono::steady_clock::time_point(); });
  const auto left = [&] { return account->headers()[1].second; };
  world w;
  const auto ask = [&](http_question what, const std::string& text) {
    w.sent.clear();
    const auto out = std::make_shared<client>("/v1/x", text);
    out->asked.account = account;
    caf::anon_send(w.gateway, http_ask{out, what});
    w.settle();
    w.prompts_.run_one();
    w.settle();
    return out;
  };
  const auto end = [&](std::size_t request, core::stream_end why) {
    const core::serve_request of = w.requests().at(request);
    w.say(core::serve_news{w.header,
                           {{of.stream, of.tokens.size(), {}, why, false}}});
  };
  const auto refused =
    ask(http_question::chat, chat("abc")); // and one of the template
  BOOST_TEST(left() == "96");
  end(0, core::stream_end::busy);
  BOOST_TEST(refused->status == 429u);
  BOOST_TEST(left() == "100");
  // A stream has its status, too: it begins with its first token.
  const auto streamed = ask(
    http_question::chat,
    R"({"model":"tiny","stream":true,"messages":[{"role":"user","content":"abc"}]})");
  BOOST_TEST(left() == "96");
  end(0, core::stream_end::busy);
  BOOST_TEST(streamed->status == 429u);
  BOOST_TEST(left() == "100");
  // Of several texts one was refused, after others had begun.
  const auto some =
    ask(http_question::completion, R"({"model":"tiny","prompt":"abc","n":2})");
  BOOST_TEST(left() == "97");
  const core::serve_request one = w.requests().at(0);
  w.say(core::serve_news{
    w.header,
    {{one.stream, 3, {{'d', -1, {}}}, core::stream_end::none, true}}});
  BOOST_TEST(left() == "96");
  end(1, core::stream_end::busy);
  BOOST_TEST(some->status == 429u);
  BOOST_TEST(left() == "96");
  // What is wrong with a request is the client's affair.
  const auto wrong = ask(http_question::chat, chat("abc"));
  end(0, core::stream_end::too_long);
  BOOST_TEST(wrong->status == 400u);
  BOOST_TEST(left() == "92");
  // A model that ends before it has answered.
  const auto late = ask(http_question::chat, chat("abc"));
  BOOST_TEST(left() == "88");
  auto v = std::make_shared<core::view>(*w.view_);
  v->jobs.clear();
  auto p = std::make_shared<core::plan>();
  caf::anon_send(w.gateway, runtime::view_changed{v, p});
  w.settle();
  BOOST_TEST(late->status == 503u);
  BOOST_TEST(left() == "92");
}

/// Of keys, metrics have the names, whatever these are, and nothing else.
BOOST_AUTO_TEST_CASE(metrics_name_keys_and_show_none) {
  world w;
  const auto made = runtime::make_api_key("ann", {1, 0});
  const auto file = *runtime::api_keys::parse(made.line, "keys");
  const auto accounts = std::make_shared<runtime::key_accounts>(
    [] { return std::chrono::steady_clock::time_point(); });
  const auto ann = accounts->of(*file.find(made.key));
  BOOST_TEST(!ann->take_request());
  BOOST_TEST(bool(ann->take_request()));
  (void)accounts->of({"a\"} 1\nwild_metric{b=\"\\", {}, {1, 1}});
  const auto page = std::make_shared<client>("/metrics", "");
  caf::anon_send(w.gateway, http_ask{page, http_question::metrics, accounts});
  w.settle();
  const auto has = [&](const std::string& text) {
    return page->got.find(text) != std::string::npos;
  };
  const std::string begin = "\nshoal_key_refused_requests_total{key_name=";
  BOOST_TEST(has(begin + "\"ann\",limit=\"requests\"} 1\n"));
  BOOST_TEST(
    has(begin + "\"a\\\"} 1\\nwild_metric{b=\\\"\\\\\",limit=\"tokens\"} 0"));
  BOOST_TEST(!has("\nwild_metric"));
  BOOST_TEST(!has(made.key));
  BOOST_TEST(!has(made.key.substr(runtime::api_key_prefix.size(), 16)));
  BOOST_TEST(!has(made.line.substr(4, 16))); // of the hash
}

BOOST_AUTO_TEST_CASE(prompts_that_wait_are_bounded) {
  world w;
  const std::string prompt(1 << 20, 'x');
  std::vector<std::shared_ptr<client>> asked;
  for (int i = 0; i < 70; ++i)
    asked.push_back(w.ask(http_question::completion, body(prompt)));
  BOOST_TEST(asked.front()->status == 0u);
  BOOST_TEST(asked.back()->status == 429u);
  const std::size_t waiting = w.prompts_.waiting.size();
  BOOST_TEST(waiting >= 60u);
  BOOST_TEST(waiting < 64u); // MiB
  while (!w.prompts_.waiting.empty())
    w.prompts_.run_one();
  w.settle();
  BOOST_TEST(asked.front()->status == 400u); // it is longer than the context
  const auto again = w.ask(http_question::completion, body("ab"));
  BOOST_TEST(again->status == 0u);
  BOOST_TEST(w.prompts_.waiting.size() == 1u);
}

/// Its requests got 400 for ever: "the model has no text".
BOOST_AUTO_TEST_CASE(a_tokenizer_that_has_gone_again_is_fetched_again) {
  world w(true);
  const auto out = w.ask(http_question::completion, body("ab"));
  w.prompts_.run_one();
  w.settle();
  BOOST_TEST(out->status == 0u, out->got); // it waits for the tokenizer
  w.pass(std::chrono::seconds(1));
  BOOST_REQUIRE(w.prompts_.waiting.size() == 1u);
  w.prompts_.run_one();
  w.settle();
  BOOST_TEST(w.requests().size() == 1u);
}

/// It was refused, as max_tokens is 16 by default.
BOOST_AUTO_TEST_CASE(an_answer_may_have_what_is_left_of_the_context) {
  constexpr std::size_t context = 1 << 16;
  world w;
  const auto begin = [&w](std::size_t prompt, const std::string& more) {
    const auto out = w.ask(http_question::completion,
                           R"({"model":"tiny","prompt":")"
                             + std::string(prompt, 'a') + '"' + more + '}');
    w.prompts_.run_one();
    w.settle();
    return out;
  };
  begin(context - 3, "");
  BOOST_REQUIRE(w.requests().size() == 1u);
  BOOST_TEST(w.requests()[0].tokens_max == 3u);
  const auto none_left = begin(context, "");
  BOOST_TEST(none_left->status == 400u);
  BOOST_TEST(none_left->got.find("max_tokens") == std::string::npos);
  const auto given = begin(context - 3, R"(,"max_tokens":4)");
  BOOST_TEST(given->status == 400u);
  BOOST_TEST(given->got.find("max_tokens is 4") != std::string::npos);
}

/// They waited for ever at a node whose disk had no room for the tokenizer.
BOOST_AUTO_TEST_CASE(no_request_waits_long_for_a_tokenizer) {
  world w(false, false);
  w.disk_full = true;
  w.see_model(false);
  const auto begin = [&w] {
    const auto out = w.ask(http_question::completion, body("ab"));
    w.prompts_.run_one();
    w.settle();
    return out;
  };
  const auto refused = [](const client& c) {
    return c.status == 503
           && c.got.find("\\\"tiny\\\" waits: this node cannot get the files "
                         "of the tokenizer: No space left")
                != std::string::npos;
  };
  const auto soon = begin();
  w.pass(served_model::lasts_after - std::chrono::seconds(1));
  BOOST_TEST(soon->status == 0u, soon->got);
  w.pass(std::chrono::seconds(1));
  w.prompts_.run_one();
  w.settle();
  BOOST_TEST(refused(*soon), soon->got);
  BOOST_TEST(refused(*begin()));
  BOOST_TEST(refused(*w.ask(http_question::ready, "")));
  w.disk_full = false;
  w.pass(std::chrono::seconds(1));
  begin();
  BOOST_TEST(w.requests().size() == 1u);
}

/// A node that was started again, and has yet to be a member.
BOOST_AUTO_TEST_CASE(a_node_that_has_no_quorum_yet_says_so) {
  world w(false, false);
  const auto says = [&](http_question what, const char* why) {
    const auto out = w.ask(what, "");
    return out->status == 503u && out->got.find(why) != std::string::npos;
  };
  BOOST_TEST(says(http_question::ready, "the node is starting"));
  w.see_quorum("no quorum: bert is away", {me});
  BOOST_TEST(says(http_question::ready, "bert is away"));
  BOOST_TEST(says(http_question::models, "bert is away"));
  BOOST_TEST(says(http_question::completion, "bert is away"));
  BOOST_TEST(w.ask(http_question::metrics, "")->status == 200u);
}

/// A death that leaves no room for the model, and one after which it runs at once.
BOOST_AUTO_TEST_CASE(no_new_request_waits_for_a_model_that_fits_nowhere) {
  const std::string why = "not enough memory: needs at least 18.8 MiB";
  const std::string whole = R"({"model":"tiny","max_tokens":9,"prompt":"ab"})";
  const auto refused = [&](const client& c) {
    return c.status == 503
           && c.got.find(R"(\"tiny\" waits: )" + why) != std::string::npos;
  };
  world w;
  const auto begin = [&](const std::string& json) {
    const auto out = w.ask(http_question::completion, json);
    w.prompts_.run_one();
    w.settle();
    return out;
  };
  const auto write = [&](std::size_t request) {
    const core::serve_request of = w.requests().at(request);
    w.say(core::serve_news{w.header,
                           {{of.stream,
                             of.tokens.size(),
                             {{'c', -1, {}}},
                             core::stream_end::none,
                             true}}});
  };
  const auto under_way = begin(whole);
  write(0);
  BOOST_TEST(w.ask(http_question::ready, "")->status == 200u);

  w.see_view(why);
  BOOST_TEST(refused(*w.ask(http_question::ready, "")));
  const auto at_once = begin(whole), streamed = begin(body("ab"));
  BOOST_TEST(at_once->status == 0u);
  w.sent.clear();
  w.see_view(); // it was only a new plan
  w.pass(served_model::lasts_after);
  BOOST_TEST(at_once->status == 0u);
  BOOST_TEST(!streamed->ended);
  BOOST_REQUIRE(w.requests().size() == 3u);
  write(1); // "at_once"; "streamed" has got nothing yet
  BOOST_TEST(w.ask(http_question::ready, "")->status == 200u);

  w.see_view(why);
  const auto soon = begin(whole), soon_streamed = begin(body("ab"));
  w.pass(served_model::lasts_after - std::chrono::seconds(1));
  w.see_view(why + " of one peer more");
  BOOST_TEST(soon->status == 0u);
  w.pass(std::chrono::seconds(1));
  BOOST_TEST(refused(*soon));
  BOOST_TEST(soon->got.find("of one peer more") != std::string::npos);
  BOOST_TEST(refused(*soon_streamed));
  for (const std::string& json : {whole, body("ab")})
    BOOST_TEST(refused(*begin(json)));
  BOOST_TEST(under_way->status == 0u); // they wait for peers to come back
  BOOST_TEST(at_once->status == 0u);
  BOOST_TEST(refused(*streamed));

  w.sent.clear();
  w.see_view();
  BOOST_TEST(w.requests().size() == 2u); // those go on
  BOOST_TEST(begin(whole)->status == 0u);
  BOOST_TEST(w.requests().size() == 3u);
}

/// Requests at a node that had lost its quorum hung, and /ready said 200.
BOOST_AUTO_TEST_CASE(no_new_request_waits_for_a_quorum) {
  const std::string why = "no quorum for view 1: cannot reach b";
  const std::string whole = R"({"model":"tiny","max_tokens":9,"prompt":"ab"})";
  const core::peer_id other{9};
  const auto refused = [&](const client& c) {
    return c.status == 503
           && c.got.find(R"(\"tiny\" waits: )" + why) != std::string::npos;
  };
  world w;
  const auto begin = [&] {
    const auto out = w.ask(http_question::completion, whole);
    w.prompts_.run_one();
    w.settle();
    return out;
  };
  const auto under_way = begin();
  const core::serve_request of = w.requests().at(0);
  w.say(core::serve_news{w.header,
                         {{of.stream,
                           of.tokens.size(),
                           {{'c', -1, {}}},
                           core::stream_end::none,
                           true}}});

  w.see_quorum(why, {me, other}); // all of its pipeline are in contact
  BOOST_TEST(w.ask(http_question::ready, "")->status == 200u);
  w.see_quorum(why, {other});
  BOOST_TEST(refused(*w.ask(http_question::ready, "")));
  const auto soon = begin();
  w.see_quorum("", {me, other});
  w.pass(served_model::lasts_after);
  BOOST_TEST(soon->status == 0u); // it goes on
  BOOST_TEST(w.ask(http_question::ready, "")->status == 200u);

  w.see_quorum(why, {other});
  const auto late = begin();
  w.pass(served_model::lasts_after - std::chrono::seconds(1));
  BOOST_TEST(late->status == 0u);
  w.pass(std::chrono::seconds(1));
  BOOST_TEST(refused(*late));
  BOOST_TEST(refused(*soon));
  BOOST_TEST(refused(*begin()));
  BOOST_TEST(under_way->status == 0u);
  w.see_view(); // as long as the node does not say that there is one
  BOOST_TEST(refused(*begin()));
  w.see_quorum("", {me, other});
  BOOST_TEST(begin()->status == 0u);
}

/// What a model writes of thoughts and calls, as events and as one answer.
BOOST_AUTO_TEST_CASE(thoughts_and_calls_are_told_apart) {
  const std::string said =
    "<think>\nhm\n</think>\n\nLook: <tool_call>\n{\"name\": \"look\", "
    "\"arguments\": {\"at\": \"it\"}}\n</tool_call>";
  world w;
  for (const bool stream : {false, true}) {
    w.sent.clear();
    const auto c = w.ask(
      http_question::chat,
      std::string(R"({"model":"tiny","tools":[{"type":"function","function":)"
                  R"({"name":"look"}}],"messages":[{"role":"user",)"
                  R"("content":"a"}],"stream":)")
        + (stream ? "true}" : "false}"));
    w.prompts_.run_one();
    w.settle();
    BOOST_REQUIRE(w.requests().size() == 1u);
    const core::serve_request asked = w.requests().front();
    for (std::size_t i = 0; i <= said.size(); ++i) {
      core::stream_news news{
        asked.stream, 2 + i, {}, core::stream_end::none, true};
      const bool last = i == said.size();
      news.tokens = {
        {last ? 0 : int(static_cast<unsigned char>(said[i])), -1, {}}};
      if (last)
        news.end = core::stream_end::stop;
      w.say(core::serve_news{w.header, {news}});
    }
    const auto has = [&](const char* text) {
      return c->got.find(text) != std::string::npos;
    };
    BOOST_TEST(has(R"("finish_reason":"tool_calls")"));
    BOOST_TEST(has(R"("name":"look")"));
    if (stream) {
      BOOST_TEST(c->ended);
      BOOST_TEST(has(R"("delta":{"reasoning_content":"h","reasoning":"h"})"));
      BOOST_TEST(has(R"("delta":{"content":"L"})"));
      BOOST_TEST(has(
        R"("delta":{"tool_calls":[{"index":0,"function":{"arguments":"i"}}]})"));
      BOOST_TEST(!has("tool_call>"));
      BOOST_TEST(!has("think>"));
    } else {
      BOOST_TEST(has(R"("content":"Look:")"));
      BOOST_TEST(has(R"("reasoning_content":"hm")"));
      BOOST_TEST(has(R"("arguments":"{\"at\": \"it\"}")"));
    }
  }
}

/// The same thoughts, text and calls, in the words of each API.
BOOST_AUTO_TEST_CASE(each_api_has_words_for_thoughts_and_calls) {
  const std::string said =
    "<think>\nhm\n</think>\n\nLook: <tool_call>\n{\"name\": \"look\", "
    "\"arguments\": {\"at\": \"it\"}}\n</tool_call>";
  struct sample {
    http_question what;
    std::string body;
    std::vector<std::string> whole, streamed;
  };
  const sample samples[] = {
    {http_question::responses,
     R"({"model":"tiny","tools":[{"type":"function","name":"look"}],)"
     R"("input":"a")",
     {R"("type":"reasoning_text","text":"hm")", R"("text":"Look:")",
      R"("arguments":"{\"at\": \"it\"}")", R"("status":"completed")",
      R"("reasoning_tokens":12)"},
     {"event: response.reasoning_text.delta\n", R"("delta":"L")",
      "event: response.function_call_arguments.delta\n",
      "event: response.completed\n"}},
    {http_question::messages,
     R"({"model":"tiny","tools":[{"name":"look","input_schema":{}}],)"
     R"("max_tokens":999,"messages":[{"role":"user","content":"a"}])",
     {R"("thinking":"hm")", R"("text":"Look:")", R"("input":{"at":"it"})",
      R"("stop_reason":"tool_use")"},
     {R"("type":"thinking_delta","thinking":"h")",
      R"("type":"text_delta","text":"L")", R"("type":"input_json_delta")",
      "event: message_stop\n"}}};
  world w;
  for (const sample& s : samples)
    for (const bool stream : {false, true}) {
      w.sent.clear();
      const auto c =
        w.ask(s.what, s.body + (stream ? R"(,"stream":true})" : "}"));
      w.prompts_.run_one();
      w.settle();
      BOOST_REQUIRE(w.requests().size() == 1u);
      const core::serve_request asked = w.requests().front();
      for (std::size_t i = 0; i <= said.size(); ++i) {
        core::stream_news news{
          asked.stream, 2 + i, {}, core::stream_end::none, true};
        const bool last = i == said.size();
        news.tokens = {
          {last ? 0 : int(static_cast<unsigned char>(said[i])), -1, {}}};
        if (last)
          news.end = core::stream_end::stop;
        w.say(core::serve_news{w.header, {news}});
      }
      for (const std::string& text : stream ? s.streamed : s.whole)
        BOOST_TEST_CONTEXT(text)
      BOOST_TEST(c->got.find(text) != std::string::npos);
      BOOST_TEST(c->ended == stream);
      BOOST_TEST(c->got.find("tool_call>") == std::string::npos);
      BOOST_TEST(c->got.find("think>") == std::string::npos);
    }
}

/// It cost the key its prompt, and was counted as if its client had gone.
BOOST_AUTO_TEST_CASE(a_stream_that_is_refused_costs_nothing) {
  const auto account = std::make_shared<runtime::key_account>(
    "ann", runtime::key_limits{0, 6}, std::chrono::steady_clock::now);
  world w;
  const auto out = std::make_shared<client>("/v1/x", body("abc"));
  out->asked.account = account;
  out->streams_are_full = true;
  caf::anon_send(w.gateway, http_ask{out, http_question::completion});
  w.settle();
  w.prompts_.run_one();
  w.settle();
  BOOST_TEST(out->status == 429u);
  BOOST_TEST(w.requests().empty());
  BOOST_TEST(account->headers()[1].second == "6");
  const auto page = std::make_shared<client>("/metrics", "");
  caf::anon_send(w.gateway, http_ask{page, http_question::metrics});
  w.settle();
  BOOST_TEST(page->got.find("status=\"429\"") != std::string::npos, page->got);
  BOOST_TEST(page->got.find("status=\"499\"") == std::string::npos, page->got);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::actors
