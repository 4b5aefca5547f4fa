// runtime/core/serving/pipeline.cpp -- streams, passes and reports.
#include "runtime/core/serving/pipeline.hpp"

#include "runtime/core/assert.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core {

serving_pipeline::serving_pipeline(pipeline_config config)
  : config_(std::move(config)), batcher_(config_.limits) {
}

void serving_pipeline::send(const peer_id& to, serve_message what) {
  out_.push_back({to, std::move(what)});
}

serve_sends serving_pipeline::finish(nanoseconds now) {
  now_ = now;
  give_passes();
  flush_news();
  if (changed_ && now - reported_ >= report_every)
    report();
  return std::exchange(out_, {});
}

serve_sends
serving_pipeline::set_members(std::set<peer_id> members, nanoseconds now) {
  now_ = now;
  members_ = std::move(members);
  std::vector<sequence_id> gone;
  for (const auto& [id, s] : streams_)
    if (!members_.contains(s.key.first))
      gone.push_back(id);
  for (const sequence_id id : gone) {
    batcher_.abort(id);
    forget(id);
  }
  report();
  if (!ready())
    tick(now);
  return finish(now);
}

serve_sends serving_pipeline::take(const peer_id& from, const serve_message& m,
                                   nanoseconds now) {
  now_ = now;
  if (core::header(m) == config_.header)
    std::visit([&](const auto& what) { on(from, what); }, m);
  return finish(now);
}

serve_sends serving_pipeline::tick(nanoseconds now) {
  now_ = now;
  if (!ready() && (asked_ == 0 || now - asked_ >= again_after)) {
    asked_ = now;
    for (std::uint32_t i = 0; i < config_.stages.size(); ++i)
      if (!ready_.contains(i))
        send(config_.stages[i], serve_ask{config_.header});
  }
  // Whether the word of its gateway was lost.
  for (auto& [id, s] : streams_)
    if (s.held && now - s.told_of >= again_after) {
      s.told_of = now;
      news_[s.key.first].push_back(
        {s.key.second, s.tokens.size(), {}, stream_end::none, s.begun, true});
    }
  for (auto& [id, s] : streams_)
    if (s.waits && now - s.waited >= again_after) {
      send_rule(id); // it was lost, or the word that it is ready
      resume(id);
    }
  for (given& g : under_way_)
    if (now - g.at >= again_after) {
      g.at = now;
      for (const serve_row& r : g.pass.rows)
        send_rule(r.sequence);
      for (const peer_id& stage : config_.stages)
        send(stage, g.pass);
    }
  return finish(now);
}

// Messages. -------------------------------------------------------------------

void serving_pipeline::on(const peer_id& from, const serve_request& m) {
  if (!members_.contains(from))
    return;
  const stream_key key{from, m.stream};
  if (const auto at = ids_.find(key); at != ids_.end()) {
    // what it lacks, as far as it is here.
    stream& s = streams_.at(at->second);
    set_held(at->second, false); // who asks, takes
    if (m.tokens.size() >= s.prompt && m.tokens.size() < s.tokens.size())
      tell(s, m.tokens.size());
    return;
  }
  const sequence_id id = ++last_id_;
  const std::vector<token_id> more = known(m);
  std::vector<token_id> tokens = m.tokens;
  tokens.insert(tokens.end(), more.begin(), more.end());
  const bool pooled = m.pooled != pooling::none;
  const refusal why =
    batcher_.add({id, m.client, m.priority, tokens,
                  m.tokens_max - std::uint32_t(more.size()), m.alone,
                  m.scored || m.pooled == pooling::mean,
                  !m.how.counts_tokens() && !m.rule && !m.filter && !pooled,
                  m.chosen > 0 || more.size() >= page_tokens, pooled});
  if (why != refusal::none)
    return refuse(key, m.tokens.size(), why);
  stream s;
  s.key = key;
  s.asked_by = m.key;
  s.prompt = m.tokens.size();
  s.tokens = std::move(tokens);
  for (const token_id t : more)
    s.told.push_back({t, 0, {}});
  recalled_ += more.size();
  s.chosen = m.chosen;
  s.ends = m.ends;
  s.how = m.how;
  s.wants_scores = m.scored;
  s.pooled = m.pooled;
  if (m.rule || m.filter) {
    serve_rule& rule = rules_[id];
    rule = {config_.header, id, m.rule, m.filter, {}, m.ends};
    rule.chosen.assign(s.tokens.begin() + std::ptrdiff_t(s.prompt - m.chosen),
                       s.tokens.end());
  }
  const stream& made = streams_.emplace(id, std::move(s)).first->second;
  ids_.emplace(key, id);
  changed_ = true;
  if (!more.empty())
    tell(made, made.prompt);
}

