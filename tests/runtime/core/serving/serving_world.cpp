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
  const auto before = std::ranges::stable_partition(
    cut, [&](stream_id) { return below(2) == 0; });
  for (auto at = cut.begin(); at != before.begin(); ++at)
    ask_again(*at);
  ++epoch_;
  place_islands();
  for (const stream_id id : before)
    if (below(4) != 0) // the others are gone with it
      ask_again(id);
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
