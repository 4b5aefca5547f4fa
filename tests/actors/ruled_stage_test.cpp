// tests/actors/ruled_stage_test.cpp -- the last stage of a pipeline, where texts keep
// to rules: they wait for them while others go on, follow them, and go on with them
// elsewhere; tokens that are forbidden.
#include "actors/serving/stage_runner.hpp"
#include "runtime/context.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "runtime/openai/rules/rule_compiler.hpp"
#include "tests/actors/small_device.hpp"
#include "tests/actors/still_context.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <set>
#include <utility>

BOOST_AUTO_TEST_SUITE(ruled_stages)

using namespace shoal;
using namespace shoal::test;
using core::rule_kind;

namespace {

const core::job_header under{7, 77, 1, 0};
const core::peer_id me{1};

/// Keeps work until it is told to do it.
struct slow_queue final : inline_device {
  void
  submit_pass(segments run, std::function<void()> done, label what) override {
    if (!slow)
      return inline_device::submit_pass(std::move(run), std::move(done), what);
    kept.push_back([this, run = std::move(run), done = std::move(done), what] {
      inline_device::submit_pass(run, done, what);
    });
  }
  void work() {
    for (const auto& run : std::exchange(kept, {}))
      run();
  }
  bool slow = false;
  std::vector<std::function<void()>> kept;
};

struct rule_node final : test::still_context {
  const core::peer_id& self() const override { return me; }
  runtime::device_queue& device() override { return queue; }
  runtime::device_queue& disk() override { return queue; }
  runtime::store& blobs() override { std::abort(); }
  std::filesystem::path data_dir() const override { std::abort(); }
  void send(const core::peer_id&, core::serve_message m) override {
    if (const auto* ready = std::get_if<core::serve_text_ready>(&m))
      told_ready.push_back(ready->sequence);
    else
      answers.push_back(std::get<core::serve_chosen>(m));
  }
  runtime::device_queue& masks() override { return finding; }
  inline_device queue;
  slow_queue finding;
  std::vector<std::uint64_t> told_ready;
  std::vector<core::serve_chosen> answers;
};

/// A golden model in one stage. Its tokens are letters, but for the last one.
struct ruled_stage {
  ruled_stage() {
    const auto loaded = model::load_for_inference(
      std::filesystem::path(std::getenv("SHOAL_GOLDEN")) / "tiny_llama3", {},
      *device);
    BOOST_REQUIRE(loaded);
    actors::runner_config c;
    c.node = &node;
    c.header = under;
    c.stages = {me};
    c.model = std::make_shared<actors::loaded_stage>();
    c.model->stage =
      std::make_unique<model::inference_stage>(loaded->units, *device);
    c.model->cache = std::make_unique<model::paged_cache>(*c.model->stage, 8,
                                                          model::kv_type::f32);
    c.buffers = std::make_shared<actors::buffer_pool>();
    c.post = [](const std::function<void()>& run) { run(); };
    c.broken = [this](const std::string& why) { broken.push_back(why); };
    vocabulary = std::size_t(c.model->stage->config().vocab_size);
    book = std::make_shared<actors::rule_book>(
      node,
      [this](const auto& done) {
        ++read;
        std::vector<std::string> texts;
        for (std::size_t id = 0; id + 1 < vocabulary; ++id)
          texts.push_back(text_of(core::token_id(id)));
        texts.emplace_back();
        done(std::make_shared<core::grammar::token_list>(std::move(texts)));
      },
      c.post);
    c.rules = book;
    runner = std::make_shared<actors::stage_runner>(std::move(c));
  }

  static std::string text_of(core::token_id id) {
    return std::string(1, char('a' + id % 26));
  }
  core::token_id end_token() const { return core::token_id(vocabulary - 1); }

  void rule(rule_kind kind, const std::string& text,
            std::vector<core::token_id> chosen = {}) {
    runner->take(core::serve_rule{under,
                                  1,
                                  openai::rule_of(kind, text),
                                  {},
                                  std::move(chosen),
                                  {end_token()}});
  }

  void filter(core::token_filter which, std::vector<core::token_id> chosen = {},
              std::optional<core::text_rule> rule = {}) {
    runner->take(core::serve_rule{under,
                                  1,
                                  std::move(rule),
                                  std::move(which),
                                  std::move(chosen),
                                  {end_token()}});
  }

