// runtime/core/training/job_messages.hpp -- messages between peers of one job:
// control only, small and flat.
//
// Every message names its job and the assignment it was made under (digest, and
// `since`, the epoch that made it). Under another assignment it has no effect.
// The exceptions: `progress`, which is history, and a `seal` or `have_blobs`
// for a newer assignment, which waits until our view catches up.
//
// Limits: each message is followed by its fields (fields.hpp); the codec
// refuses what exceeds them.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/state/part_set.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace shoal::core {

/// All of a model: its blocks, the embedding and the head.
inline constexpr std::size_t job_units_max = limits::blocks_max + 2;
inline constexpr std::size_t job_microbatches_max = 65536;
inline constexpr std::size_t job_copies_max = 4 * job_units_max;
/// The most attempts at an arriving unit; after them it is left to the halt.
inline constexpr std::uint32_t arrival_tries_max = 3;

/// Whether each unit is listed once, in order.
template <class Unit>
bool is_by_unit(const std::vector<Unit>& list) {
  return std::ranges::adjacent_find(list, std::ranges::greater_equal{},
                                    &Unit::unit)
         == list.end();
}

/// The step of a state, and the epoch of the assignment that made it. Steps
/// that are run again after a loss get a later epoch: equal versions have equal
/// bits.
struct state_version {
  std::uint64_t step = 0;
  epoch made = 0; ///< island_place::since
  friend auto operator<=>(const state_version&, const state_version&) = default;
};
void fields(auto& v, of<state_version> auto& x) {
  v("step", x.step, at_most(epoch_max));
  v("made", x.made, at_most(epoch_max));
}

/// Of two committed steps the one with the greater age is newer: a step
/// committed under a later assignment counts as newer, even if its number is
/// lower after a loss.
constexpr std::pair<epoch, std::uint64_t> age(const state_version& v) {
  return {v.made, v.step};
}

/// The sum of squares of a unit's reduced gradients: of its tensors in their
/// order. A tied tensor is counted in its first unit only.
struct unit_square {
  std::uint32_t unit = 0;
  double sum = 0;
  friend bool operator==(const unit_square&, const unit_square&) = default;
};
void fields(auto& v, of<unit_square> auto& x) {
  v("unit", x.unit, at_most(job_units_max - 1));
  v("sum", x.sum);
}

/// A hash of a unit's state: of its parameters and moments.
struct unit_digest {
  std::uint32_t unit = 0;
  std::uint64_t digest = 0;
  friend bool operator==(const unit_digest&, const unit_digest&) = default;
};
void fields(auto& v, of<unit_digest> auto& x) {
  v("unit", x.unit, at_most(job_units_max - 1));
  v("digest", x.digest);
}

/// The most bad steps in a row that a job may allow.
inline constexpr std::uint32_t bad_steps_max = 1'000'000;

/// Sent to all participants when all buckets of this step are reduced here: the
/// commit vote. Participants that share a unit send equal sums.
struct vote {
  job_header header;
  std::uint64_t step = 0;
  std::vector<unit_square> units;
  std::vector<double> losses; ///< of all microbatches; sent by heads and
                              ///< followers
  bool drain = false;         ///< stop after this step
  bool again = false;         ///< a repeat: answer with your vote if you have
                              ///< it
  nanoseconds busy = 0;       ///< time spent computing, part of `elapsed`
  nanoseconds elapsed = 0;  ///< from the step's begin to the last item computed
  std::uint64_t copied = 0; ///< step + 1 of the newest copies that are complete
                            ///< here
  std::vector<std::uint64_t>
    samples;            ///< sent with losses: their digests (ledger.hpp)
  bool writing = false; ///< the sender still writes shards of a checkpoint
  bool unable = false;  ///< its disk refuses them: another holder is to write
  std::uint64_t checkpoint_lag = 0;   ///< to expect of one that the sender
                                      ///< publishes; 0: unknown
  std::vector<unit_digest> digests{}; ///< of some units, as the step began
  std::uint32_t bad_before = 0;       ///< step_record::bad of the step before
  friend bool operator==(const vote&, const vote&) = default;
};
void fields(auto& v, of<vote> auto& x) {
  v("header", x.header);
  v("step", x.step, at_most(epoch_max));
  v("units", x.units, list_of(job_units_max));
  v("losses", x.losses, list_of(job_microbatches_max));
  v("drain", x.drain);
  v("again", x.again);
  v("busy", x.busy, at_most(epoch_max));
  v("elapsed", x.elapsed, at_most(epoch_max));
  v("copied", x.copied, at_most(epoch_max));
  v("samples", x.samples, list_of(job_microbatches_max));
  v("writing", x.writing);
  v("unable", x.unable);
  v("checkpoint_lag", x.checkpoint_lag, at_most(epoch_max));
  v("digests", x.digests, list_of(job_units_max));
  v("bad_before", x.bad_before, at_most(bad_steps_max));
}

