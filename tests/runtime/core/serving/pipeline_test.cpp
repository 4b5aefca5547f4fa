// tests/runtime/core/serving/pipeline_test.cpp -- a pipeline's answers to what other
// peers say wrongly, and a gateway's questions about what it may have missed.
#include "runtime/core/serving/pipeline.hpp"
#include "runtime/core/serving/replay.hpp"
#include "tests/runtime/core/serving/some_text.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::core {

BOOST_AUTO_TEST_SUITE(serving_pipelines)

namespace {

constexpr nanoseconds second = 1'000'000'000;

peer_id peer(std::uint8_t n) {
  peer_id p{};
  p[0] = n;
  return p;
}

const job_header under{5, 77, 1, 0};
const peer_id me = peer(1), gateway = peer(2);

template <class Message>
std::vector<Message> all(const serve_sends& sends) {
  std::vector<Message> out;
  for (const serve_send& s : sends)
    if (const auto* m = std::get_if<Message>(&s.what))
      out.push_back(*m);
  return out;
}

batcher_limits limits() {
  batcher_limits l;
  l.pages = 1024;
  return l;
}

/// With one stage, which is ready.
struct one_stage {
  one_stage() {
    (void)p.set_members({me, gateway}, 0);
    (void)p.take(me, serve_ready{under, 0}, 0);
  }
  /// Asks, and returns the first pass.
  serve_pass ask(serve_request r, std::size_t tokens) {
    r.header = under;
    r.stream = 3;
    r.tokens = text(tokens);
    r.tokens_max = 10;
    r.ends = {7};
    const auto passes = all<serve_pass>(p.take(gateway, r, 1));
    BOOST_REQUIRE(passes.size() == 1u);
    return passes.front();
  }

