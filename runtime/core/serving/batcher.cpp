// runtime/core/serving/batcher.cpp -- generating sequences first, then prompts.
#include "runtime/core/serving/batcher.hpp"

#include "runtime/core/assert.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shoal::core {

batcher::batcher(const batcher_limits& limits)
  : limits_(limits), pool_(limits.pages, limits.windows),
    beside_(limits.pass_tokens) {
  const window_pages& w = limits.windows;
  SHOAL_ASSERT(w.pages == 0 || w.pages >= limits.pages
               || w.pages >= window_ring(w.window, limits.pass_tokens)); // B-3
  limits_.running_max = std::min(limits_.running_max, limits_.pass_tokens);
}

refusal batcher::add(sequence_request r) {
  SHOAL_ASSERT(!all_.contains(r.id));
  if (r.tokens.empty() || r.tokens_max == 0)
    return refusal::empty;
  // The last token needs no room: nothing follows from it.
  if (pages_for(r.tokens.size() + r.tokens_max - 1) > pool_.total())
    return refusal::too_long;
  if (all_.size() - running_ >= limits_.waiting_max)
    return refusal::too_many;
  sequence s;
  s.left = r.tokens_max;
  s.begun = r.begun;
  s.came = ++arrivals_;
  const sequence_id id = r.id;
  s.what = std::move(r);
  all_.emplace(id, std::move(s));
  return refusal::none;
}

void batcher::abort(sequence_id id) {
  if (all_.contains(id))
    finish(id);
}

/// Its pages are free at once, although passes under way may still write into
/// them: the next sequence that gets a page writes into it in a later pass (B-2).
void batcher::finish(sequence_id id) {
  const auto at = all_.find(id);
  if (at->second.runs) {
    pool_.end(at->second.table);
    --running_;
  }
  all_.erase(at);
}

void batcher::hold(sequence_id id, bool held) {
  if (const auto at = all_.find(id); at != all_.end())
    at->second.held = held;
}

void batcher::resume(sequence_id id) {
  if (const auto at = all_.find(id); at != all_.end())
    at->second.waits = false;
}

/// Those that can go on, the oldest of the highest priority first.
std::vector<batcher::sequence*> batcher::generating() {
  std::vector<sequence*> out;
  for (auto& [id, s] : all_)
    if (s.runs && !s.held && !s.waits && !s.what.alone
        && s.given + 1 == s.what.tokens.size())
      out.push_back(&s);
  std::ranges::sort(out, {}, [](const sequence* s) {
    return std::tuple(-std::int64_t(s->what.priority), s->began);
  });
  return out;
}

std::uint64_t batcher::fair_time(client_id c) const {
  const auto at = used_.find(c);
  return at == used_.end() ? fair_now_ : std::max(at->second, fair_now_);
}

/// Those of whose prompt something has to be given out, in their turn.
std::vector<batcher::sequence*> batcher::with_prompt() {
  using turn = std::tuple<std::int64_t, bool, std::uint64_t, std::uint64_t>;
  std::vector<std::pair<turn, sequence*>> in_turn;
  for (auto& [id, s] : all_)
    if (!s.held && !s.waits && !s.what.alone
        && (!s.runs || s.given + 1 < s.what.tokens.size()))
      in_turn.push_back({{-std::int64_t(s.what.priority), !s.begun,
                          fair_time(s.what.client), s.came},
                         &s});
  std::ranges::sort(in_turn);
  std::vector<sequence*> out;
  for (const auto& [its_turn, s] : in_turn)
    out.push_back(s);
  return out;
}

std::optional<pass> batcher::next() {
  if (under_way_.size() >= limits_.passes_max
      || (was_alone_ && !under_way_.empty()))
    return std::nullopt;
  sequence* const alone = next_to_be_alone();
  const bool its_turn = alone && !was_alone_;
  if (its_turn && !under_way_.empty())
    return std::nullopt; // its turn would never come
  std::optional<pass> out;
  if (its_turn && (out = next_alone(*alone)))
    return out;
  if ((out = next_together()))
    return out;
  return alone && !its_turn ? next_alone(*alone) : std::nullopt;
}

/// The oldest sequence that is to be alone, and can go on.
batcher::sequence* batcher::next_to_be_alone() {
  sequence* first = nullptr;
  for (auto& [id, s] : all_)
    if (s.what.alone && !s.held && !s.waits && s.given < s.what.tokens.size()
        && (!first || s.came < first->came))
      first = &s;
  return first;
}