text_source serving_pipeline::source_of(sequence_id id) const {
  const stream& s = streams_.at(id);
  text_source out;
  out.key = s.asked_by;
  out.prompt.assign(s.tokens.begin(),
                    s.tokens.begin() + std::ptrdiff_t(s.prompt - s.chosen));
  out.ends = s.ends;
  out.how = s.how;
  if (const auto at = rules_.find(id); at != rules_.end()) {
    out.rule = at->second.rule;
    out.filter = at->second.filter;
  }
  return out;
}

/// What is known of its text behind the request's tokens, but for its last token:
/// something is left to be chosen.
std::vector<token_id> serving_pipeline::known(const serve_request& m) const {
  if (m.key == 0 || m.scored || m.pooled != pooling::none)
    return {};
  const auto prompt = m.tokens.end() - std::ptrdiff_t(m.chosen);
  const text_source of{m.key,  m.how,  {m.tokens.begin(), prompt},
                       m.ends, m.rule, m.filter};
  std::span<const token_id> longest = texts_.find(of);
  // Its former gateway may have died without anybody's knowing yet.
  for (const auto& [id, s] : streams_)
    if (const std::size_t prompt_size = s.prompt - s.chosen;
        s.asked_by == m.key && s.how == m.how && prompt_size == of.prompt.size()
        && s.tokens.size() - prompt_size > longest.size()
        && source_of(id) == of)
      longest = std::span(s.tokens).subspan(prompt_size);
  while (!longest.empty()
         && std::ranges::find(m.ends, longest.back()) != m.ends.end())
    longest = longest.first(longest.size() - 1);
  if (longest.size() <= m.chosen
      || !std::equal(prompt, m.tokens.end(), longest.begin()))
    return {};
  longest = longest.subspan(m.chosen);
  longest =
    longest.first(std::min<std::size_t>(longest.size(), m.tokens_max - 1));
  return {longest.begin(), longest.end()};
}

/// Its chosen tokens from a position on, a message's share at a time.
void serving_pipeline::tell(const stream& s, std::size_t from) {
  do {
    stream_news n{s.key.second, from, {}, stream_end::none, true};
    if (from == s.prompt)
      n.scored = s.scored;
    const auto at = s.told.begin() + std::ptrdiff_t(from - s.prompt);
    const std::size_t most = n.scored.size() < serving::news_tokens_max
                               ? serving::news_tokens_max - n.scored.size()
                               : 1;
    n.tokens.assign(
      at, at + std::ptrdiff_t(std::min(most, s.tokens.size() - from)));
    from += n.tokens.size();
    news_[s.key.first].push_back(std::move(n));
  } while (from < s.tokens.size());
}

void serving_pipeline::refuse(const stream_key& key, std::uint64_t first,
                              refusal why) {
  stream_news n{key.second, first, {}, stream_end::too_long, false};
  if (why == refusal::too_many)
    n.end = stream_end::busy;
  news_[key.first].push_back(std::move(n));
}

