// runtime/core/serving/replay.cpp -- accepts, places, asks again.
#include "runtime/core/serving/replay.hpp"

#include "runtime/core/assert.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core {

void replay::send(const peer_id& to, serve_message what) {
  out_.sends.push_back({to, std::move(what)});
}

replay::effects replay::accept(stream_id id, stream_ask ask, nanoseconds now) {
  now_ = now;
  SHOAL_ASSERT(ask.tokens_max >= 1 && !ask.tokens.empty());
  stream s;
  s.ask = std::move(ask);
  const bool is_new = streams_.emplace(id, std::move(s)).second;
  SHOAL_ASSERT(is_new);
  waiting_.insert(id);
  place_waiting();
  return done();
}

replay::effects replay::cancel(stream_id id) {
  const auto at = streams_.find(id);
  if (at == streams_.end())
    return {};
  const stream& s = at->second;
  if (s.island)
    send(pipelines_.at(*s.island).at.speaker, serve_cancel{s.header, id});
  waiting_.erase(id);
  streams_.erase(at);
  return done();
}

replay::effects replay::hold(stream_id id, bool held) {
  const auto at = streams_.find(id);
  if (at == streams_.end() || at->second.held == held)
    return {};
  stream& s = at->second;
  s.held = held;
  if (s.island && held)
    send(pipelines_.at(*s.island).at.speaker, serve_hold{s.header, id, true});
  else if (s.island) // also for what was sent while it was held
    ask(id, s);
  return done();
}

replay::effects
replay::place(std::vector<pipeline_place> pipelines,
              const std::set<peer_id>& members, nanoseconds now) {
  now_ = now;
  std::map<std::uint32_t, known_pipeline> next;
  for (pipeline_place& p : pipelines) {
    const std::uint32_t island = p.header.island;
    const auto was = pipelines_.find(island);
    known_pipeline& k = next[island];
    if (was != pipelines_.end() && was->second.at.header == p.header)
      k = was->second;
    k.at = std::move(p);
  }
  for (auto at = streams_.begin(); at != streams_.end();) {
    const auto here = at++;
    stream& s = here->second;
    if (!s.island)
      continue;
    const auto is = next.find(*s.island);
    if (is != next.end() && is->second.at.header == s.header
        && is->second.at.in_contact)
      continue;
    const auto& stages = pipelines_.at(*s.island).at.stages;
    const bool died = std::ranges::any_of(
      stages, [&](const peer_id& p) { return !members.contains(p); });
    const bool counts = died && s.begun;
    unplace(s);
    waiting_.insert(here->first);
    if (counts && ++s.deaths > deaths_max)
      end(here, stream_end::deadly);
  }
  pipelines_ = std::move(next);
  refresh_router();
  place_waiting();
  return done();
}

void replay::unplace(stream& s) {
  s.island.reset();
  s.header = {};
  s.begun = false;
}

void replay::refresh_router() {
  std::vector<pipeline_load> loads;
  for (const auto& [island, p] : pipelines_)
    if (p.ready())
      loads.push_back({island, p.at.header.since, p.report->room,
                       p.report->waiting, p.report->per_s});
  router_.set(std::move(loads));
}

void replay::place_waiting() {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const stream_id id = *at++;
    stream& s = streams_.at(id);
    const auto island = router_.choose(s.ask.tokens, s.ask.tokens_max - 1);
    if (!island) {
      if (all_ready())
        end(streams_.find(id), stream_end::too_long);
      continue;
    }
    waiting_.erase(id);
    router_.sent(*island, s.ask.tokens);
    s.island = island;
    s.header = pipelines_.at(*island).at.header;
    s.begun = false;
    ask(id, s);
    if (s.held)
      send(pipelines_.at(*island).at.speaker, serve_hold{s.header, id, true});
  }
}

void replay::ask(stream_id id, stream& s) {
  s.heard = now_;
  serve_request m;
  m.header = s.header;
  m.stream = id;
  m.client = s.ask.client;
  m.priority = s.ask.priority;
  m.key = s.ask.key;
  m.tokens = s.ask.tokens;
  m.chosen = s.ask.chosen;
  m.tokens_max = s.ask.tokens_max;
  m.ends = s.ask.ends;
  m.how = s.ask.how;
  m.scored = s.ask.scored && s.ask.chosen == 0;
  if (s.ask.rule)
    m.rule = *s.ask.rule;
  m.pooled = s.ask.pooled;
  if (s.ask.filter)
    m.filter = *s.ask.filter;
  m.alone = s.deaths >= deaths_max;
  send(pipelines_.at(*s.island).at.speaker, std::move(m));
}

void replay::end(std::map<stream_id, stream>::iterator at, stream_end why) {
  out_.events.push_back({at->first, {}, why, {}});
  waiting_.erase(at->first);
  streams_.erase(at);
}

