// tests/runtime/core/serving/serving_world.cpp -- deaths, and what must be so in the end.
#include "tests/runtime/core/serving/serving_world.hpp"

namespace shoal::core::serving_sim {

void world::kill(peer_id who) {
  ++deaths;
  alive_.erase(who);
  nodes_.erase(who);
  std::erase_if(watchers_, [&](const auto& w) { return w.first.first == who; });
  std::erase_if(headers_, [&](const auto& h) { return h.first.first == who; });
  std::erase_if(queues_, [&](const auto& q) {
    return q.first.first == who || q.first.second == who;
  });
  std::vector<stream_id> cut; // some of them ask before the others know
  for (const auto& [id, at] : home_)
    if (at == who && !asked_[id].cancelled)
      cut.push_back(id);
  for (const stream_id id : cut)
    asked_[id].cancelled = true;
  const auto later = std::stable_partition(
    cut.begin(), cut.end(), [&](stream_id) { return below(2) == 0; });
  for (auto at = cut.begin(); at != later; ++at)
    ask_again(*at);
  ++epoch_;
  place_islands();
  for (auto at = later; at != cut.end(); ++at)
    if (below(4) != 0) // the others are gone with it
      ask_again(*at);
}

void world::step(bool may_begin) {
  switch (below(24)) {
  case 0:
  case 1:
    if (may_begin)
      begin_stream();
    break;
  case 2:
    if (alive_.size() > 2 && below(6) == 0 && ails_ == ailment::none)
      kill(*std::next(alive_.begin(), long(below(alive_.size()))));
    break;
  case 3:
    if (below(4) == 0)
      new_view(); // those that died have come back
    break;
  case 4:
    if (!queues_.empty() && below(4) == 0) { // a connection breaks
      const auto at = std::next(queues_.begin(), long(below(queues_.size())));
      lost += at->second.size();
      queues_.erase(at);
    }
    break;
  case 5:
    now_ += ails_ == ailment::none ? 3'000'000'000 : 300'000'000;
    tick_all();
    break;
  case 6:
    if (!asked_.empty()) {
      const stream_id id = 1 + below(asked_.size());
      if (below(4) == 0 && alive_.contains(home_[id])) {
        asked_[id].cancelled = true;
        emit(home_[id], nodes_.at(home_[id]).gateway.at(0).cancel(id));
        if (below(4) == 0)
          ask_again(id);
      } else {
        set_held(id, below(2) == 0);
      }
    }
    break;
  default:
    if (!queues_.empty())
      deliver(std::next(queues_.begin(), long(below(queues_.size())))->first);
  }
}

namespace {

/// What "hidden states" of tokens make: any function of all of them, or a sum.
std::uint64_t pooled_last(std::span<const token_id> all) {
  std::uint64_t h = 1;
  for (const token_id t : all)
    h = cluster::random(h ^ std::uint64_t(t + 1)).next();
  return h;
}
std::uint64_t pooled_part(token_id t) {
  return cluster::random(std::uint64_t(t + 1)).next();
}

std::vector<std::byte> bytes_of_number(std::uint64_t x) {
  const auto bytes = std::as_bytes(std::span(&x, 1));
  return {bytes.begin(), bytes.end()};
}

} // namespace

row_result
world::pooled_result_of(stage& s, const serve_row& row,
                        const std::vector<page_id>& table, bool good) {
  row_result out;
  out.sequence = row.sequence;
  std::vector<token_id> all;
  for (std::size_t i = 0; i < row.first + row.tokens.size(); ++i)
    all.push_back(s.memory[table[i / page_tokens]][i % page_tokens]);
  std::uint64_t value = pooled_last(all);
  if (row.pooled->how == pooling::mean) {
    auto& [sum, tokens] = s.sums[row.sequence];
    if (row.first == 0 && bug_ != planted::sum_kept)
      sum = tokens = 0;
    BOOST_TEST_REQUIRE((tokens == row.first || bug_ != planted::nothing));
    for (const token_id t : row.tokens)
      sum += pooled_part(t);
    tokens += row.tokens.size();
    value = sum;
  }
  if (row.pooled->ends)
    out.pooled = bytes_of_number(good ? value : value + 1);
  return out;
}

void world::check_pooled(stream_id id, const asked& a) {
  std::uint64_t expected = pooled_last(a.ask.tokens);
  if (a.ask.pooled == pooling::mean) {
    expected = 0;
    for (const token_id t : a.ask.tokens)
      expected += pooled_part(t);
  }
  ++pooled;
  if (a.end != stream_end::complete || !a.got.empty()
      || a.pooled != bytes_of_number(expected))
    note("stream " + std::to_string(id) + " has a wrong hidden state, end "
         + std::to_string(int(a.end)));
}

void world::check() {
  for (const auto& [id, a] : asked_) {
    if (a.cancelled)
      continue;
    stream_end end;
    auto expected = model_.undisturbed(a.ask, end);
    const std::size_t most = a.ask.rule ? a.ask.rule->text.size() : SIZE_MAX;
    if (expected.size() >= most
        && (most == 0 || expected[most - 1] != small_model::end_token)) {
      expected.resize(most);
      end = stream_end::complete;
      complete += a.end == end ? 1 : 0;
    }
    if (pages_for(a.ask.tokens.size() + a.ask.tokens_max - 1) > limits_.pages) {
      if (a.end != stream_end::too_long)
        note("stream " + std::to_string(id) + " should be too long");
      continue;
    }
    if (a.end == stream_end::deadly) { // only by deaths
      if (deaths <= replay::deaths_max)
        note("stream " + std::to_string(id) + " is called deadly");
      continue;
    }
    if (a.ask.pooled != pooling::none) { // emit() has checked it
      if (a.end != stream_end::complete || a.pooled.empty())
        note("stream " + std::to_string(id) + " has no hidden state, end "
             + std::to_string(int(a.end)));
      continue;
    }
    if (a.end != end || a.got != expected)
      note("stream " + std::to_string(id) + " has "
           + std::to_string(a.got.size()) + " tokens of "
           + std::to_string(expected.size()) + ", end "
           + std::to_string(int(a.end)));
  }
  check_scores();
  for (auto& [at, n] : nodes_)
    for (auto& [island, p] : n.pipelines) {
      if (headers_[{at, island}] != places_[island].header)
        continue;
      preempted += p.work().present().preempted;
      reused += p.work().present().reused;
      guessed += p.work().present().guessed;
      accepted += p.work().present().accepted;
      known += p.tokens_known();
      if (model_.window != 0)
        reused_windows += p.work().present().reused;
      if (p.streams() != 0
          || p.work().pages().available() != p.work().pages().total()
          || p.work().pages().windows_available() != limits_.windows.pages)
        note("island " + std::to_string(island) + " keeps "
             + std::to_string(p.streams()) + " streams, "
             + std::to_string(p.work().present().running) + " running, "
             + std::to_string(p.work().present().under_way) + " passes, "
             + std::to_string(p.work().pages().available()) + " pages of "
             + std::to_string(p.work().pages().total())
             + (p.ready() ? "" : ", not ready"));
    }
}

/// Each token of a prompt behind the first has its probability.
void world::check_scores() {
  for (const auto& [id, a] : asked_) {
    if (a.cancelled || a.got.empty() || !a.ask.scored)
      continue;
    const auto& tokens = a.ask.tokens;
    bool same = a.scored.size() + 1 == tokens.size();
    for (std::size_t i = 1; same && i < tokens.size(); ++i)
      same = a.scored[i - 1].token == tokens[i]
             && a.scored[i - 1].logprob
                  == model_.score(std::span(tokens).first(i), tokens[i]);
    scored += tokens.size();
    if (!same)
      note("stream " + std::to_string(id) + " has wrong scores of its prompt");
  }
}

} // namespace shoal::core::serving_sim