  serving_pipeline p{{under, {me}, limits()}};
};

row_result result(std::uint64_t sequence, token_id token) {
  row_result r;
  r.sequence = sequence;
  r.tokens.push_back({token, -1, {}});
  return r;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_sequence_that_is_named_twice_ends_once) {
  one_stage s;
  const serve_pass pass = s.ask({}, 4);
  const std::uint64_t id = pass.rows.front().sequence;
  const auto news = all<serve_news>(s.p.take(
    me, serve_chosen{under, pass.number, {result(id, 7), result(id, 7)}}, 2));
  BOOST_REQUIRE(news.size() == 1u);
  BOOST_TEST(news[0].streams.size() == 1u);
  BOOST_TEST((news[0].streams[0].end == stream_end::stop));
  BOOST_TEST(s.p.streams() == 0u);
}

BOOST_AUTO_TEST_CASE(what_was_not_asked_for_is_left_out) {
  one_stage s;
  const serve_pass pass = s.ask({}, 4);
  row_result r = result(pass.rows.front().sequence, 9);
  r.scored.assign(100, {1, -1, {}});
  r.tokens.assign(5, {9, -1, {}}); // nothing was guessed
  const auto news =
    all<serve_news>(s.p.take(me, serve_chosen{under, pass.number, {r}}, 2));
  BOOST_REQUIRE(news.size() == 1u);
  BOOST_TEST(news[0].streams[0].tokens.size() == 1u);
  BOOST_TEST(news[0].streams[0].scored.empty());
}

/// Its rule goes to the last stage before its first pass, and again with it.
BOOST_AUTO_TEST_CASE(a_rule_comes_with_what_was_chosen_before) {
  one_stage s;
  serve_request r;
  r.header = under;
  r.stream = 3;
  r.tokens = text(8);
  r.chosen = 3;
  r.tokens_max = 10;
  r.ends = {7};
  r.rule = text_rule{rule_kind::regex, std::vector<std::byte>(5)};
  const auto sent = s.p.take(gateway, r, 1);
  const auto rules = all<serve_rule>(sent);
  BOOST_REQUIRE(rules.size() == 1u);
  BOOST_TEST((rules[0].rule == *r.rule));
  BOOST_TEST((rules[0].ends == r.ends));
  BOOST_TEST(
    (rules[0].chosen == std::vector(r.tokens.begin() + 5, r.tokens.end())));
  const auto passes = all<serve_pass>(sent);
  BOOST_REQUIRE(passes.size() == 1u);
  BOOST_REQUIRE(passes[0].rows.size() == 1u);
  BOOST_TEST(passes[0].rows[0].sequence == rules[0].sequence);
  BOOST_REQUIRE(passes[0].rows[0].choice);
  BOOST_TEST(passes[0].rows[0].choice->ruled);
  BOOST_TEST(passes[0].rows[0].choice->drawn == 3u);
  const auto again = s.p.tick(1 + serving_pipeline::again_after);
  BOOST_TEST((all<serve_rule>(again) == rules));
  BOOST_TEST((all<serve_pass>(again) == passes));
}

/// A client that asks another gateway gets the tokens that are known at once; only
/// those behind them are chosen.
BOOST_AUTO_TEST_CASE(a_text_goes_on_where_its_client_asks_again) {
  const peer_id other = peer(3);
  for (const bool gone : {false, true}) {
    one_stage s;
    (void)s.p.set_members({me, gateway, other}, 0);
    serve_request asked;
    asked.key = 9;
    serve_pass pass = s.ask(asked, 4);
    const std::uint64_t id = pass.rows.front().sequence;
    for (const token_id t : {21, 22, 23}) {
      const auto sent =
        s.p.take(me, serve_chosen{under, pass.number, {result(id, t)}}, 2);
      const auto passes = all<serve_pass>(sent);
      BOOST_REQUIRE(passes.size() == 1u);
      pass = passes.front();
    }
    if (gone)
      (void)s.p.set_members({me, other}, 3);
    asked.header = under;
    asked.stream = 40;
    asked.tokens = text(4);
    asked.tokens_max = 10;
    asked.ends = {7};
    for (const bool same : {false, true}) {
      ++asked.stream;
      asked.how.seed = same ? 0 : 1;
      const auto news = all<serve_news>(s.p.take(other, asked, 4));
      std::vector<token_id> told;
      for (const serve_news& n : news)
        for (const stream_news& of : n.streams)
          if (of.stream == asked.stream)
            for (const served_token& t : of.tokens)
              told.push_back(t.token);
      BOOST_TEST(told
                   == (same ? std::vector<token_id>{21, 22, 23}
                            : std::vector<token_id>()),
                 boost::test_tools::per_element());
    }
    // The row of what goes on has the known tokens behind the prompt.
    const auto sent = s.p.take(me, serve_chosen{under, pass.number, {}}, 5);
    const auto passes = all<serve_pass>(sent);
    BOOST_REQUIRE(passes.size() == 1u);
    const auto row =
      std::ranges::find_if(passes[0].rows, [](const serve_row& r) {
        return !r.tokens.empty() && r.tokens.back() == 23;
      });
    BOOST_REQUIRE((row != passes[0].rows.end()));
    BOOST_TEST((row->first + row->tokens.size() == 7u));
    BOOST_REQUIRE(row->choice);
    BOOST_TEST(row->choice->drawn == 3u);
    BOOST_TEST(s.p.tokens_known() == 3u);
  }
}

BOOST_AUTO_TEST_CASE(known_texts_have_a_limit) {
  known_texts k;
  const auto of = [](std::uint64_t key, std::vector<token_id> prompt) {
    text_source out;
    out.key = key;
    out.prompt = std::move(prompt);
    return out;
  };
  const std::vector<token_id> long_text(known_texts::bytes_max / 9);
  for (std::uint64_t key = 1; key <= 3; ++key)
    k.keep(of(key, {1, 2}), long_text);
  BOOST_TEST(k.bytes() <= known_texts::bytes_max);
  BOOST_TEST(k.find(of(1, {1, 2})).empty());
  BOOST_TEST(k.find(of(3, {1, 2})).size() == long_text.size());
  BOOST_TEST(k.find(of(3, {1, 3})).empty());
  k.keep(of(0, {1}), {5});
  BOOST_TEST(k.find(of(0, {1})).empty());
  // A longer one takes the place of a shorter one.
  const std::size_t before = k.bytes();
  for (std::size_t length = 1; length <= 3; ++length)
    k.keep(of(9, {1}), std::vector<token_id>(length));
  BOOST_TEST(k.find(of(9, {1})).size() == 3u);
  k.keep(of(9, {1}), {5});
  BOOST_TEST(k.find(of(9, {1})).size() == 3u);
  text_source ruled = of(10, {1});
  ruled.rule = text_rule{rule_kind::regex, std::vector<std::byte>(1000)};
  k.keep(ruled, {5});
  BOOST_TEST(k.bytes() > before + 1000);
  for (std::uint64_t key = 20; key < 20 + known_texts::texts_max; ++key)
    k.keep(of(key, {1}), {5});
  BOOST_TEST(k.find(ruled).empty());
}

/// The row waits for its rule while others go on; it comes again when the last stage
/// says that it can, or, with its rule, if that word does not come.
BOOST_AUTO_TEST_CASE(a_row_that_waits_is_given_again) {
  one_stage s;
  serve_request asked;
  asked.rule = text_rule{};
  const serve_pass pass = s.ask(asked, 4);
  const std::uint64_t id = pass.rows.front().sequence;
  const serve_row& first = pass.rows.front();
  std::uint64_t number = pass.number;
  nanoseconds now = 2;
  for (const bool lost : {false, true}) {
    row_result r;
    r.sequence = id;
    r.waits = true;
    const auto waits = s.p.take(me, serve_chosen{under, number, {r}}, now);
    BOOST_TEST(all<serve_pass>(waits).empty());
    BOOST_TEST(s.p.streams() == 1u);
    serve_request other = asked;
    other.header = under;
    other.stream = 70 + now;
    other.tokens = text(5);
    other.tokens_max = 1;
    other.rule.reset();
    const auto beside = all<serve_pass>(s.p.take(gateway, other, now));
    BOOST_REQUIRE(beside.size() == 1u);
    BOOST_REQUIRE(beside[0].rows.size() == 1u); // only the other one
    (void)s.p.take(me,
                   serve_chosen{under,
                                beside[0].number,
                                {result(beside[0].rows[0].sequence, 1)}},
                   now);
    const auto sent = lost ? s.p.tick(now += serving_pipeline::again_after)
                           : s.p.take(me, serve_text_ready{under, id}, ++now);
    const auto again = all<serve_pass>(sent);
    BOOST_REQUIRE(again.size() == 1u);
    BOOST_REQUIRE(again[0].rows.size() == 1u);
    const serve_row& row = again[0].rows[0];
    BOOST_TEST(row.sequence == id);
    BOOST_TEST(row.first == first.first + first.tokens.size() - 1);
    BOOST_TEST((row.tokens == std::vector{first.tokens.back()}));
    BOOST_TEST((row.choice == first.choice));
    BOOST_TEST(all<serve_rule>(sent).size() == (lost ? 1u : 0u));
    number = again[0].number;
  }
}

BOOST_AUTO_TEST_CASE(passes_say_which_sequences_have_ended) {
  one_stage s;
  const serve_pass pass = s.ask({}, 4);
  BOOST_TEST(pass.oldest == pass.rows.front().sequence);
  (void)s.p.take(
    me,
    serve_chosen{under, pass.number, {result(pass.rows.front().sequence, 7)}},
    2);
  const serve_pass next = s.ask({}, 5);
  BOOST_TEST(next.oldest == next.rows.front().sequence);
  BOOST_TEST(next.oldest > pass.oldest);
}

BOOST_AUTO_TEST_CASE(a_text_ends_where_its_rule_leaves_nothing_to_add) {
  for (const bool has_token : {true, false}) {
    one_stage s;
    serve_request asked;
    asked.rule = text_rule{};
    const serve_pass pass = s.ask(asked, 4);
    row_result r = result(pass.rows.front().sequence, 9);
    r.complete = true;
    if (!has_token)
      r.tokens.clear();
    const auto news =
      all<serve_news>(s.p.take(me, serve_chosen{under, pass.number, {r}}, 2));
    BOOST_REQUIRE(news.size() == 1u);
    const stream_news& last = news[0].streams.back();
    BOOST_TEST((last.end == stream_end::complete));
    BOOST_TEST(last.tokens.size() == (has_token ? 1u : 0u));
    BOOST_TEST(s.p.streams() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_rule_that_no_token_keeps_ends_its_stream) {
  one_stage s;
  serve_request asked;
  asked.rule = text_rule{};
  const serve_pass pass = s.ask(asked, 4);
  row_result r = result(pass.rows.front().sequence, 9);
  r.tokens.clear();
  r.stuck = true;
  const auto news =
    all<serve_news>(s.p.take(me, serve_chosen{under, pass.number, {r}}, 2));
  BOOST_REQUIRE(news.size() == 1u);
  BOOST_TEST((news[0].streams.back().end == stream_end::stuck));
  BOOST_TEST(s.p.streams() == 0u);
}

BOOST_AUTO_TEST_CASE(a_pooled_prompt_ends_with_its_hidden_state) {
  for (const pooling how : {pooling::last, pooling::mean}) {
    one_stage s;
    serve_request asked;
    asked.pooled = how;
    const serve_pass pass = s.ask(asked, 4);
    BOOST_REQUIRE(pass.rows.size() == 1u);
    BOOST_TEST((pass.rows[0].pooled == row_pooling{how, true}));
    BOOST_TEST(!pass.rows[0].choice);
    BOOST_TEST(logits_of(pass.rows[0]) == 0u);
    BOOST_TEST(pooled_of(pass.rows[0]) == (how == pooling::last ? 1u : 4u));
    row_result r = result(pass.rows.front().sequence, 9);
    r.pooled.assign(8, std::byte{5});
    const auto news =
      all<serve_news>(s.p.take(me, serve_chosen{under, pass.number, {r}}, 2));
    BOOST_REQUIRE(news.size() == 1u);
    const stream_news& last = news[0].streams.back();
    BOOST_TEST((last.end == stream_end::complete));
    BOOST_TEST(last.tokens.empty()); // none was asked for
    BOOST_TEST((last.pooled == r.pooled));
    BOOST_TEST(s.p.streams() == 0u);
  }
}

/// Another peer says it.
BOOST_AUTO_TEST_CASE(a_text_without_a_rule_is_not_complete) {
  one_stage s;
  const serve_pass pass = s.ask({}, 4);
  row_result r = result(pass.rows.front().sequence, 9);
  r.complete = true;
  const auto news =
    all<serve_news>(s.p.take(me, serve_chosen{under, pass.number, {r}}, 2));
  BOOST_REQUIRE(news.size() == 1u);
  BOOST_TEST((news[0].streams.back().end == stream_end::none));
  BOOST_TEST(s.p.streams() == 1u);
}

BOOST_AUTO_TEST_CASE(a_piece_of_a_prompt_chooses_nothing) {
  one_stage s;
  const serve_pass pass = s.ask({}, 600); // more than a pass
  BOOST_REQUIRE(!pass.rows.front().choice);
  const auto sent = s.p.take(
    me,
    serve_chosen{under, pass.number, {result(pass.rows.front().sequence, 7)}},
    2);
  BOOST_TEST(all<serve_news>(sent).empty());
  const auto next = all<serve_pass>(sent);
  BOOST_REQUIRE(next.size() == 1u);
  BOOST_TEST(next[0].rows[0].first == pass.rows[0].tokens.size());
}

BOOST_AUTO_TEST_CASE(penalties_count_what_was_chosen) {
  one_stage s;
  serve_request r;
  r.how.frequency_penalty = 0.5;
  r.chosen = 3; // before the request came to this pipeline
  const serve_pass pass = s.ask(r, 8);
  BOOST_REQUIRE(pass.rows.front().choice);
  const std::vector<token_id> all_tokens = text(8);
  std::map<token_id, std::uint32_t> expected;
  for (std::size_t i = 5; i < 8; ++i)
    ++expected[all_tokens[i]];
  const auto counted = [](const serve_pass& p) {
    std::map<token_id, std::uint32_t> out;
    for (const token_count& c : p.rows.front().choice->counts)
      out[c.token] = c.count;
    return out;
  };
  BOOST_TEST((counted(pass) == expected));
  BOOST_TEST(pass.rows.front().choice->seen.empty());
  const auto next = all<serve_pass>(s.p.take(
    me,
    serve_chosen{under, pass.number, {result(pass.rows.front().sequence, 9)}},
    2));
  BOOST_REQUIRE(next.size() == 1u);
  ++expected[9];
  BOOST_TEST((counted(next[0]) == expected));
}

// Without a quorum half of the requests were sent to a peer that was dead.
BOOST_AUTO_TEST_CASE(streams_leave_a_pipeline_that_is_out_of_contact) {
  replay gate;
  const peer_id there = peer(7);
  pipeline_place here, far;
  here.header = under;
  here.speaker = me;
  here.stages = {me};
  far.header = under;
  far.header.island = 1;
  far.speaker = there;
  far.stages = {there};
  const std::set<peer_id> members{me, there};
  (void)gate.place({here, far}, members, 0);
  const auto tell = [&](const pipeline_place& p) {
    pipeline_report r;
    r.header = p.header;
    r.ready = true;
    r.room = 1 << 20;
    return all<serve_request>(gate.take(p.speaker, r, 0).sends);
  };
  stream_ask ask;
  ask.tokens = {1, 2, 3};
  ask.tokens_max = 9;
  (void)tell(far);
  BOOST_TEST(all<serve_request>(gate.accept(1, ask, 0).sends).size() == 1u);
  (void)tell(here);
  BOOST_TEST(gate.ready() == 2u);

  far.in_contact = false;
  const auto moved = gate.place({here, far}, members, second);
  BOOST_TEST_REQUIRE(moved.sends.size() == 1u);
  BOOST_TEST((moved.sends[0].to == me));
  BOOST_TEST(gate.ready() == 1u);
  for (stream_id id = 2; id < 20; ++id)
    for (const serve_send& s : gate.accept(id, ask, second).sends)
      BOOST_TEST((s.to == me));
  BOOST_TEST(gate.reports().size() == 2u);
  BOOST_TEST(!gate.reports()[1].ready);

  far.in_contact = true; // it is known to be ready
  BOOST_TEST(gate.place({here, far}, members, second).sends.empty());
  BOOST_TEST(gate.ready() == 2u);
}

BOOST_AUTO_TEST_CASE(a_gateway_asks_again_what_became_of_streams) {
  replay gate;
  pipeline_place at;
  at.header = under;
  at.speaker = me;
  at.stages = {me};
  (void)gate.place({at}, {me, gateway}, 0);
  pipeline_report told;
  told.header = under;
  told.ready = true;
  told.streams = 1;
  (void)gate.take(me, told, second);
  const auto asked = [&](nanoseconds now) {
    return all<report_wanted>(gate.ask_of_streams(now).sends).size();
  };
  BOOST_TEST(asked(2 * second) == 0u);
  BOOST_TEST(asked(5 * second) == 1u);
  BOOST_TEST(asked(6 * second) == 0u); // the answer may be on its way
  BOOST_TEST(asked(9 * second) == 1u);
  told.streams = 0;
  (void)gate.take(me, told, 9 * second);
  BOOST_TEST(asked(20 * second) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