replay::effects
replay::take(const peer_id& from, const serve_message& m, nanoseconds now) {
  now_ = now;
  const auto at = pipelines_.find(header(m).island);
  if (at == pipelines_.end() || at->second.at.header != header(m)
      || at->second.at.speaker != from)
    return {};
  if (const auto* news = std::get_if<serve_news>(&m)) {
    for (const stream_news& n : news->streams)
      on(at->second, n);
  } else if (const auto* report = std::get_if<pipeline_report>(&m)) {
    at->second.report = *report;
    at->second.told = now;
    refresh_router();
    place_waiting();
  }
  return done();
}

void replay::on(const known_pipeline& from, const stream_news& n) {
  const auto at = streams_.find(n.stream);
  if (at == streams_.end() || at->second.header != from.at.header) {
    if (n.end == stream_end::none) // that it is over was lost
      send(from.at.speaker, serve_cancel{from.at.header, n.stream});
    return;
  }
  stream& s = at->second;
  s.heard = now_;
  const std::size_t have = s.ask.tokens.size();
  if (s.held) // the pipeline does not know, or did not when it sent this
    send(from.at.speaker, serve_hold{s.header, n.stream, true});
  if (n.first > have) { // a message was lost
    if (!s.held)        // else it asks when it goes on
      ask(n.stream, s);
    return;
  }
  if (n.tokens.empty() && n.end == stream_end::none) {
    s.begun = s.begun || n.begun;
    if (n.held && !s.held)
      ask(n.stream, s);
    return;
  }
  stream_event e{n.stream, {}, n.end, {}};
  if (s.ask.scored && s.ask.chosen == 0 && !n.tokens.empty())
    e.scored = n.scored;
  e.pooled = n.pooled;
  for (std::size_t i = have - n.first; i < n.tokens.size(); ++i) {
    SHOAL_ASSERT(s.ask.tokens_max > 0);
    e.tokens.push_back(n.tokens[i]);
    s.ask.tokens.push_back(n.tokens[i].token);
    ++s.ask.chosen;
    if (--s.ask.tokens_max == 0)
      break;
  }
  if (!e.tokens.empty()) {
    s.begun = false;
    s.deaths = 0;
  }
  // Tokens that came before an answer was lost may complete it.
  if (e.end == stream_end::none && s.ask.tokens_max == 0)
    e.end = stream_end::length;
  if (e.end == stream_end::none && !e.tokens.empty()
      && std::ranges::find(s.ask.ends, e.tokens.back().token)
           != s.ask.ends.end())
    e.end = stream_end::stop;
  // Of an old answer, whose end is told by a newer one.
  const bool stale =
    n.end != stream_end::none && e.tokens.empty() && !n.tokens.empty();
  if (e.end == stream_end::busy && s.ask.chosen > 0) {
    // It has begun: its client cannot be sent away any more.
    e.end = stream_end::none;
  }
  if (stale || (e.tokens.empty() && e.end == stream_end::none))
    return;
  const bool over = e.end != stream_end::none;
  out_.events.push_back(std::move(e));
  if (over) {
    waiting_.erase(n.stream);
    streams_.erase(at);
  }
}

replay::effects replay::tick(nanoseconds now) {
  now_ = now;
  for (auto& [id, s] : streams_)
    if (s.island && !s.held && now - s.heard >= again_after)
      ask(id, s);
  if (!waiting_.empty())
    return ask_how_they_are();
  return done();
}

replay::effects replay::ask_how_they_are() {
  for (const auto& [island, p] : pipelines_)
    if (!p.report || !p.report->ready)
      send(p.at.speaker, report_wanted{p.at.header});
  return done();
}

replay::effects replay::ask_of_streams(nanoseconds now) {
  for (auto& [island, p] : pipelines_)
    if (p.report && p.report->streams > 0 && now - p.told >= old_report) {
      p.told = now;
      send(p.at.speaker, report_wanted{p.at.header});
    }
  return done();
}

std::size_t replay::ready() const {
  return std::size_t(std::ranges::count_if(
    pipelines_, [](const auto& p) { return p.second.ready(); }));
}

std::uint64_t replay::room() const {
  std::uint64_t out = 0;
  for (const auto& [island, p] : pipelines_)
    if (p.ready())
      out = std::max(out, p.report->room);
  return out;
}

std::vector<replica_watch::line> replay::lines() const {
  std::vector<replica_watch::line> out;
  for (const auto& [island, p] : pipelines_)
    out.push_back({p.report, std::uint32_t(p.at.stages.size())});
  return out;
}

std::vector<pipeline_report> replay::reports() const {
  std::vector<pipeline_report> out;
  for (const auto& [island, p] : pipelines_)
    if (p.report) {
      out.push_back(*p.report);
      out.back().ready = p.ready();
    }
  return out;
}

} // namespace shoal::core