/// A committed step.
struct step_record {
  state_version version;
  double loss = 0;
  double grad_norm = 0;
  std::uint32_t replicas = 0; ///< of the assignment that ran it
  std::uint32_t stages = 0;
  std::uint64_t data = 0; ///< digest of the samples it used; 0: unknown
  /// Number of steps in a row, up to this one, with a loss or norm that is not
  /// finite. Each counts as a step and leaves the state unchanged. 0: this one
  /// was applied.
  std::uint32_t bad = 0;
  /// Compares bits: a loss that is NaN equals itself.
  friend bool operator==(const step_record& a, const step_record& b) {
    const auto all = [](const step_record& r) {
      return std::tuple(r.version, std::bit_cast<std::uint64_t>(r.loss),
                        std::bit_cast<std::uint64_t>(r.grad_norm), r.replicas,
                        r.stages, r.data, r.bad);
    };
    return all(a) == all(b);
  }
};
void fields(auto& v, of<step_record> auto& x) {
  v("version", x.version);
  v("loss", x.loss);
  v("grad_norm", x.grad_norm);
  v("replicas", x.replicas, at_most(limits::replicas_max));
  v("stages", x.stages, at_most(limits::stages_max));
  v("data", x.data);
  v("bad", x.bad, at_most(bad_steps_max));
}

/// The norm that the step is applied with; NaN: the state does not change.
[[nodiscard]] double applied_norm(const step_record& r);

struct held_unit {
  std::uint32_t unit = 0;
  state_version applied;
  bool prepared = false; ///< the reduced gradients of seal::prepared are here
  /// The newest version of the unit that was hashed here, this one or an
  /// earlier one. A zero `made`: none.
  state_version hashed{};
  std::uint64_t digest = 0;
  friend bool operator==(const held_unit&, const held_unit&) = default;
};
void fields(auto& v, of<held_unit> auto& x) {
  v("unit", x.unit, at_most(job_units_max - 1));
  v("applied", x.applied);
  v("prepared", x.prepared);
  v("hashed", x.hashed);
  v("digest", x.digest);
}

/// An earlier state of a unit, kept next to the one that steps change.
struct unit_copy {
  std::uint32_t unit = 0;
  state_version version;
  friend bool operator==(const unit_copy&, const unit_copy&) = default;
};
void fields(auto& v, of<unit_copy> auto& x) {
  v("unit", x.unit, at_most(job_units_max - 1));
  v("applied", x.version);
}