std::optional<pass> batcher::next_alone(sequence& s) {
  sequence* const first = &s;
  if (first->runs ? !make_room(*first, first->what.tokens.size())
                  : !start(*first))
    return std::nullopt;
  pass out;
  give(out, *first,
       std::min<std::size_t>(
         std::min<std::size_t>(whole_room(*first), limits_.pass_tokens),
         first->what.tokens.size() - first->given));
  was_alone_ = true;
  return finished(std::move(out));
}

/// Tokens of a sequence that a pass may have for the probabilities that it takes.
std::size_t batcher::whole_room(const sequence& s) const {
  return s.what.whole && !s.what.pooled ? limits_.whole_tokens
                                        : limits_.pass_tokens;
}

/// The sequences that generate, over the passes that may be under way: if one
/// took all, the stages would wait for each other.
std::size_t batcher::share() const {
  std::size_t all = 0;
  for (const auto& [id, s] : all_)
    all += s.runs && !s.what.alone && s.given + 1 >= s.what.tokens.size();
  return (all + limits_.passes_max - 1) / limits_.passes_max;
}

std::optional<pass> batcher::next_together() {
  pass out;
  std::size_t left = limits_.pass_tokens;
  std::size_t pooled_left = limits_.pooled_rows;
  const std::size_t most = share();
  const auto generate = generating();
  std::size_t spare = std::min<std::size_t>(left, limits_.guess_rows);
  spare -= std::min({spare, most, generate.size()});
  if (limits_.guesses_max == 0 || !with_prompt().empty())
    spare = 0;
  for (sequence* s : generate) {
    // One before it may have taken its pages.
    if (left == 0 || out.rows.size() >= most || !s->runs
        || (s->what.pooled && pooled_left == 0)
        || !make_room(*s, s->what.tokens.size()))
      continue;
    pooled_left -= s->what.pooled ? 1 : 0;
    const auto guesses = guess(*s, spare);
    give(out, *s, 1, guesses);
    spare -= guesses.size();
    left -= 1 + guesses.size();
  }
  if (!out.rows.empty())
    left = std::min(left, beside_);
  std::size_t whole_left = limits_.whole_tokens;
  bool starts = true;
  std::int64_t full = 0; // no room for a sequence of this priority
  for (sequence* s : with_prompt()) {
    if (left == 0)
      break;
    if (s->what.pooled && pooled_left == 0)
      continue;
    // None overtakes one that waits for room, or large ones would wait for ever.
    if (!s->runs && ((!starts && s->what.priority <= full) || !start(*s))) {
      full = starts ? s->what.priority : full;
      starts = false;
      continue;
    }
    std::size_t count = std::min(left, s->what.tokens.size() - s->given);
    if (s->what.whole && !s->what.pooled) {
      count = std::min(count, whole_left);
      whole_left -= count;
    }
    if (count == 0)
      continue;
    pooled_left -= s->what.pooled ? 1 : 0;
    give(out, *s, count);
    left -= count;
  }
  if (out.rows.empty())
    return std::nullopt;
  was_alone_ = false;
  return finished(std::move(out));
}

pass batcher::finished(pass p) {
  p.number = ++passes_;
  std::vector<sent_row>& sent = under_way_.emplace_back();
  for (const pass_row& r : p.rows)
    sent.push_back({r.id, r.first + r.tokens.size(), r.guesses});
  return p;
}

/// Gives it pages for all of its tokens, or none: a prompt that stops half-way
/// would keep pages from others.
bool batcher::start(sequence& s) {
  if (running_ >= limits_.running_max)
    return false;
  if (!s.what.whole)
    s.table = pool_.begin(s.what.tokens);
  s.given = s.table.shared() * page_tokens;
  s.began = ++starts_;
  if (!make_room(s, s.what.tokens.size())) {
    pool_.end(s.table);
    return false;
  }
  s.runs = true;
  ++running_;
  counts_.reused += s.given;
  return true;
}

bool batcher::make_room(sequence& s, std::size_t tokens) {
  const std::size_t rows =
    std::min<std::size_t>(limits_.pass_tokens, tokens - s.given);
  while (!pool_.grow(s.table, tokens, rows)) {
    sequence* const other = victim(s);
    if (!other)
      return false;
    preempt(*other);
  }
  return true;
}

/// The sequence whose pages `for_whom` may take: one that is held, else one that
/// comes after it. Not one with rows under way, whose token is still to come.
batcher::sequence* batcher::victim(const sequence& for_whom) {
  const auto rank = [](const sequence& s) {
    return std::tuple(s.held, -std::int64_t(s.what.priority), s.began);
  };
  sequence* out = nullptr;
  for (auto& [id, s] : all_)
    if (s.runs && s.in_passes == 0 && &s != &for_whom
        && rank(s) > rank(for_whom) && (!out || rank(s) > rank(*out)))
      out = &s;
  return out;
}