void serving_pipeline::on(const peer_id& from, const serve_cancel& m) {
  const auto at = ids_.find({from, m.stream});
  if (at == ids_.end())
    return;
  const sequence_id id = at->second;
  batcher_.abort(id);
  forget(id);
}

void serving_pipeline::on(const peer_id& from, const serve_hold& m) {
  if (const auto at = ids_.find({from, m.stream}); at != ids_.end())
    set_held(at->second, m.held);
}

void serving_pipeline::set_held(sequence_id id, bool held) {
  batcher_.hold(id, held);
  stream& s = streams_.at(id);
  s.held = held;
  s.told_of = now_;
}

void serving_pipeline::on(const peer_id& from, const report_wanted&) {
  if (members_.contains(from))
    send(from, present());
}

void serving_pipeline::on(const peer_id& from, const serve_ready& m) {
  if (m.stage >= config_.stages.size() || config_.stages[m.stage] != from)
    return;
  if (ready_.insert(m.stage).second && ready())
    report();
}

void serving_pipeline::on(const peer_id& from, const serve_chosen& m) {
  if (from != config_.stages.back() || under_way_.empty()
      || m.number != under_way_.front().pass.number)
    return; // it comes again, or has come
  std::vector<sampled_token> sampled;
  std::set<sequence_id> seen, waiting;
  for (const row_result& r : m.rows) {
    if (!seen.insert(r.sequence).second)
      continue;
    const auto& rows = under_way_.front().pass.rows;
    const auto of = std::ranges::find(rows, r.sequence, &serve_row::sequence);
    if (of == rows.end() || !streams_.contains(r.sequence))
      continue;
    if (r.waits && of->choice && rules_.contains(r.sequence)) {
      stream& s = streams_.at(r.sequence);
      s.waits = true;
      s.waited = now_;
      waiting.insert(r.sequence);
    }
    const auto chosen = keep(*of, r);
    sampled.insert(sampled.end(), chosen.begin(), chosen.end());
  }
  measure(under_way_.front());
  under_way_.pop_front();
  ++done_;
  for (const sequence_id id : batcher_.done(sampled, waiting)) {
    const stream& s = streams_.at(id);
    auto& news = news_[s.key.first];
    const auto of = std::ranges::find(news.rbegin(), news.rend(), s.key.second,
                                      &stream_news::stream);
    if (s.pooled != pooling::none)
      of->end = stream_end::complete;
    else
      of->end = std::ranges::find(s.ends, s.tokens.back()) != s.ends.end()
                  ? stream_end::stop
                  : stream_end::length;
    forget(id);
  }
  changed_ = true;
}

void serving_pipeline::on(const peer_id& from, const serve_text_ready& m) {
  if (from == config_.stages.back())
    resume(m.sequence);
}

/// A row whose token could not be chosen is given again.
void serving_pipeline::resume(sequence_id id) {
  if (const auto at = streams_.find(id); at != streams_.end()) {
    at->second.waits = false;
    batcher_.resume(id);
  }
}

/// Takes what came of a row, and tells its gateway. @returns the tokens
std::vector<sampled_token>
serving_pipeline::keep(const serve_row& of, const row_result& r) {
  stream& s = streams_.at(r.sequence);
  if (r.broken || r.stuck) {
    end(r.sequence, r.broken ? stream_end::broken : stream_end::stuck);
    return {};
  }
  // What another peer says may be more than was asked for.
  const std::size_t scores = of.scores ? of.scores->tokens.size() : 0;
  s.scored.insert(s.scored.end(), r.scored.begin(),
                  r.scored.begin()
                    + std::ptrdiff_t(std::min(scores, r.scored.size())));
  std::vector<sampled_token> out;
  if (of.pooled && of.pooled->ends) {
    stream_news n{s.key.second, s.tokens.size(), {}, stream_end::none, true};
    n.pooled = r.pooled;
    news_[s.key.first].push_back(std::move(n));
    return {{r.sequence, 0, true}};
  }
  if (!of.choice || (r.waits && rules_.contains(r.sequence)))
    return out;
  const std::size_t from = s.tokens.size();
  for (const served_token& t : r.tokens) {
    const bool stops = std::ranges::find(s.ends, t.token) != s.ends.end();
    out.push_back({r.sequence, t.token, stops});
    s.tokens.push_back(t.token);
    s.told.push_back(t);
    if (stops || out.size() > of.guesses)
      break;
  }
  if (!out.empty())
    tell(s, from);
  const bool complete = r.complete && of.choice->ruled;
  if (complete ? out.empty() || !out.back().last : out.empty()) {
    end(r.sequence, complete ? stream_end::complete : stream_end::broken);
    return {};
  }
  return out;
}