/// A checkpoint: resumable state published under a manifest. Of two, the one of
/// the later assignment is newer: a run that had to go back makes checkpoints
/// of earlier steps than those that a store may still hold.
struct checkpoint_ref {
  std::uint64_t step = 0;
  blob_digest manifest{}; ///< zero: none
  epoch since = 0;        ///< the assignment under which it was reported
  friend bool
  operator==(const checkpoint_ref&, const checkpoint_ref&) = default;
  friend auto operator<=>(const checkpoint_ref& a, const checkpoint_ref& b) {
    return std::tie(a.since, a.step, a.manifest)
           <=> std::tie(b.since, b.step, b.manifest);
  }
};
void fields(auto& v, of<checkpoint_ref> auto& x) {
  v("step", x.step, at_most(epoch_max));
  v("manifest", x.manifest);
  v("since", x.since, at_most(epoch_max));
}

inline constexpr std::size_t checkpoints_told_max = 16; ///< in one seal
/// Runs of parts, in any order (state/part_set.hpp).
void fields(auto& v, of<part_range> auto& x) {
  v("first", x.first, at_most(job_units_max));
  v("last", x.last, at_most(job_units_max));
}
inline constexpr std::size_t part_runs_max = job_units_max / 2 + 1;

/// A checkpoint in a store.
struct stored_checkpoint {
  checkpoint_ref checkpoint;
  std::vector<part_range> lacks; ///< parts of which it lacks the files
  friend bool
  operator==(const stored_checkpoint&, const stored_checkpoint&) = default;
};
void fields(auto& v, of<stored_checkpoint> auto& x) {
  v("checkpoint", x.checkpoint);
  v("lacks", x.lacks, list_of(part_runs_max));
}

/// What a sealer of the assignment in `header` holds while it stands still. One for
/// each assignment, never changed, sent to all sealers.
struct seal {
  job_header header;
  std::vector<held_unit> units;  ///< by unit
  std::vector<unit_copy> copies; ///< by version, then unit
  state_version prepared;        ///< zero: none
  vote prepared_vote;            ///< own vote of `prepared`
  step_record last;              ///< the newest committed step known; 0: none
  std::uint64_t stop_step = 0;   ///< drained: first step not to run; 0: none
  std::uint64_t evaluated = 0;   ///< newest step + 1 evaluated; 0: none
  std::vector<stored_checkpoint> stored; ///< in our store; ascending
  std::vector<checkpoint_ref> given_up;  ///< those that are whole nowhere
  std::vector<checkpoint_ref> heard;     ///< known to be published; ascending
  state_version known;   ///< newest committed version, if there is no record of
                         ///< it; 0: last
  std::uint64_t top = 0; ///< the largest step ever committed and not given up
                         ///< for good: losses are counted from it
  bool unable = false;   ///< its disk refuses parts of checkpoints
  bool has_blobs = false;           ///< our store has all blobs of the job
  std::uint64_t checkpoint_lag = 0; ///< from votes; 0: unknown
  bool again = false;               ///< a repeat: answer with your seal
  friend bool operator==(const seal&, const seal&) = default;
};
void fields(auto& v, of<seal> auto& x) {
  v("header", x.header);
  v("units", x.units, list_of(job_units_max));
  v("copies", x.copies, list_of(job_copies_max));
  v("prepared", x.prepared);
  v("prepared_vote", x.prepared_vote);
  v("last", x.last);
  v("stop_step", x.stop_step, at_most(epoch_max));
  v("evaluated", x.evaluated, at_most(epoch_max));
  v("stored", x.stored, list_of(checkpoints_told_max));
  v("given_up", x.given_up, list_of(checkpoints_told_max));
  v("heard", x.heard, list_of(checkpoints_told_max));
  v("known", x.known);
  v("top", x.top, at_most(epoch_max));
  v("unable", x.unable);
  v("has_blobs", x.has_blobs);
  v("checkpoint_lag", x.checkpoint_lag, at_most(epoch_max));
  v("again", x.again);
  v.must(runtime::errc::corrupt, [&] { return is_by_unit(x.units); });
}

/// The sender's store has all blobs of the job. To all sealers.
struct have_blobs {
  job_header header;
  friend bool operator==(const have_blobs&, const have_blobs&) = default;
};
void fields(auto& v, of<have_blobs> auto& x) {
  v("header", x.header);
}

