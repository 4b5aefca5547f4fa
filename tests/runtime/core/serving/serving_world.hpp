// tests/runtime/core/serving/serving_world.hpp -- gateways, pipelines and stages of a
// served model over connections that break, on peers that die, by seed.
//
// A stage has a memory of pages with tokens in it, and "computes" the next token
// from what it reads there: a page that was given away too early, shared wrongly,
// or written out of order changes a text. In some runs it has window pages, too.
//
// A peer may also ail while it answers: its device hangs, its hidden states are lost
// on their way, or are changed. Then each peer with stages has a watch of stalls, as
// in actors/serving/serve_stalls.hpp, and stages check digests.
#pragma once

#include "runtime/core/random.hpp"
#include "runtime/core/serving/replay.hpp"
#include "runtime/core/serving/stage_tables.hpp"
#include "runtime/core/training/stall_watch.hpp"
#include "tests/runtime/core/serving/small_model.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>

namespace shoal::core::serving_sim {

inline peer_id peer(int i) {
  peer_id out{};
  out[0] = std::uint8_t(i + 1);
  return out;
}

struct asked {
  stream_ask ask;
  std::vector<served_token> scored;
  std::vector<token_id> got;
  std::vector<std::byte> pooled;
  stream_end end = stream_end::none;
  bool cancelled = false;
};

/// Which invariant the simulation breaks on purpose.
enum class planted {
  nothing,
  page_freed_early, ///< a stage forgets a page that is in use
  window_too_short, ///< window pages are given away one too early
  guess_kept,       ///< a guess is taken though another token was chosen
  chosen_forgotten, ///< a text with a rule begins anew where it goes on
  sum_kept,         ///< a mean goes on where its prompt begins again
  request_lost,     ///< a gateway never asks again
  stall_unwatched,  ///< nobody looks whether anything moves
  digest_unchecked, ///< a stage computes with whatever has come
};

/// What ails a peer.
enum class ailment {
  none,
  hangs,   ///< its device works for ever at a pass
  loses,   ///< some hidden states that it sends never arrive
  changes, ///< some of them are not those it computed
};

class world {
public:
  world(std::uint64_t seed, planted bug, ailment ails = ailment::none)
    : random_(seed), bug_(bug), ails_(ails) {
    islands_ = 1 + below(2);
    stages_ = 1 + below(3);
    limits_.pages = std::uint32_t(10 + below(30));
    limits_.pass_tokens = std::uint32_t(8 + below(40));
    limits_.passes_max = std::uint32_t(stages_);
    limits_.running_max = std::uint32_t(2 + below(8));
    limits_.whole_tokens = std::uint32_t(1 + below(20));
    if (below(2) == 0) {
      model_.repeats = true;
      limits_.guesses_max = std::uint32_t(1 + below(8));
      limits_.guess_rows = std::uint32_t(1 + below(16));
    }
    if (below(2) == 0) {
      model_.window = 1 + below(40);
      limits_.windows = {
        std::uint32_t(window_ring(model_.window, limits_.pass_tokens)),
        std::uint32_t(model_.window)};
      if (bug_ == planted::window_too_short && model_.window > page_tokens)
        limits_.windows.window -= page_tokens;
    }
    if (ails_ != ailment::none) {
      stages_ = 2 + below(2);
      ill_ = peer(int(below(peers)));
    }
    new_view();
  }

  void run(std::size_t streams, std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i)
      step(asked_.size() < streams);
    while (asked_.size() < streams)
      begin_stream();
    // Nothing breaks any more: all must end.
    calm_ = true;
    for (auto& [id, held] : held_)
      if (held)
        set_held(id, false);
    for (int round = 0; round < 3000 && !all_over(); ++round) {
      deliver_all();
      now_ += 1'000'000'000;
      tick_all();
    }
    deliver_all();
    check();
  }

  std::uint64_t waited = 0; ///< rows, for their rules
  std::uint64_t deaths = 0, lost = 0, preempted = 0, reused = 0,
                reused_windows = 0, ended = 0, scored = 0, guessed = 0,
                accepted = 0, retries = 0, expelled = 0, ill_expelled = 0,
                complete = 0, known = 0, pooled = 0;
  std::string wrong; ///< what is wrong

private:
  void note(const std::string& what) { wrong += what + "; "; }

