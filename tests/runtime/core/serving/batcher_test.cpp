// tests/runtime/core/serving/batcher_test.cpp -- rules of the batcher; and, by
// seed, many sequences at once, each compared with one that is alone.
#include "runtime/core/random.hpp"
#include "runtime/core/serving/batcher.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <deque>
#include <set>
#include <string>

BOOST_AUTO_TEST_SUITE(serving_batcher)

using namespace shoal::core;

namespace {

sequence_request
request(sequence_id id, std::size_t prompt, std::uint32_t tokens_max,
        client_id client = 0, std::int32_t priority = 0) {
  sequence_request out{id, client, priority, {}, tokens_max};
  for (std::size_t i = 0; i < prompt; ++i)
    out.tokens.push_back(token_id(1000 * id + i));
  return out;
}

/// One token for each row that asks for one.
std::vector<sampled_token> sampled(const pass& p) {
  std::vector<sampled_token> out;
  for (const pass_row& r : p.rows)
    if (r.samples)
      out.push_back({r.id, token_id(r.first + r.tokens.size()), false});
  return out;
}

const pass_row* row_of(const pass& p, sequence_id id) {
  const auto at = std::ranges::find(p.rows, id, &pass_row::id);
  return at == p.rows.end() ? nullptr : &*at;
}

batcher_limits limits(std::uint32_t pages, std::uint32_t pass_tokens = 64) {
  batcher_limits out;
  out.pages = pages;
  out.pass_tokens = pass_tokens;
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_sequence_is_computed_and_then_generates) {
  batcher b(limits(8));
  BOOST_TEST((b.add(request(1, 20, 3)) == refusal::none));
  auto p = b.next();
  BOOST_REQUIRE(p);
  BOOST_REQUIRE(p->rows.size() == 1u);
  BOOST_TEST(p->rows[0].tokens.size() == 20u);
  BOOST_TEST(p->rows[0].pages.size() == 2u);
  BOOST_TEST(p->rows[0].samples);
  BOOST_TEST(!b.next()); // one pass at a time
  BOOST_TEST(b.done(sampled(*p)).empty());
  p = b.next();
  BOOST_REQUIRE(p);
  BOOST_TEST(p->rows[0].first == 20u);
  BOOST_TEST(p->rows[0].tokens.size() == 1u);
  BOOST_TEST(b.done(sampled(*p)).empty());
  p = b.next();
  BOOST_TEST(b.done(sampled(*p)) == std::vector<sequence_id>{1},
             boost::test_tools::per_element());
  BOOST_TEST(!b.next());
  BOOST_TEST(b.pages().available() == 8u);
}

BOOST_AUTO_TEST_CASE(what_can_never_run_is_refused) {
  batcher_limits l = limits(2);
  l.waiting_max = 1;
  batcher b(l);
  BOOST_TEST((b.add(request(1, 0, 3)) == refusal::empty));
  BOOST_TEST((b.add(request(2, 3, 0)) == refusal::empty));
  BOOST_TEST((b.add(request(3, 30, 4)) == refusal::too_long));
  BOOST_TEST((b.add(request(4, 30, 3)) == refusal::none));
  BOOST_TEST((b.add(request(5, 1, 1)) == refusal::too_many));
}

BOOST_AUTO_TEST_CASE(a_long_prompt_holds_up_no_other_sequence) {
  batcher b(limits(64, 16));
  (void)b.add(request(1, 4, 20));
  (void)b.done(sampled(*b.next()));
  (void)b.add(request(2, 100, 1));
  for (int i = 0; i < 6; ++i) {
    const auto p = b.next();
    BOOST_REQUIRE(p);
    BOOST_REQUIRE(row_of(*p, 1));
    BOOST_REQUIRE(row_of(*p, 2));
    BOOST_TEST(row_of(*p, 2)->first == 15u * std::size_t(i));
    BOOST_TEST(row_of(*p, 2)->tokens.size() == 15u);
    BOOST_TEST(!row_of(*p, 2)->samples);
    (void)b.done(sampled(*p));
  }
  const auto p = b.next();
  BOOST_REQUIRE(row_of(*p, 2));
  BOOST_TEST(row_of(*p, 2)->tokens.size() == 10u);
  BOOST_TEST(row_of(*p, 2)->samples);
}

/// On a pipeline the pieces of a prompt follow each other without waiting.
BOOST_AUTO_TEST_CASE(pieces_of_a_prompt_are_in_several_passes_at_once) {
  batcher_limits l = limits(64, 16);
  l.passes_max = 3;
  batcher b(l);
  (void)b.add(request(1, 40, 5));
  for (const std::size_t count : {16u, 16u, 8u}) {
    const auto p = b.next();
    BOOST_REQUIRE(p);
    BOOST_TEST(p->rows[0].tokens.size() == count);
  }
  BOOST_TEST(b.present().under_way == 3u);
  BOOST_TEST(b.done({}).empty());
  BOOST_TEST(!b.next()); // its next token is not known yet
}

BOOST_AUTO_TEST_CASE(clients_take_turns) {
  batcher b(limits(64, 8));
  for (sequence_id id = 1; id <= 4; ++id)
    (void)b.add(request(id, 8, 1, 1));
  (void)b.add(request(9, 8, 1, 2));
  std::vector<sequence_id> first;
  while (const auto p = b.next()) {
    first.push_back(p->rows.front().id);
    (void)b.done(sampled(*p));
  }
  BOOST_TEST(first == (std::vector<sequence_id>{1, 9, 2, 3, 4}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(higher_priorities_go_first) {
  batcher b(limits(64, 8));
  (void)b.add(request(1, 8, 1));
  (void)b.add(request(2, 8, 1, 0, 5));
  BOOST_TEST(b.next()->rows.front().id == 2u);
}

/// Whose client reads already goes before prompts of clients with fewer tokens.
BOOST_AUTO_TEST_CASE(what_has_begun_elsewhere_goes_first) {
  batcher b(limits(64, 16));
  (void)b.add(request(1, 16, 2, 1));
  (void)b.add(request(2, 16, 2, 2));
  sequence_request begun = request(3, 16, 2, 1);
  begun.begun = true;
  (void)b.add(begun);
  const auto p = b.next();
  BOOST_REQUIRE(p);
  BOOST_TEST(row_of(*p, 3));
  (void)b.add(request(4, 16, 2, 3, 1)); // of a higher priority
  b.done(sampled(*p));
  const auto next = b.next();
  BOOST_REQUIRE(next);
  BOOST_TEST(row_of(*next, 4));
}

BOOST_AUTO_TEST_CASE(what_was_preempted_goes_on_before_others_begin) {
  batcher b(limits(3));
  (void)b.add(request(1, 16, 20, 1));
  (void)b.add(request(2, 15, 20, 1));
  auto p = b.next();
  for (int i = 0; i < 40 && b.present().preempted == 0; ++i) {
    b.done(sampled(*p));
    p = b.next();
    BOOST_REQUIRE(p);
  }
  BOOST_REQUIRE(b.present().preempted == 1u);
  (void)b.add(request(3, 1, 1, 2)); // whose client has had nothing
  while (row_of(*p, 1)) {
    b.done(sampled(*p));
    p = b.next();
    BOOST_REQUIRE(p);
  }
  BOOST_REQUIRE(!p->rows.empty());
  BOOST_TEST(p->rows[0].id == 2u);
}

BOOST_AUTO_TEST_CASE(the_youngest_gives_its_pages_to_the_oldest) {
  batcher b(limits(5));
  (void)b.add(request(1, 30, 20));
  (void)b.add(request(2, 30, 20));
  bool preempted = false;
  std::vector<sequence_id> ended;
  while (const auto p = b.next()) {
    preempted = preempted || (!row_of(*p, 2) && row_of(*p, 1));
    for (const sequence_id id : b.done(sampled(*p)))
      ended.push_back(id);
  }
  BOOST_TEST(preempted);
  BOOST_TEST(b.present().preempted == 1u);
  BOOST_TEST(b.present().reused == 16u); // what had not been overwritten
  BOOST_TEST(ended == (std::vector<sequence_id>{1, 2}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_sequence_whose_client_is_slow_gives_way) {
  batcher b(limits(4));
  (void)b.add(request(1, 30, 30));
  (void)b.done(sampled(*b.next()));
  b.hold(1, true);
  BOOST_TEST(!b.next());
  (void)b.add(request(2, 40, 1));
  const auto p = b.next();
  BOOST_REQUIRE(p);
  BOOST_TEST(p->rows.front().id == 2u); // though 1 is older
  (void)b.done(sampled(*p));
  BOOST_TEST(!b.next());
  b.hold(1, false);
  BOOST_TEST(b.next()->rows.front().id == 1u);
}

BOOST_AUTO_TEST_CASE(none_overtakes_one_that_waits_for_room) {
  batcher b(limits(4));
  (void)b.add(request(1, 40, 2));
  (void)b.done(sampled(*b.next()));
  (void)b.add(request(2, 60, 1)); // needs all pages
  (void)b.add(request(3, 3, 1));  // would fit
  const auto p = b.next();
  BOOST_REQUIRE(p);
  BOOST_TEST(row_of(*p, 1));
  BOOST_TEST(!row_of(*p, 3));
  (void)b.done(sampled(*p));
  BOOST_TEST(row_of(*b.next(), 2));
}

BOOST_AUTO_TEST_CASE(what_is_computed_whole_reuses_nothing) {
  batcher_limits l = limits(16);
  l.whole_tokens = 15;
  batcher b(l);
  (void)b.add(request(1, 40, 1));
  (void)b.done(sampled(*b.next()));
  sequence_request again = request(1, 40, 1);
  again.id = 2;
  again.whole = true;
  (void)b.add(std::move(again));
  for (const std::size_t count : {15u, 15u, 10u}) {
    const auto p = b.next();
    BOOST_REQUIRE(p);
    BOOST_TEST(p->rows[0].tokens.size() == count);
    (void)b.done(sampled(*p));
  }
  BOOST_TEST(!b.next());
  BOOST_TEST(b.present().reused == 0u);
}

BOOST_AUTO_TEST_CASE(tokens_of_aborted_sequences_are_ignored) {
  batcher b(limits(4));
  (void)b.add(request(1, 20, 9));
  const auto p = b.next();
  b.abort(1);
  b.abort(77); // unknown
  BOOST_TEST(b.done(sampled(*p)).empty());
  BOOST_TEST(!b.next());
  BOOST_TEST(b.pages().available() == 4u);
}

namespace {

/// A sequence that has said 1 2 3 4 5 6 and then 1 2 3, and goes on to say 4.
struct repeating : batcher {
  explicit repeating(std::uint32_t tokens_max = 20) : batcher(guessing()) {
    BOOST_REQUIRE(
      (add({1, 0, 0, {1, 2, 3, 4, 5, 6, 1, 2, 3}, tokens_max, false, false})
       == refusal::none));
    const auto p = next();
    BOOST_REQUIRE(p);
    BOOST_TEST(p->rows[0].guesses == 0u); // of a prompt
    BOOST_TEST(done({{1, 4, false}}).empty());
  }
  static batcher_limits guessing() {
    batcher_limits l = limits(8);
    l.guesses_max = 8;
    l.guess_rows = 6;
    return l;
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(what_followed_before_is_guessed_and_taken_if_chosen) {
  repeating b;
  auto p = b.next();
  BOOST_REQUIRE(p);
  BOOST_TEST(p->rows[0].first == 9u);
  BOOST_TEST(p->rows[0].tokens == (std::vector<token_id>{4, 5, 6, 1, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(p->rows[0].guesses == 4u);
  BOOST_TEST(p->rows[0].samples);
  BOOST_TEST(!b.next());
  BOOST_TEST(b.done({{1, 5, false}, {1, 6, false}, {1, 9, false}}).empty());
  BOOST_TEST(b.present().guessed == 4u);
  BOOST_TEST(b.present().accepted == 2u);
  // It goes on behind the 6, with the 9; nothing is known of 6 9.
  p = b.next();
  BOOST_REQUIRE(p);
  BOOST_TEST(p->rows[0].first == 12u);
  BOOST_TEST(p->rows[0].tokens == (std::vector<token_id>{9}),
             boost::test_tools::per_element());
  BOOST_TEST(p->rows[0].guesses == 0u);
}

BOOST_AUTO_TEST_CASE(wrong_guesses_are_not_tried_again_at_once) {
  repeating b;
  (void)b.next();
  (void)b.done({{1, 4, false}}); // 3 4 4: none of the four was right
  (void)b.next();
  (void)b.done({{1, 5, false}}); // 4 5 would be known
  const auto p = b.next();
  BOOST_REQUIRE(p);
  BOOST_TEST(p->rows[0].guesses == 1u);
}

BOOST_AUTO_TEST_CASE(guesses_end_where_the_sequence_does) {
  repeating b(4);
  const auto p = b.next();
  BOOST_REQUIRE(p);
  BOOST_TEST(p->rows[0].guesses == 2u); // three tokens are left
  BOOST_TEST(b.done({{1, 5, false}, {1, 6, false}, {1, 1, false}})
               == std::vector<sequence_id>{1},
             boost::test_tools::per_element());
  BOOST_TEST(b.pages().available() == 8u);
}

BOOST_AUTO_TEST_CASE(nothing_is_guessed_while_a_prompt_is_computed) {
  repeating b;
  (void)b.add(request(2, 100, 1));
  const auto p = b.next();
  BOOST_REQUIRE(p);
  BOOST_REQUIRE(row_of(*p, 1));
  BOOST_TEST(row_of(*p, 1)->guesses == 0u);
  BOOST_TEST(row_of(*p, 2));
}

// By seed: what the stages of a pipeline would see. ---------------------------

namespace {

/// The token that follows these.
std::uint64_t after(std::uint64_t before, token_id t) {
  return cluster::random(before * 31 + std::uint64_t(t) + 1).next();
}

token_id chosen(std::uint64_t state) {
  return token_id(state % 5); // few: many beginnings are equal
}

/// Memory of one stage: for each token of a page a value that depends on that
/// token and on all before it, as keys and values do.
class memory {
public:
  explicit memory(std::uint32_t pages) : all_(pages * page_tokens) {}

  /// Computes a row; its pages must hold what comes before.
  /// @returns the value of its last token
  std::uint64_t compute(const pass_row& r, const std::vector<token_id>& whole) {
    std::uint64_t state = 0;
    for (std::size_t i = 0; i < r.first; ++i) {
      state = after(state, whole[i]);
      BOOST_REQUIRE(at(r, i) == state);
    }
    for (std::size_t i = 0; i < r.tokens.size(); ++i) {
      BOOST_REQUIRE(whole[r.first + i] == r.tokens[i]);
      state = after(state, r.tokens[i]);
      at(r, r.first + i) = state;
    }
    return state;
  }

private:
  std::uint64_t& at(const pass_row& r, std::size_t position) {
    return all_[r.pages.at(position / page_tokens) * page_tokens
                + position % page_tokens];
  }
  std::vector<std::uint64_t> all_;
};

struct client_stream {
  std::vector<token_id> tokens; ///< prompt, and what was generated
  std::size_t prompt = 0;
  std::uint32_t tokens_max = 0;
  bool aborted = false;
  bool ended = false;
};

class serving_run {
public:
  explicit serving_run(std::uint64_t seed) : random_(seed) {
    limits_.pages = std::uint32_t(4 + below(40));
    limits_.pass_tokens = std::uint32_t(1 + below(80));
    limits_.passes_max = std::uint32_t(1 + below(4));
    limits_.running_max = std::uint32_t(1 + below(20));
    limits_.waiting_max = 40;
    limits_.clients_max = std::uint32_t(1 + below(4));
  }

  void run() {
    batcher b(limits_);
    // Each pass is computed when it is given out; its tokens come back later.
    memory stage(limits_.pages);
    std::deque<std::vector<sampled_token>> under_way;
    int arrivals = 60;
    for (int turn = 0; arrivals > 0 || !all_over(); ++turn) {
      BOOST_REQUIRE(turn < 200'000);
      if (arrivals > 0 && below(3) == 0) {
        --arrivals;
        arrive(b);
      }
      if (below(10) == 0)
        toggle(b);
      if (below(40) == 0)
        abort_one(b);
      auto p = below(2) == 0 || under_way.empty() ? b.next() : std::nullopt;
      if (p) {
        check(*p, b);
        under_way.push_back(compute(stage, *p));
      } else if (!under_way.empty()) {
        for (const sequence_id id : b.done(take(under_way)))
          streams_.at(id).ended = true;
      } else {
        release(b); // no work unless all that is left is held
      }
    }
    while (!under_way.empty())
      (void)b.done(take(under_way));
    // Nothing is left over.
    BOOST_TEST(!b.next());
    BOOST_TEST(b.present().running == 0u);
    BOOST_TEST(b.present().waiting == 0u);
    BOOST_TEST(b.pages().available() == limits_.pages);
    for (const auto& [id, s] : streams_)
      if (!s.aborted)
        compare_with_alone(s);
    reused_ = b.present().reused;
    preempted_ = b.present().preempted;
  }

  std::uint64_t reused_ = 0, preempted_ = 0;

private:
  std::uint64_t below(std::uint64_t n) { return random_.below(n); }

  void arrive(batcher& b) {
    sequence_request r;
    r.id = next_id_++;
    r.client = below(6);
    r.priority = std::int32_t(below(3));
    for (std::uint64_t n = 1 + below(90); n > 0; --n)
      r.tokens.push_back(token_id(below(50) == 0 ? below(5) : 0));
    r.tokens_max = std::uint32_t(1 + below(30));
    const client_stream s{r.tokens, r.tokens.size(), r.tokens_max};
    const sequence_id id = r.id;
    if (b.add(std::move(r)) == refusal::none)
      streams_[id] = s;
  }

  void toggle(batcher& b) {
    if (streams_.empty())
      return;
    const sequence_id id = below(next_id_);
    if (!held_.insert(id).second)
      held_.erase(id);
    b.hold(id, held_.contains(id));
  }

  void release(batcher& b) {
    BOOST_REQUIRE((all_over() || !held_.empty()));
    for (const sequence_id id : held_)
      b.hold(id, false);
    held_.clear();
  }

  void abort_one(batcher& b) {
    const sequence_id id = below(next_id_ + 1);
    b.abort(id);
    if (const auto at = streams_.find(id);
        at != streams_.end() && !at->second.ended)
      at->second.ended = at->second.aborted = true;
  }

  bool all_over() const {
    return std::ranges::all_of(streams_,
                               [](const auto& s) { return s.second.ended; });
  }

  void check(const pass& p, const batcher& b) {
    std::size_t tokens = 0;
    std::set<sequence_id> once;
    for (const pass_row& r : p.rows) {
      tokens += r.tokens.size();
      BOOST_REQUIRE(once.insert(r.id).second);
      BOOST_REQUIRE(!held_.contains(r.id));
      BOOST_REQUIRE(!r.tokens.empty());
      BOOST_REQUIRE(r.pages.size() == pages_for(r.first + r.tokens.size()));
    }
    BOOST_REQUIRE(tokens <= limits_.pass_tokens);
    BOOST_REQUIRE(b.present().running <= limits_.running_max);
    BOOST_REQUIRE(b.present().under_way <= limits_.passes_max);
  }

  std::vector<sampled_token> compute(memory& stage, const pass& p) {
    std::vector<sampled_token> out;
    for (const pass_row& r : p.rows) {
      client_stream& s = streams_.at(r.id);
      const std::uint64_t state = stage.compute(r, s.tokens);
      if (!r.samples)
        continue;
      BOOST_REQUIRE(r.first + r.tokens.size() == s.tokens.size());
      out.push_back({r.id, chosen(state), chosen(state) == 4});
    }
    return out;
  }

  std::vector<sampled_token>
  take(std::deque<std::vector<sampled_token>>& under_way) {
    std::vector<sampled_token> out = std::move(under_way.front());
    under_way.pop_front();
    for (const sampled_token& t : out)
      if (client_stream& s = streams_.at(t.id); !s.aborted)
        s.tokens.push_back(t.token);
    return out;
  }

  static void compare_with_alone(const client_stream& s) {
    std::uint64_t state = 0;
    for (std::size_t i = 0; i < s.prompt; ++i)
      state = after(state, s.tokens[i]);
    std::size_t n = s.prompt;
    for (std::uint32_t left = s.tokens_max; left > 0; --left) {
      BOOST_REQUIRE(n < s.tokens.size());
      BOOST_REQUIRE(s.tokens[n] == chosen(state));
      state = after(state, s.tokens[n]);
      if (s.tokens[n++] == 4)
        break;
    }
    BOOST_REQUIRE(n == s.tokens.size());
  }

  cluster::random random_;
  batcher_limits limits_;
  std::map<sequence_id, client_stream> streams_;
  std::set<sequence_id> held_;
  sequence_id next_id_ = 1;
};

} // namespace

BOOST_AUTO_TEST_CASE(each_stream_is_that_of_a_sequence_alone) {
  std::uint64_t reused = 0, preempted = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      serving_run run(seed);
      run.run();
      reused += run.reused_;
      preempted += run.preempted_;
    }
  }
  BOOST_TEST(reused > 0u); // else the seeds try too little
  BOOST_TEST(preempted > 0u);
}

BOOST_AUTO_TEST_SUITE_END()