/// Wall time of a step as measured; zeros: unknown.
struct step_time {
  nanoseconds whole = 0;
  nanoseconds computing = 0; ///< from its begin to the last backward
  nanoseconds reducing = 0;  ///< from there until all gradients were reduced
  friend bool operator==(const step_time&, const step_time&) = default;
};

/// Sent by the reporter to every member of the view.
struct progress {
  job_header header;
  step_record record;
  double lr = 0;                     ///< filled in by the shell
  std::uint64_t tokens = 0;          ///< in this step; by the shell
  step_time took;                    ///< measured by the reporter; filled in by
                                     ///< the shell
  std::uint32_t bubble_permille = 0; ///< of the step; filled in by the shell
  friend bool operator==(const progress&, const progress&) = default;
};
void fields(auto& v, of<progress> auto& x) {
  v("header", x.header);
  v("record", x.record);
  v("lr", x.lr);
  v("tokens", x.tokens, at_most(limits::bytes_max));
  v("took", x.took.whole, at_most(limits::nanoseconds_max));
  v("computing", x.took.computing, at_most(limits::nanoseconds_max));
  v("reducing", x.took.reducing, at_most(limits::nanoseconds_max));
  v("bubble_permille", x.bubble_permille, at_most(1000));
}

/// Sent by the evaluator to every member.
struct eval_result {
  job_header header;
  state_version version;
  double loss = 0;          ///< mean negative log likelihood, nats
  std::uint64_t tokens = 0; ///< zero: it failed
  friend bool operator==(const eval_result&, const eval_result&) = default;
};
void fields(auto& v, of<eval_result> auto& x) {
  v("header", x.header);
  v("version", x.version);
  v("loss", x.loss);
  v("tokens", x.tokens, at_most(limits::bytes_max));
}

/// A unit in a checkpoint: two files, named by their digests.
struct written_shard {
  std::uint32_t unit = 0;
  blob_digest model{}; ///< its parameters
  std::uint64_t model_bytes = 0;
  blob_digest optimizer{}; ///< its moments
  std::uint64_t optimizer_bytes = 0;
  friend bool operator==(const written_shard&, const written_shard&) = default;
};
void fields(auto& v, of<written_shard> auto& x) {
  v("unit", x.unit, at_most(job_units_max - 1));
  v("model", x.model);
  v("model_bytes", x.model_bytes, at_most(limits::bytes_max));
  v("optimizer", x.optimizer);
  v("optimizer_bytes", x.optimizer_bytes, at_most(limits::bytes_max));
}

/// The sender's store has its shards of a checkpoint, or why it has not. Sent
/// to the publisher repeatedly, until the publisher reports the result.
struct shards_written {
  job_header header;
  std::uint64_t step = 0;
  std::vector<written_shard> shards; ///< by unit; none if `why` is set
  std::string why;                   ///< why it could not be written
  bool trying = false;               ///< if `why`: the sender keeps trying
  friend bool
  operator==(const shards_written&, const shards_written&) = default;
};
void fields(auto& v, of<shards_written> auto& x) {
  v("header", x.header);
  v("step", x.step, at_most(epoch_max));
  v("shards", x.shards, list_of(job_units_max));
  v("why", x.why, cleaned_text_of(limits::text_bytes_max));
  v("trying", x.trying);
  v.must(runtime::errc::corrupt, [&] { return is_by_unit(x.shards); });
}