/// Ends a stream before its batcher does; its last tokens and the end are one piece
/// of news.
void serving_pipeline::end(sequence_id id, stream_end why) {
  const stream& s = streams_.at(id);
  auto& news = news_[s.key.first];
  const auto last = std::ranges::find(news.rbegin(), news.rend(), s.key.second,
                                      &stream_news::stream);
  if (last != news.rend() && !last->tokens.empty())
    last->end = why;
  else
    news.push_back({s.key.second, s.tokens.size(), {}, why, true});
  batcher_.abort(id);
  forget(id);
}

void serving_pipeline::measure(const given& g) {
  std::size_t generating = 0, of_prompts = 0;
  for (const serve_row& r : g.pass.rows)
    if (r.guesses > 0)
      return; // no other pass is like it
  for (const serve_row& r : g.pass.rows)
    if (r.choice && r.tokens.size() == 1)
      ++generating;
    else
      of_prompts += r.tokens.size();
  pace_.took(generating, of_prompts, now_ - g.at);
  batcher_.set_beside(pace_.beside());
}

void serving_pipeline::forget(sequence_id id) {
  const auto at = streams_.find(id);
  const stream& s = at->second;
  if (s.asked_by != 0) {
    const auto chosen = std::ptrdiff_t(s.prompt - s.chosen);
    texts_.keep(source_of(id), {s.tokens.begin() + chosen, s.tokens.end()});
  }
  ids_.erase(s.key);
  if (!s.sent.empty())
    ended_.push_back(id);
  streams_.erase(at);
  rules_.erase(id);
  changed_ = true;
}

// Passes. ---------------------------------------------------------------------

void serving_pipeline::give_passes() {
  if (!ready())
    return;
  while (auto next = batcher_.next()) {
    given& g = under_way_.emplace_back();
    g.at = now_;
    g.pass.header = config_.header;
    g.pass.number = next->number;
    for (const pass_row& r : next->rows) {
      stream& s = streams_.at(r.id);
      g.pass.rows.push_back(row_of(r, s));
      s.sent = r.pages;
      s.sent_windows = r.windows;
      if (!s.begun) {
        s.begun = true;
        send_rule(r.id);
        news_[s.key.first].push_back(
          {s.key.second, s.tokens.size(), {}, stream_end::none, true});
      }
    }
    const std::size_t some = std::min(ended_.size(), serving::rows_max);
    g.pass.ended.assign(ended_.begin(), ended_.begin() + std::ptrdiff_t(some));
    ended_.erase(ended_.begin(), ended_.begin() + std::ptrdiff_t(some));
    g.pass.oldest = streams_.empty() ? last_id_ + 1 : streams_.begin()->first;
    for (const peer_id& stage : config_.stages)
      send(stage, g.pass);
  }
}

/// The last stage keeps it until the sequence has ended.
void serving_pipeline::send_rule(sequence_id id) {
  if (const auto at = rules_.find(id); at != rules_.end())
    send(config_.stages.back(), at->second);
}