  /// The next pass: tokens behind those before.
  void give(std::vector<core::token_id> tokens, std::uint32_t drawn) {
    runner->take(me, {under, ++passes, {row_of(std::move(tokens), drawn)}, {}});
  }
  core::serve_row
  row_of(std::vector<core::token_id> tokens, std::uint32_t drawn) {
    core::serve_row row;
    row.sequence = 1;
    row.first = tokens_given;
    row.pages_kept = tokens_given > 0 ? 1 : 0;
    if (tokens_given == 0)
      row.pages = {3};
    tokens_given += tokens.size();
    row.tokens = std::move(tokens);
    row.choice.emplace();
    row.choice->how.temperature = 0.8;
    row.choice->how.seed = 3;
    row.choice->how.logprobs = 5;
    row.choice->drawn = drawn;
    row.choice->ruled = true;
    return row;
  }
  /// Of a text without a rule.
  static core::serve_row row_of_other(std::uint64_t first) {
    core::serve_row row;
    row.sequence = 2;
    row.first = first;
    row.pages_kept = first > 0 ? 1 : 0;
    if (first == 0)
      row.pages = {4};
    row.tokens = {core::token_id(first + 7)};
    row.choice.emplace();
    return row;
  }
  /// A row waited: its last token comes again.
  void give_again(core::token_id token, std::uint32_t drawn) {
    --tokens_given;
    give({token}, drawn);
  }

  /// What came of the newest pass.
  const core::row_result& result() const {
    BOOST_REQUIRE(node.answers.size() == passes);
    BOOST_REQUIRE(node.answers.back().rows.size() == 1u);
    return node.answers.back().rows.front();
  }

  /// Tokens until the text is complete.
  std::vector<core::token_id> to_the_end(std::vector<core::token_id> chosen) {
    std::vector<core::token_id> all{1, 5, 9, 2, 30};
    all.insert(all.end(), chosen.begin(), chosen.end());
    give(all, std::uint32_t(chosen.size()));
    while (true) {
      const core::row_result r = result();
      BOOST_REQUIRE(!r.broken);
      BOOST_REQUIRE(!r.stuck);
      BOOST_REQUIRE(r.tokens.size() <= 1u);
      for (const core::served_token& t : r.tokens)
        chosen.push_back(t.token);
      if (r.complete)
        return chosen;
      BOOST_REQUIRE(chosen.size() < 10u);
      give({chosen.back()}, std::uint32_t(chosen.size()));
    }
  }

  kernels::thread_team team{1};
  std::unique_ptr<kernels::backend> device = kernels::make_cpu_backend(team);
  rule_node node;
  std::size_t vocabulary = 0;
  std::size_t read = 0; ///< how often the texts of tokens were
  std::shared_ptr<actors::rule_book> book;
  std::shared_ptr<actors::stage_runner> runner;
  std::vector<std::string> broken;
  std::size_t tokens_given = 0;
  std::uint64_t passes = 0;
};

const std::string pattern = "[a-c]{6}";

} // namespace

BOOST_AUTO_TEST_CASE(a_row_waits_for_the_rule_of_its_text) {
  ruled_stage s;
  s.give({1, 5, 9, 2, 30}, 0);
  BOOST_TEST(s.result().waits);
  BOOST_TEST(s.result().tokens.empty());
  BOOST_TEST(s.node.told_ready.empty());
  s.rule(rule_kind::regex, pattern);
  BOOST_TEST(s.node.told_ready == std::vector<std::uint64_t>{1},
             boost::test_tools::per_element());
  s.give_again(30, 0);
  BOOST_TEST(!s.result().waits);
  BOOST_TEST(s.result().tokens.size() == 1u);
  s.rule(rule_kind::regex, "z"); // comes again: it has no effect
  s.give({s.result().tokens[0].token}, 1);
  BOOST_TEST(s.result().tokens.size() == 1u);
  BOOST_TEST(s.broken.empty());
  BOOST_TEST(s.node.told_ready.size() == 1u); // nobody waited again
}