/// Sent by the publisher to every member. A zero manifest: it failed.
struct checkpoint_published {
  job_header header;
  checkpoint_ref checkpoint; ///< no manifest: it could not be written
  std::uint64_t bytes = 0;
  std::string why;               ///< if it failed: the reason, for users
  bool trying = false;           ///< if it failed: the sender keeps trying
  peer_id refused{};             ///< the peer that could not write; zero: the
                                 ///< sender
  std::vector<peer_id> unable{}; ///< peers that wrote nothing of it; ascending
  friend bool operator==(const checkpoint_published&,
                         const checkpoint_published&) = default;
};
void fields(auto& v, of<checkpoint_published> auto& x) {
  v("header", x.header);
  v("checkpoint", x.checkpoint);
  v("bytes", x.bytes, at_most(limits::bytes_max));
  v("why", x.why, cleaned_text_of(limits::text_bytes_max));
  v("trying", x.trying);
  v("refused", x.refused);
  v("unable", x.unable, list_of(cluster::members_max));
}

/// The sender's store has what it keeps of this checkpoint (shards.hpp). To all
/// participants, under the assignment that wrote it. If `refused`, its disk refuses
/// it; to all sealers, who may have to keep it.
struct have_checkpoint {
  job_header header;
  checkpoint_ref checkpoint;
  bool refused = false;            ///< another peer is to keep it
  std::vector<part_range> lacks{}; ///< parts that the store does not have
  friend bool
  operator==(const have_checkpoint&, const have_checkpoint&) = default;
};
void fields(auto& v, of<have_checkpoint> auto& x) {
  v("header", x.header);
  v("checkpoint", x.checkpoint);
  v("refused", x.refused);
  v("lacks", x.lacks, list_of(part_runs_max));
}

/// The sender's store has all that it restores from this checkpoint, verified.
/// Sent to all participants: none voids what it holds before all have sent
/// this.
struct restorable {
  job_header header;
  checkpoint_ref checkpoint;
  bool again = false; ///< a repeat: answer with yours
  friend bool operator==(const restorable&, const restorable&) = default;
};
void fields(auto& v, of<restorable> auto& x) {
  v("header", x.header);
  v("checkpoint", x.checkpoint);
  v("again", x.again);
}

/// Go on without the checkpoint that the job waits for. Sent to all sealers by
/// the peer on which a user asked for it.
struct stop_waiting {
  job_header header;
  friend bool operator==(const stop_waiting&, const stop_waiting&) = default;
};
void fields(auto& v, of<stop_waiting> auto& x) {
  v("header", x.header);
}

inline constexpr std::size_t stall_peers_max = 64;
inline constexpr std::size_t stall_where_max = 64;    ///< bytes
inline constexpr std::size_t stall_verdict_max = 400; ///< bytes

/// What the sender sees of a job that makes no progress (stall_watch.hpp). Sent
/// to all sealers; peers that are still under another assignment also send it
/// and are reported on.
struct stall_report {
  job_header header;
  std::uint64_t step = 0;    ///< in progress
  bool asks = false;         ///< answer with your report
  bool active = false;       ///< something should move here
  bool halting = false;      ///< work of an older assignment has not stopped
  nanoseconds idle = 0;      ///< time without any change
  nanoseconds budget = 0;    ///< the longest such time allowed
  bool loading = false;      ///< state or data come from disks and stores
  nanoseconds computing = 0; ///< how long the device (while loading: the disk)
                             ///< has been at its present piece of work; 0: idle
  std::vector<peer_id> sending_to; ///< peers with unfinished transfers from
                                   ///< here
  std::string where;               ///< for users
  std::string verdict; ///< not empty: the view that the sender has wished for,
                       ///< and why
  friend bool operator==(const stall_report&, const stall_report&) = default;
};
void fields(auto& v, of<stall_report> auto& x) {
  v("header", x.header);
  v("step", x.step, at_most(epoch_max));
  v("asks", x.asks);
  v("active", x.active);
  v("halting", x.halting);
  v("idle_ns", x.idle, at_most(epoch_max));
  v("budget_ns", x.budget, at_most(epoch_max));
  v("loading", x.loading);
  v("computing_ns", x.computing, at_most(epoch_max));
  v("sending_to", x.sending_to, list_of(stall_peers_max));
  v("where", x.where, cleaned_text_of(stall_where_max));
  v("verdict", x.verdict, cleaned_text_of(stall_verdict_max));
}