/// What a table has behind the part that `before` has, too.
static std::vector<page_id>
changed(const std::vector<page_id>& before, const std::vector<page_id>& table,
        std::uint64_t& kept) {
  const auto differ = std::ranges::mismatch(before, table);
  kept = std::uint64_t(differ.in2 - table.begin());
  return {differ.in2, table.end()};
}

serve_row serving_pipeline::row_of(const pass_row& from, stream& s) const {
  serve_row r;
  r.sequence = from.id;
  r.first = from.first;
  r.tokens = from.tokens;
  r.pages = changed(s.sent, from.pages, r.pages_kept);
  r.windows = changed(s.sent_windows, from.windows, r.windows_kept);
  // Those that are known were computed before the sequence lost its pages.
  const std::size_t first = std::max(from.first, s.scored.size());
  const std::size_t end =
    std::min(from.first + from.tokens.size(), s.prompt - 1);
  if (s.wants_scores && first < end) {
    row_scores& scores = r.scores.emplace();
    scores.top = s.how.logprobs;
    scores.tokens.assign(s.tokens.begin() + std::ptrdiff_t(first + 1),
                         s.tokens.begin() + std::ptrdiff_t(end + 1));
  }
  if (s.pooled == pooling::mean || (s.pooled == pooling::last && from.samples))
    r.pooled = row_pooling{s.pooled, from.samples};
  if (!from.samples || s.pooled != pooling::none)
    return r;
  r.guesses = from.guesses;
  row_choice& c = r.choice.emplace();
  c.how = s.how;
  c.drawn = s.chosen + std::uint32_t(s.told.size());
  c.ruled = rules_.contains(from.id);
  if (s.how.repetition_penalty != 1) {
    c.seen = s.tokens;
    std::ranges::sort(c.seen);
    c.seen.erase(std::unique(c.seen.begin(), c.seen.end()), c.seen.end());
  }
  if (s.how.frequency_penalty != 0 || s.how.presence_penalty != 0) {
    std::map<token_id, std::uint32_t> counts;
    for (std::size_t i = s.prompt - s.chosen; i < s.tokens.size(); ++i)
      ++counts[s.tokens[i]];
    for (const auto& [token, count] : counts)
      c.counts.push_back({token, count});
  }
  return r;
}

// What gateways hear. ---------------------------------------------------------

/// Of a message of news, hidden states take as much room as tokens do.
static constexpr std::size_t pooled_token_bytes =
  serving::pooled_bytes_max / serving::news_tokens_max;

void serving_pipeline::flush_news() {
  for (auto& [to, all] : std::exchange(news_, {})) {
    serve_news m;
    m.header = config_.header;
    std::size_t tokens = 0;
    for (stream_news& n : all) {
      const std::size_t more = n.tokens.size() + n.scored.size()
                               + n.pooled.size() / pooled_token_bytes;
      if (m.streams.size() == serving::rows_max
          || (!m.streams.empty() && tokens + more > serving::news_tokens_max)) {
        send(to, std::exchange(m, {config_.header, {}}));
        tokens = 0;
      }
      tokens += more;
      m.streams.push_back(std::move(n));
    }
    if (!m.streams.empty())
      send(to, std::move(m));
  }
}

pipeline_report serving_pipeline::present() const {
  const auto load = batcher_.present();
  pipeline_report r;
  r.header = config_.header;
  r.ready = ready();
  r.room = std::uint64_t(batcher_.pages().total()) * page_tokens;
  r.waiting = batcher_.tokens_waiting();
  r.per_s = pace_.prompts_per_s();
  r.streams = std::uint32_t(streams_.size());
  r.running = std::uint32_t(load.running);
  r.pages = batcher_.pages().total() - batcher_.pages().available();
  r.guessed = load.guessed;
  r.accepted = load.accepted;
  return r;
}

void serving_pipeline::report() {
  const pipeline_report r = present();
  for (const peer_id& to : members_)
    send(to, r);
  reported_ = now_;
  changed_ = false;
}

} // namespace shoal::core