/// By the order of messages: what one text waits for is found long after others have
/// had their tokens, and it gets the tokens that it would have had.
BOOST_AUTO_TEST_CASE(others_go_on_while_a_text_waits) {
  ruled_stage quick;
  quick.rule(rule_kind::regex, pattern);
  const auto expected = quick.to_the_end({});

  ruled_stage s;
  s.node.finding.slow = true;
  s.rule(rule_kind::regex, pattern);
  const auto& other = ruled_stage::row_of_other;
  std::vector<core::token_id> chosen;
  std::uint64_t passes_of_other = 0;
  std::vector<core::token_id> next{1, 5, 9, 2, 30};
  while (chosen.size() < expected.size()) {
    const std::uint32_t drawn = std::uint32_t(chosen.size());
    s.runner->take(me, {under,
                        ++s.passes,
                        {s.row_of(next, drawn), other(passes_of_other++)},
                        {}});
    BOOST_REQUIRE(s.node.answers.size() == s.passes);
    const auto& rows = s.node.answers.back().rows;
    BOOST_TEST(rows[0].waits);
    BOOST_TEST(rows[0].tokens.empty());
    BOOST_TEST(rows[1].tokens.size() == 1u); // of the same pass
    s.runner->take(me, {under, ++s.passes, {other(passes_of_other++)}, {}});
    BOOST_REQUIRE(s.node.answers.size() == s.passes);
    BOOST_TEST(s.node.answers.back().rows[0].tokens.size() == 1u);
    BOOST_TEST(s.node.told_ready.size() == chosen.size());
    s.node.finding.work();
    BOOST_TEST(s.node.told_ready.size() == chosen.size() + 1);
    s.give_again(next.back(), drawn);
    BOOST_REQUIRE(s.result().tokens.size() == 1u);
    chosen.push_back(s.result().tokens[0].token);
    next = {chosen.back()};
  }
  BOOST_TEST(chosen == expected, boost::test_tools::per_element());
  BOOST_TEST(s.broken.empty());
}

/// Its rule comes again after its end, as after a connection that was lost.
BOOST_AUTO_TEST_CASE(nothing_of_an_ended_text_stays) {
  ruled_stage s;
  s.rule(rule_kind::regex, pattern);
  s.give({1, 5, 9, 2, 30}, 0);
  BOOST_TEST(s.runner->texts() == 1u);
  s.runner->take(me, {under, ++s.passes, {s.row_of_other(0)}, {1}, 0});
  BOOST_TEST(s.runner->texts() == 0u);
  s.rule(rule_kind::regex, pattern);
  BOOST_TEST(s.runner->texts() == 1u); // its end is not known of any more
  s.runner->take(me, {under, ++s.passes, {s.row_of_other(1)}, {}, 2});
  BOOST_TEST(s.runner->texts() == 0u);
  s.rule(rule_kind::regex, pattern);
  BOOST_TEST(s.runner->texts() == 0u);
  BOOST_TEST(s.broken.empty());
}

BOOST_AUTO_TEST_CASE(a_filter_forbids_tokens) {
  // Nothing ends the text before its fourth token, and only two tokens are allowed.
  for (const std::size_t known : {0u, 2u}) {
    ruled_stage s;
    const std::vector<core::token_id> chosen(known, 7);
    s.filter({.least = 4, .allowed = {7, s.end_token()}, .banned = {}}, chosen);
    std::vector<core::token_id> next{1, 5, 9, 2, 30};
    for (std::uint32_t drawn = std::uint32_t(known); drawn < 4; ++drawn) {
      s.give(next, drawn);
      BOOST_REQUIRE(s.result().tokens.size() == 1u);
      next = {s.result().tokens[0].token};
      BOOST_TEST(next[0] == 7);
    }
  }
  // Of words the last token is forbidden where the others have come.
  ruled_stage s;
  s.filter(
    {.least = 0, .allowed = {7, 8}, .banned = {{{8}}, {{7, 7, 7}}, {{}}}});
  s.give({1, 5, 9, 2, 30}, 0);
  BOOST_TEST(s.result().tokens[0].token == 7);
  s.give({7}, 1);
  BOOST_TEST(s.result().tokens[0].token == 7);
  s.give({7}, 2);
  BOOST_TEST(s.result().stuck); // the third 7 is, and 8 always
  // What was chosen elsewhere counts.
  ruled_stage again;
  again.filter({.least = 0, .allowed = {7, 8}, .banned = {{{7, 7, 7}}}},
               {7, 7});
  again.give({1, 5, 9, 2, 30}, 2);
  BOOST_REQUIRE(again.result().tokens.size() == 1u);
  BOOST_TEST(again.result().tokens[0].token == 8);
}