/// The sender is to receive a unit (planning/arrivals.hpp): send it from the
/// next step boundary on. Sent to the unit's source until it begins.
struct arrival_wanted {
  job_header header;
  std::uint32_t unit = 0;
  std::uint32_t attempt = 0; ///< from 1; replaces older ones. 0: in step
  std::uint64_t after = 0;   ///< if not 0: the sender knows no commits from
                             ///< this step on
  friend bool
  operator==(const arrival_wanted&, const arrival_wanted&) = default;
};
void fields(auto& v, of<arrival_wanted> auto& x) {
  v("header", x.header);
  v("unit", x.unit, at_most(job_units_max - 1));
  v("attempt", x.attempt, at_most(arrival_tries_max));
  v("after", x.after, at_most(epoch_max));
}

/// A copy of the unit at `version` is on its way; its reduced gradients of each
/// later step follow.
struct arrival_begun {
  job_header header;
  std::uint32_t unit = 0;
  std::uint32_t attempt = 0;
  state_version version;
  friend bool operator==(const arrival_begun&, const arrival_begun&) = default;
};
void fields(auto& v, of<arrival_begun> auto& x) {
  v("header", x.header);
  v("unit", x.unit, at_most(job_units_max - 1));
  v("attempt", x.attempt, at_most(arrival_tries_max));
  v("version", x.version);
}

/// All state that arrives at the sender is here as of `step`, except what could
/// not be moved while the run goes on. Sent to all participants, again with
/// every step.
struct arrival_complete {
  job_header header;
  std::uint64_t step = 0;
  friend bool
  operator==(const arrival_complete&, const arrival_complete&) = default;
};
void fields(auto& v, of<arrival_complete> auto& x) {
  v("header", x.header);
  v("step", x.step, at_most(epoch_max));
}

/// The sender knows no committed steps after this one: send them, each as
/// `progress`.
struct records_wanted {
  job_header header;
  state_version after;
  friend bool
  operator==(const records_wanted&, const records_wanted&) = default;
};
void fields(auto& v, of<records_wanted> auto& x) {
  v("header", x.header);
  v("after", x.after);
}

inline constexpr std::size_t remark_bytes_max = 1024;

/// A remark about the job, for users, who may ask any member.
struct remark {
  job_header header;
  std::uint64_t step = 0;
  std::string text;
  blob_digest wanted{}; ///< bytes that a client may upload
  bool waits = false;   ///< no step ends until what the text describes has
                        ///< happened
  friend bool operator==(const remark&, const remark&) = default;
};
void fields(auto& v, of<remark> auto& x) {
  v("header", x.header);
  v("step", x.step, at_most(epoch_max));
  v("text", x.text, cleaned_text_of(remark_bytes_max));
  v("wanted", x.wanted);
  v("waits", x.waits);
}

using job_message =
  std::variant<vote, seal, have_blobs, progress, eval_result,
               checkpoint_published, have_checkpoint, shards_written,
               stall_report, arrival_wanted, arrival_begun, arrival_complete,
               records_wanted, restorable, stop_waiting, remark>;
/// Names of the kinds, in their order; the same as in job.proto.
inline constexpr std::array<const char*, std::variant_size_v<job_message>>
  job_message_names = {"vote",
                       "seal",
                       "have_blobs",
                       "progress",
                       "eval_result",
                       "checkpoint_published",
                       "have_checkpoint",
                       "shards_written",
                       "stall_report",
                       "arrival_wanted",
                       "arrival_begun",
                       "arrival_complete",
                       "records_wanted",
                       "restorable",
                       "stop_waiting",
                       "remark"};

/// The header of any message.
[[nodiscard]] const job_header& header(const job_message& m);

} // namespace shoal::core
