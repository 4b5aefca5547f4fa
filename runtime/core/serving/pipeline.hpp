// runtime/core/serving/pipeline.hpp -- one pipeline of a served model: who asks
// it for what, and which passes its stages compute.
//
// Runs on the peer of the first stage, under one place of the island; another
// place has another pipeline, which begins empty. Takes requests from gateways,
// gives passes (batcher.hpp) to all stages, and sends the chosen tokens back.
//
//   start: asks all stages --all ready--> ready: passes are given out
//
// Invariants
// a request that comes again goes on where it is: its gateway gets the
//      tokens that it lacks, and it is not held. So a gateway may ask again at
//      any time.
//      If its client asks again by another gateway, it goes on there behind what
//      is known of its text (known_texts.hpp).
// passes are given to the stages in the order of their numbers, and a pass
//      stays until its tokens are here; if they do not come it is given again.
//      A stage computes each number once (stage_tables.hpp).
// nothing of a stream but the text remains once its end was told, its gateway
//      cancelled it, or its gateway is no member.
//
// Threads: none of its own. Pure: a step gives messages to send.
#pragma once

#include "runtime/core/serving/batcher.hpp"
#include "runtime/core/serving/known_texts.hpp"
#include "runtime/core/serving/pass_pace.hpp"
#include "runtime/core/serving/serve_messages.hpp"

#include <deque>
#include <map>
#include <set>
#include <vector>

namespace shoal::core {

struct serve_send {
  peer_id to{};
  serve_message what;
};
using serve_sends = std::vector<serve_send>;

struct pipeline_config {
  job_header header;
  std::vector<peer_id> stages; ///< by index; the first one is this peer
  batcher_limits limits;
};

class serving_pipeline {
public:
  /// A pass without an answer is given again after this time, and stages that
  /// are not ready are asked again.
  static constexpr nanoseconds again_after = 5'000'000'000;
  /// All gateways get a report at least this often while anything changes.
  static constexpr nanoseconds report_every = 1'000'000'000;

  explicit serving_pipeline(pipeline_config config);

  /// The members of the view: at first, and whenever they change.
  serve_sends set_members(std::set<peer_id> members, nanoseconds now);
  serve_sends
  take(const peer_id& from, const serve_message& m, nanoseconds now);
  /// To be called about every second, and after each step's sends.
  serve_sends tick(nanoseconds now);

  [[nodiscard]] bool ready() const noexcept {
    return ready_.size() == config_.stages.size();
  }
  /// Whether it has work, waits for an answer, or has news of itself for gateways:
  /// then it wants ticks.
  [[nodiscard]] bool busy() const noexcept {
    return !ready() || !streams_.empty() || !under_way_.empty() || changed_;
  }
  /// Passes whose tokens are here, since it began.
  [[nodiscard]] std::uint64_t passes_done() const noexcept { return done_; }
  /// The number of the oldest pass under way; 0: there is none.
  [[nodiscard]] std::uint64_t waits_for_pass() const noexcept {
    return under_way_.empty() ? 0 : under_way_.front().pass.number;
  }
  [[nodiscard]] const batcher& work() const noexcept { return batcher_; }
  [[nodiscard]] std::size_t streams() const noexcept { return streams_.size(); }
  /// Tokens that were known when a client asked again.
  [[nodiscard]] std::uint64_t tokens_known() const noexcept {
    return recalled_;
  }

private:
  using stream_key = std::pair<peer_id, std::uint64_t>;
  struct stream {
    stream_key key;
    std::size_t prompt = 0;       ///< tokens of the request when it came first
    std::vector<token_id> tokens; ///< all
    std::vector<served_token> told; ///< those after the prompt
    std::uint32_t chosen = 0;       ///< drawn before those
    bool wants_scores = false;
    std::vector<served_token> scored; ///< of the prompt behind its first token
    std::uint64_t asked_by = 0;       ///< the request's key
    std::vector<token_id> ends;
    sampling_wish how;
    pooling pooled = pooling::none;
    std::vector<page_id> sent;         ///< the table as the stages have it
    std::vector<page_id> sent_windows; ///< the same
    bool begun = false;
    bool held = false;
    nanoseconds told_of = 0; ///< by its gateway, or asked
    bool waits = false; ///< its row did: until the last stage says it is ready
    nanoseconds waited = 0; ///< since then, or since it was given again
  };
  struct given {
    serve_pass pass;
    nanoseconds at = 0;
  };
  using news_by_gateway = std::map<peer_id, std::vector<stream_news>>;

  void on(const peer_id& from, const serve_request& m);
  void on(const peer_id& from, const serve_cancel& m);
  void on(const peer_id& from, const serve_hold& m);
  void on(const peer_id& from, const report_wanted& m);
  void on(const peer_id& from, const serve_ready& m);
  void on(const peer_id& from, const serve_chosen& m);
  void on(const peer_id& from, const serve_text_ready& m);
  /// Kinds that others take.
  void on(const peer_id&, const auto&) {}

  void refuse(const stream_key& key, std::uint64_t first, refusal why);
  void set_held(sequence_id id, bool held);
  text_source source_of(sequence_id id) const;
  std::vector<token_id> known(const serve_request& m) const;
  std::vector<sampled_token> keep(const serve_row& of, const row_result& r);
  void tell(const stream& s, std::size_t from);
  void measure(const given& g);
  void forget(sequence_id id);
  void give_passes();
  serve_row row_of(const pass_row& from, stream& s) const;
  void send_rule(sequence_id id);
  void resume(sequence_id id);
  void end(sequence_id id, stream_end why);
  void flush_news();
  pipeline_report present() const;
  void report();
  void send(const peer_id& to, serve_message what);
  serve_sends finish(nanoseconds now);

  pipeline_config config_;
  batcher batcher_;
  std::set<peer_id> members_;
  std::set<std::uint32_t> ready_; ///< stages
  std::map<stream_key, sequence_id> ids_;
  std::map<sequence_id, stream> streams_;
  std::map<sequence_id, serve_rule> rules_; ///< of sequences that are here
  known_texts texts_; ///< of those that are not here any more
  std::uint64_t recalled_ = 0;
  std::vector<std::uint64_t> ended_; ///< since the last pass
  std::deque<given> under_way_;      ///< oldest first
  std::uint64_t done_ = 0;           ///< passes
  sequence_id last_id_ = 0;
  nanoseconds now_ = 0;
  nanoseconds asked_ = 0;
  nanoseconds reported_ = 0;
  bool changed_ = true; ///< since the last report
  news_by_gateway news_;
  serve_sends out_;
  pass_pace pace_;
};

} // namespace shoal::core