BOOST_AUTO_TEST_CASE(a_filter_goes_with_a_rule) {
  ruled_stage s;
  s.filter({.least = 0, .allowed = {}, .banned = {{{0}}, {{26}}}}, {},
           openai::rule_of(rule_kind::regex, "[ab]{3}"));
  const auto chosen = s.to_the_end({});
  BOOST_TEST(chosen.size() == 3u);
  for (const core::token_id id : chosen)
    BOOST_TEST((id != 0 && id != 26 && id % 26 < 2));
}

BOOST_AUTO_TEST_CASE(a_text_keeps_to_its_rule_and_ends_with_it) {
  ruled_stage s;
  s.rule(rule_kind::regex, pattern);
  const auto chosen = s.to_the_end({});
  BOOST_TEST(chosen.size() == 6u);
  for (const core::token_id id : chosen)
    BOOST_TEST((id % 26 < 3 && id != s.end_token()));
  for (const core::serve_chosen& a : s.node.answers)
    for (const core::token_chance& t : a.rows[0].tokens[0].top)
      BOOST_TEST(t.token % 26 < 3); // no other one had a chance
}

/// As after the death of a stage, from each token on.
BOOST_AUTO_TEST_CASE(a_text_goes_on_elsewhere_as_it_would_have) {
  ruled_stage whole;
  whole.rule(rule_kind::regex, pattern);
  const auto expected = whole.to_the_end({});
  for (std::size_t known = 0; known <= expected.size(); ++known) {
    ruled_stage s;
    const std::vector chosen(expected.begin(),
                             expected.begin() + std::ptrdiff_t(known));
    s.rule(rule_kind::regex, pattern, chosen);
    BOOST_TEST(s.to_the_end(chosen) == expected,
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_text_may_end_with_a_token_only_where_its_rule_ends) {
  ruled_stage s;
  s.rule(rule_kind::regex, "a*");
  s.give({1, 5, 9, 2, 30}, 0);
  std::uint32_t drawn = 0;
  while (s.result().tokens[0].token % 26 == 0 && drawn < 8)
    s.give({s.result().tokens[0].token}, ++drawn);
  const core::row_result& last = s.result();
  BOOST_TEST(
    (last.tokens[0].token == s.end_token() || last.tokens[0].token % 26 == 0));
  BOOST_TEST(!last.stuck);
}

BOOST_AUTO_TEST_CASE(a_rule_that_no_token_can_keep_is_said) {
  for (const std::string text : {"[0-9]", "(unfinished"}) {
    ruled_stage s;
    s.rule(rule_kind::regex, text);
    s.give({1, 5, 9, 2, 30}, 0);
    BOOST_TEST(s.result().stuck);
    BOOST_TEST(s.result().tokens.empty());
    BOOST_TEST(s.broken.empty());
  }
}

BOOST_AUTO_TEST_CASE(a_pass_that_goes_on_elsewhere_in_a_text_is_refused) {
  ruled_stage s;
  s.rule(rule_kind::regex, pattern);
  s.give({1, 5, 9, 2, 30}, 2);
  BOOST_TEST(s.node.answers.empty());
  BOOST_REQUIRE(s.broken.size() == 1u);
  BOOST_TEST(s.broken[0].find("does not go on") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(texts_share_what_is_compiled_of_their_rule) {
  ruled_stage s;
  std::size_t made = 0;
  const auto open = [&](const std::string& text) {
    s.book->open(
      {under, 1, openai::rule_of(rule_kind::regex, text), {}, {}, {}},
      [&](const auto& t) { made += t != nullptr; });
  };
  for (std::size_t i = 0; i != 2 * actors::rule_book::kept_max; ++i) {
    open("a{" + std::to_string(i + 1) + "}");
    open("a{" + std::to_string(i + 1) + "}");
  }
  BOOST_TEST(made == 4 * actors::rule_book::kept_max);
  BOOST_TEST(s.book->kept() == actors::rule_book::kept_max);
  BOOST_TEST(s.read == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