  std::uint64_t below(std::uint64_t n) { return random_.below(n); }

  struct stage {
    stage_tables tables;
    std::map<page_id, std::array<token_id, page_tokens>> memory;
    std::map<page_id, std::array<std::uint64_t, page_tokens>> windows;
    std::optional<stage_tables::ready_pass> next; ///< that waits for its input
    /// Texts that keep to a rule: tokens so far, and how many there may be.
    std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> ruled;
    std::set<std::uint64_t> awaited; ///< rows of these wait for their rule
    /// Prompts whose mean is wanted: the sum so far, and tokens in it.
    std::map<std::uint64_t, std::pair<std::uint64_t, std::size_t>> sums;
    bool over = false;
  };
  /// Hidden states of a pass, and the digest that came with them.
  struct hidden {
    std::uint64_t value = 0, digest = 0;
  };
  /// A peer's watch of an island.
  struct watcher {
    explicit watcher(const peer_id& self) : watch(self) {}
    stall_watch watch;
    std::uint64_t moved = 0, period = 1;
    nanoseconds stalled_at = 0;
  };
  struct verdict {
    std::uint32_t island = 0;
    epoch since = 0;
    std::optional<peer_id> expel; ///< else the island begins anew
  };
  struct sent_report {
    peer_id from{}, to{};
    stall_report report;
  };
  struct node {
    std::map<std::uint64_t, replay> gateway;             ///< one
    std::map<std::uint32_t, serving_pipeline> pipelines; ///< by island
    std::map<std::uint32_t, stage> stages;               ///< by island
  };
  struct place {
    job_header header;
    std::vector<peer_id> stages;
  };
  using link = std::pair<peer_id, peer_id>;

  static constexpr int peers = 5;

  void new_view() {
    ++epoch_;
    for (int i = 0; i < peers; ++i) {
      if (alive_.contains(peer(i)))
        continue;
      alive_.insert(peer(i));
      nodes_[peer(i)].gateway.try_emplace(0);
    }
    place_islands();
  }

  /// An island keeps its place while its peers live.
  void place_islands() {
    for (std::uint32_t i = 0; i < islands_; ++i) {
      place& p = places_[i];
      if (!p.stages.empty()
          && std::ranges::all_of(
            p.stages, [&](const peer_id& s) { return alive_.contains(s); }))
        continue;
      if (alive_.empty())
        continue;
      std::vector<peer_id> some(alive_.begin(), alive_.end());
      p.stages.clear();
      for (std::size_t s = 0; s < stages_; ++s)
        p.stages.push_back(some[below(some.size())]);
      // Each stage on a peer of its own, as the planner places them.
      std::ranges::sort(p.stages);
      p.stages.erase(std::unique(p.stages.begin(), p.stages.end()),
                     p.stages.end());
      p.header = {1, random_.next(), epoch_, i};
    }
    std::vector<pipeline_place> all;
    for (const auto& [i, p] : places_)
      all.push_back({p.header, p.stages.front(), p.stages});
    for (const peer_id& at : alive_) {
      node& n = nodes_.at(at);
      for (const auto& [i, p] : places_) {
        const bool speaks = p.stages.front() == at;
        const auto was = n.pipelines.find(i);
        if (headers_[{at, i}] == p.header) {
          if (was != n.pipelines.end())
            emit(at, was->second.set_members(alive_, now_));
          continue;
        }
        if (was != n.pipelines.end())
          n.pipelines.erase(was);
        n.stages.erase(i);
        headers_[{at, i}] = p.header;
        if (std::ranges::find(p.stages, at) != p.stages.end())
          n.stages[i];
        if (speaks) {
          serving_pipeline& made =
            n.pipelines
              .try_emplace(i, pipeline_config{p.header, p.stages, limits_})
              .first->second;
          emit(at, made.set_members(alive_, now_));
        }
      }
      emit(at, n.gateway.at(0).place(all, alive_, now_));
    }
  }

  void emit(const peer_id& from, serve_sends sends) {
    for (serve_send& s : sends)
      if (alive_.contains(s.to))
        queues_[{from, s.to}].push_back(std::move(s.what));
  }