void batcher::preempt(sequence& s) {
  pool_.end(s.table);
  s.runs = false;
  --running_;
  ++counts_.preempted;
}

/// None is guessed that tokens_max would leave out, or for which another one
/// would have to give its pages.
std::vector<token_id> batcher::guess(sequence& s, std::size_t most) {
  if (most == 0 || !s.what.guessed)
    return {};
  most =
    std::min({most, s.pace.next(limits_.guesses_max), std::size_t(s.left) - 1});
  auto out = looked_up(s.what.tokens, most);
  if (!out.empty()
      && !pool_.grow(s.table, s.what.tokens.size() + out.size(),
                     1 + out.size()))
    out.clear();
  counts_.guessed += out.size();
  return out;
}

void batcher::give(pass& to, sequence& s, std::size_t count,
                   const std::vector<token_id>& guesses) {
  pass_row& r = to.rows.emplace_back();
  r.id = s.what.id;
  r.first = s.given;
  r.guesses = std::uint32_t(guesses.size());
  const std::size_t all = count + guesses.size();
  pool_.slide(s.table, s.given, s.given + all);
  const auto from = s.what.tokens.begin() + std::ptrdiff_t(s.given);
  r.tokens.assign(from, from + std::ptrdiff_t(count));
  r.tokens.insert(r.tokens.end(), guesses.begin(), guesses.end());
  s.given += all;
  const auto& pages = s.table.pages();
  r.pages.assign(pages.begin(),
                 pages.begin() + std::ptrdiff_t(pages_for(s.given)));
  if (const auto& windows = s.table.windows(); !windows.empty())
    r.windows.assign(windows.begin(),
                     windows.begin() + std::ptrdiff_t(pages_for(s.given)));
  r.samples = s.given >= s.what.tokens.size();
  ++s.in_passes;
  counts_.computed += all;
  charge(s.what.client, count);
}

void batcher::charge(client_id c, std::size_t tokens) {
  const std::uint64_t began = fair_time(c);
  used_[c] = began + tokens;
  fair_now_ = began;
  if (used_.size() <= limits_.clients_max)
    return;
  // Those behind the present are where a new client begins.
  std::erase_if(used_, [&](const auto& u) { return u.second <= fair_now_; });
  while (used_.size() > limits_.clients_max)
    used_.erase(std::ranges::min_element(
      used_, {}, [](const auto& u) { return u.second; }));
}

std::vector<sequence_id>
batcher::done(const std::vector<sampled_token>& sampled,
              const std::set<sequence_id>& waiting) {
  SHOAL_ASSERT(!under_way_.empty());
  const std::vector<sent_row> rows = std::move(under_way_.front());
  under_way_.erase(under_way_.begin());
  std::vector<sequence_id> out;
  for (const sampled_token& t : sampled) {
    const auto at = all_.find(t.id);
    if (at == all_.end())
      continue;
    sequence& s = at->second;
    s.what.tokens.push_back(t.token);
    s.begun = true;
    if (--s.left == 0 || t.last || s.what.pooled)
      out.push_back(t.id);
  }
  for (const sent_row& r : rows)
    if (const auto at = all_.find(r.id); at != all_.end()) {
      if (waiting.contains(r.id)) {
        at->second.waits = true;
        at->second.given = std::min(at->second.given, r.end - 1);
      }
      take_back(at->second, r);
    }
  for (const sequence_id id : out)
    finish(id);
  return out;
}

/// A row has been computed, and its tokens are chosen.
void batcher::take_back(sequence& s, const sent_row& r) {
  --s.in_passes;
  const std::size_t last = s.what.tokens.size() - 1; // not computed, if chosen
  if (r.guesses > 0) {
    const std::size_t before = r.end - r.guesses;
    const std::size_t right = last - std::min(last, before);
    s.given = std::min(s.given, last);
    s.pace.learn(r.guesses, right);
    counts_.accepted += right;
  }
  pool_.computed(s.table,
                 std::span(s.what.tokens).first(std::min(r.end, last))); // B-5
}

std::uint64_t batcher::tokens_waiting() const {
  std::uint64_t out = 0;
  for (const auto& [id, s] : all_)
    out += s.what.tokens.size() - std::min(s.given, s.what.tokens.size());
  return out;
}

batcher::load batcher::present() const {
  load out = counts_;
  out.running = running_;
  out.waiting = all_.size() - running_;
  out.under_way = under_way_.size();
  return out;
}

} // namespace shoal::core
