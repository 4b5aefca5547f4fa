// runtime/core/serving/replay.hpp -- the streams of a served model that a gateway
// has accepted, and what it sends again so that none is lost.
//
// A gateway keeps of each stream the prompt, the tokens so far and how the next
// one is chosen. When the place of a stream's pipeline changes, or nothing is
// heard of it, it asks again, of any pipeline that is ready: what is chosen
// after the same tokens is the same on one instruction set (rule R-1 of
// kernels/README.md).
//
//   accepted --a pipeline is ready and has room--> placed --end--> over
//      ^                                             |
//      `-- its pipeline has another place, or is ----'
//          out of contact while another one is not
//
// Invariants
// G-1: a client gets each token once, in order, without a gap.
// G-2: a stream ends only by its own end, by its client, by an answer that says
//      that it cannot run, or by quarantine.
//
// Quarantine: a request may kill the peers that compute it. If a peer of its
// pipeline dies after its first pass has begun, and no token has come since
// it was sent, the death counts against it. After deaths_max of them it runs in
// passes of its own; one more, and it ends as `deadly`. Any token clears it.
//
// Threads: none of its own. Pure: a step gives messages to send and news for
// clients.
#pragma once

#include "runtime/core/serving/pipeline.hpp"
#include "runtime/core/serving/replica_watch.hpp"
#include "runtime/core/serving/router.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace shoal::core {

using stream_id = std::uint64_t;

struct stream_ask {
  std::uint64_t client = 0;
  std::int32_t priority = 0;
  std::uint64_t key = 0;        ///< serve_request::key
  std::vector<token_id> tokens; ///< of the prompt, and chosen before
  std::uint32_t chosen = 0;     ///< those at the end that were chosen
  std::uint32_t tokens_max = 1; ///< to be chosen from here on; at least 1
  std::vector<token_id> ends;
  sampling_wish how;
  bool scored = false; ///< probabilities of the prompt's tokens are wanted
  /// What the text of the chosen tokens must be; null: any.
  std::shared_ptr<const text_rule> rule = {};
  /// If not none, no token is chosen: the stream ends with one hidden state.
  pooling pooled = pooling::none;
  /// Which tokens may be chosen; null: all.
  std::shared_ptr<const token_filter> filter = {};
};

/// Where a pipeline of the model is, in the newest view.
struct pipeline_place {
  job_header header;
  peer_id speaker{}; ///< of its first stage
  std::vector<peer_id> stages;
  /// False: without a quorum, peers of it are out of reach, while another
  /// pipeline is whole. No stream is placed there until they are back.
  bool in_contact = true;
};

/// News for a client.
struct stream_event {
  stream_id stream = 0;
  std::vector<served_token> tokens;
  stream_end end = stream_end::none;
  /// Of the prompt's tokens behind the first, once: with the first tokens.
  std::vector<served_token> scored;
  std::vector<std::byte> pooled = {}; ///< with the end, if asked for
};

class replay {
public:
  static constexpr std::uint32_t deaths_max = 2;
  /// Nothing was heard of a placed stream for this time: it is asked for again.
  static constexpr nanoseconds again_after = 10'000'000'000;

  struct effects {
    serve_sends sends;
    std::vector<stream_event> events;
  };

  effects accept(stream_id id, stream_ask ask, nanoseconds now);
  /// Its client has gone.
  effects cancel(stream_id id);
  /// The client takes no more tokens for now, or takes them again.
  effects hold(stream_id id, bool held);
  /// The pipelines of the newest view, and its members.
  effects place(std::vector<pipeline_place> pipelines,
                const std::set<peer_id>& members, nanoseconds now);
  effects take(const peer_id& from, const serve_message& m, nanoseconds now);
  /// To be called about every second while there are streams.
  effects tick(nanoseconds now);

  /// Asks the pipelines that are not ready, as far as known, how they are: what
  /// they told may have been lost.
  effects ask_how_they_are();
  /// The same of those that had streams when they last told, if that is longer ago
  /// than old_report: the last one may have ended since.
  effects ask_of_streams(nanoseconds now);
  static constexpr nanoseconds old_report = 3'000'000'000;

  [[nodiscard]] std::size_t size() const noexcept { return streams_.size(); }
  /// Pipelines that are ready and in contact.
  [[nodiscard]] std::size_t ready() const;
  /// Whether there are pipelines, and all are ready.
  [[nodiscard]] bool all_ready() const {
    return !pipelines_.empty() && ready() == pipelines_.size();
  }
  /// The most tokens that a ready pipeline has room for; 0: none is ready.
  [[nodiscard]] std::uint64_t room() const;
  /// What the pipelines have told, by island.
  [[nodiscard]] std::vector<pipeline_report> reports() const;
  /// The same, with the pipelines that have told nothing yet.
  [[nodiscard]] std::vector<replica_watch::line> lines() const;

private:
  struct stream {
    stream_ask ask;                      ///< grows by what is chosen
    std::optional<std::uint32_t> island; ///< placed there
    job_header header;                   ///< under this place
    bool begun = false; ///< a pass of it, and no token since it was placed
    bool held = false;
    std::uint32_t deaths = 0;
    nanoseconds heard = 0; ///< or asked
  };
  struct known_pipeline {
    pipeline_place at;
    std::optional<pipeline_report> report; ///< of this place
    nanoseconds told = 0;                  ///< when; or asked again

    bool ready() const { return report && report->ready && at.in_contact; }
  };

  void send(const peer_id& to, serve_message what);
  void place_waiting();
  void ask(stream_id id, stream& s);
  void end(std::map<stream_id, stream>::iterator at, stream_end why);
  void on(const known_pipeline& from, const stream_news& n);
  void refresh_router();
  effects done() { return std::exchange(out_, {}); }
  void unplace(stream& s);

  std::map<stream_id, stream> streams_;
  std::set<stream_id> waiting_;                       ///< have no pipeline
  std::map<std::uint32_t, known_pipeline> pipelines_; ///< by island
  serve_router router_;
  nanoseconds now_ = 0;
  effects out_;
};

} // namespace shoal::core