  void emit(const peer_id& from, replay::effects e) {
    emit(from, std::move(e.sends));
    for (const stream_event& event : e.events) {
      asked& a = asked_.at(event.stream);
      BOOST_TEST_REQUIRE((a.end == stream_end::none));
      for (const served_token& t : event.tokens)
        a.got.push_back(t.token);
      if (!event.scored.empty()) {
        BOOST_TEST_REQUIRE(a.scored.empty());
        a.scored = event.scored;
      }
      a.end = event.end;
      a.pooled = event.pooled;
      if (!a.pooled.empty())
        check_pooled(event.stream, a);
      ended += event.end != stream_end::none ? 1 : 0;
    }
  }

  void deliver(link along) {
    auto& queue = queues_.at(along);
    const serve_message m = std::move(queue.front());
    queue.pop_front();
    if (queue.empty())
      queues_.erase(along);
    const auto [from, to] = along;
    node& n = nodes_.at(to);
    const std::uint32_t island = header(m).island;
    if (is_for_gateways(m)) {
      emit(to, n.gateway.at(0).take(from, m, now_));
      return;
    }
    if (header(m) != places_[island].header)
      return; // as its shell checks
    if (std::holds_alternative<serve_ask>(m)) {
      const auto& stages = places_[island].stages;
      for (std::uint32_t s = 0; s < stages.size(); ++s)
        if (stages[s] == to)
          emit(to, {{from, serve_ready{header(m), s}}});
      return;
    }
    if (const auto* pass = std::get_if<serve_pass>(&m)) {
      if (const auto again = n.stages[island].tables.put(*pass))
        emit(to, {{from, *again}});
      compute(to, island);
      carry_out();
      return;
    }
    if (const auto* rule = std::get_if<serve_rule>(&m)) {
      const std::size_t before =
        bug_ == planted::chosen_forgotten ? 0 : rule->chosen.size();
      n.stages[island].ruled.try_emplace(rule->sequence, before,
                                         rule->rule->text.size());
      if (n.stages[island].awaited.erase(rule->sequence) > 0)
        emit(to, {{from, serve_text_ready{header(m), rule->sequence}}});
      return;
    }
    if (const auto at = n.pipelines.find(island); at != n.pipelines.end())
      emit(to, at->second.take(from, m, now_));
  }

  /// The last stage reads all of a row's pages; the others only keep their order.
  void compute(const peer_id& at, std::uint32_t island) {
    stage& s = nodes_.at(at).stages[island];
    const place& p = places_[island];
    const auto index =
      std::size_t(std::ranges::find(p.stages, at) - p.stages.begin());
    while (!s.over) {
      if (!s.next)
        s.next = s.tables.next();
      if (!s.next || !may_begin(at, island, index, s))
        break;
      for (const std::uint64_t id : s.next->pass.ended)
        s.ruled.erase(id), s.sums.erase(id);
      const std::uint64_t oldest = s.next->pass.oldest;
      s.ruled.erase(s.ruled.begin(), s.ruled.lower_bound(oldest));
      for (const serve_row& row : s.next->pass.rows)
        BOOST_TEST_REQUIRE(row.sequence >= oldest);
      const auto next = std::exchange(s.next, std::nullopt);
      const bool good = input_of(p, index, next->pass.number).value == 0;
      serve_chosen out{p.header, next->pass.number, {}};
      std::set<page_id> written, windows_written;
      for (std::size_t r = 0; r < next->pass.rows.size(); ++r) {
        const serve_row& row = next->pass.rows[r];
        const auto& table = next->tables[r];
        const auto& windows = next->windows[r];
        for (std::size_t i = 0; i < row.tokens.size(); ++i) {
          const std::size_t at_token = std::size_t(row.first) + i;
          s.memory[table[at_token / page_tokens]][at_token % page_tokens] =
            row.tokens[i];
        }
        std::vector<std::uint64_t> values(row.tokens.size());
        if (model_.window != 0)
          for (std::size_t i = 0; i < row.tokens.size(); ++i)
            values[i] = write_value(s, windows, std::size_t(row.first) + i,
                                    row.tokens[i]);
        for (std::size_t page = row.first / page_tokens; page < table.size();
             ++page) { // as paged_cache::accepts() checks
          BOOST_TEST_REQUIRE(written.insert(table[page]).second);
          if (model_.window != 0)
            BOOST_TEST_REQUIRE(windows_written.insert(windows[page]).second);
        }
        if (bug_ == planted::page_freed_early && below(8) == 0)
          s.memory[table.front()] = {};
        if (logits_of(row) > 0)
          out.rows.push_back(result_of(s, row, table, values));
        if (row.pooled)
          out.rows.push_back(pooled_result_of(s, row, table, good));
        if (logits_of(row) > 0 && !good)
          for (served_token& t : out.rows.back().tokens)
            t.token = (t.token + 1) % small_model::vocabulary;
      }
      s.tables.answered(out);
      if (ails_ != ailment::none)
        ++watcher_of(at, island).moved;
      if (at == p.stages.back()) {
        emit(at, {{p.stages.front(), out}});
        for (const row_result& r : out.rows)
          if (r.waits && s.ruled.contains(r.sequence))
            emit(at,
                 {{p.stages.front(), serve_text_ready{p.header, r.sequence}}});
          else if (r.waits)
            s.awaited.insert(r.sequence);
      } else
        pass_on(at, island, index, next->pass.number, good);
    }
    BOOST_TEST_REQUIRE(!s.tables.broken());
  }

  // What a peer has that ails. ---------------------------------------------------

  using hidden_key = std::tuple<std::uint64_t, std::size_t, std::uint64_t>;

  /// Value 0 is right.
  hidden input_of(const place& p, std::size_t index, std::uint64_t pass) const;
  bool may_begin(const peer_id& at, std::uint32_t island, std::size_t index,
                 stage& s);
  void pass_on(const peer_id& at, std::uint32_t island, std::size_t index,
               std::uint64_t pass, bool good);
  watcher& watcher_of(const peer_id& at, std::uint32_t island);
  /// As serve_job and serve_stalls see it.
  stall_watch::sight sight(const peer_id& at, std::uint32_t island);
  void watch_stalls();
  void carry(const peer_id& at, std::uint32_t island,
             const stall_watch::actions& actions);
  /// What was proposed, as views would have it.
  void carry_out();

  row_result
  result_of(stage& s, const serve_row& row, const std::vector<page_id>& table,
            const std::vector<std::uint64_t>& values) {
    row_result out;
    out.sequence = row.sequence;
    std::vector<token_id> all;
    for (std::size_t i = 0; i < row.first + row.tokens.size(); ++i)
      all.push_back(s.memory[table[i / page_tokens]][i % page_tokens]);
    if (row.scores) {
      const std::size_t end = all.size() - logits_of(row);
      for (std::size_t i = 0; i < row.scores->tokens.size(); ++i)
        out.scored.push_back({row.scores->tokens[i],
                              model_.score(std::span(all).first(end + i + 1),
                                           row.scores->tokens[i]),
                              {}});
    }
    const bool ruled = row.choice && row.choice->ruled;
    // It has not come, or what may come next is not known in time.
    out.waits = ruled && (!s.ruled.contains(row.sequence) || below(4) == 0);
    waited += out.waits;
    if (out.waits)
      return out;
    if (ruled) {
      auto& [count, most] = s.ruled[row.sequence];
      BOOST_TEST_REQUIRE(row.guesses == 0u);
      out.complete = ++count >= most;
      if (count > most)
        return out;
    }
    for (std::size_t i = row.guesses; row.choice; --i) {
      const token_id chosen =
        model_.next(std::span(all).first(all.size() - i), row.choice->how.seed,
                    values[values.size() - 1 - i]);
      const bool right = i > 0 && chosen == all[all.size() - i];
      if (i > 0 && !right && bug_ == planted::guess_kept) {
        out.tokens.push_back({all[all.size() - i], 0, {}});
        continue;
      }
      out.tokens.push_back({chosen, 0, {}});
      if (!right)
        break;
    }
    return out;
  }

  row_result pooled_result_of(stage& s, const serve_row& row,
                              const std::vector<page_id>& table, bool good);

  /// A row's value in layers with a window, from what is in their pages.
  std::uint64_t write_value(stage& s, const std::vector<page_id>& pages,
                            std::size_t at, token_id t) const {
    std::vector<std::uint64_t> before;
    for (std::size_t i = at - std::min(at, model_.window - 1); i < at; ++i)
      before.push_back(s.windows[pages[i / page_tokens]][i % page_tokens]);
    std::uint64_t& to = s.windows[pages[at / page_tokens]][at % page_tokens];
    to = small_model::value(t, before);
    return to;
  }

  void begin_stream() {
    if (alive_.empty())
      return;
    stream_ask a;
    a.client = below(3);
    a.key = 1 + below(4); // those of some are equal by chance
    a.priority = std::int32_t(below(2));
    // Many begin alike, so that pages are shared.
    const std::size_t length = 1 + below(60);
    for (std::size_t i = 0; i < length; ++i)
      a.tokens.push_back(
        token_id(below(6) != 0 ? i % 5 : below(small_model::vocabulary)));
    if (below(2) == 0)
      for (std::size_t i = 0; i < length; ++i)
        a.tokens[i] = token_id(i % 5);
    a.tokens_max = std::uint32_t(1 + below(30));
    a.ends = {small_model::end_token};
    a.how.seed = below(3);
    a.scored = below(4) == 0;
    // As many tokens as it has bytes.
    if (ails_ == ailment::none && below(8) == 0)
      a.rule = std::make_shared<text_rule>(
        text_rule{rule_kind::regex, std::vector<std::byte>(below(6))});
    if (below(6) == 0 && !a.scored && !a.rule) {
      a.pooled = below(2) == 0 ? pooling::last : pooling::mean;
      a.tokens_max = 1;
    }
    ask_anywhere(a);
  }

  void ask_anywhere(const stream_ask& a) {
    const stream_id id = asked_.size() + 1;
    const auto at = std::next(alive_.begin(), long(below(alive_.size())));
    home_[id] = *at;
    asked_[id].ask = a;
    emit(*at, nodes_.at(*at).gateway.at(0).accept(id, a, now_));
  }

  /// A client whose gateway has died, or that was cut off, asks another one.
  void ask_again(stream_id id) {
    asked_[id].cancelled = true;
    if (asked_[id].end == stream_end::none && !alive_.empty())
      ask_anywhere(stream_ask(asked_[id].ask));
  }

  void set_held(stream_id id, bool held) {
    held_[id] = held;
    if (alive_.contains(home_[id]))
      emit(home_[id], nodes_.at(home_[id]).gateway.at(0).hold(id, held));
  }

  void kill(peer_id who);

  void step(bool may_begin);

  void tick_all() {
    for (const peer_id& at : std::set<peer_id>(alive_)) {
      node& n = nodes_.at(at);
      for (auto& [island, p] : n.pipelines)
        if (headers_[{at, island}] == places_[island].header)
          emit(at, p.tick(now_));
      if (bug_ != planted::request_lost)
        emit(at, n.gateway.at(0).tick(now_));
    }
    watch_stalls();
  }

  void deliver_all() {
    for (std::size_t i = 0; i < 100'000 && !queues_.empty(); ++i)
      deliver(std::next(queues_.begin(), long(below(queues_.size())))->first);
  }

  bool all_over() const {
    for (const auto& [at, n] : nodes_)
      for (const auto& [island, p] : n.pipelines)
        if (headers_.at({at, island}) == places_.at(island).header
            && p.streams() > 0)
          return false;
    return std::ranges::all_of(asked_, [](const auto& a) {
      return a.second.cancelled || a.second.end != stream_end::none;
    });
  }

  void check();
  /// Each token of a prompt behind the first has its probability.
  void check_scores();
  void check_pooled(stream_id id, const asked& a);

  cluster::random random_;
  planted bug_;
  ailment ails_;
  peer_id ill_ = peer(peers);       ///< nobody
  std::optional<nanoseconds> hung_; ///< since when
  std::map<hidden_key, hidden> sent_;
  std::map<peer_id, std::size_t> damaged_;
  std::map<std::pair<peer_id, std::uint32_t>, watcher> watchers_;
  std::vector<sent_report> reports_;
  std::vector<verdict> verdicts_;
  std::size_t islands_ = 1, stages_ = 1;
  small_model model_;
  batcher_limits limits_;
  std::map<peer_id, node> nodes_;
  std::set<peer_id> alive_;
  std::map<std::uint32_t, place> places_;
  std::map<std::pair<peer_id, std::uint32_t>, job_header> headers_;
  std::map<link, std::deque<serve_message>> queues_;
  std::map<stream_id, asked> asked_;
  std::map<stream_id, peer_id> home_;
  std::map<stream_id, bool> held_;
  nanoseconds now_ = 1;
  epoch epoch_ = 0;
  bool calm_ = false;
};

} // namespace shoal::core::serving_sim
