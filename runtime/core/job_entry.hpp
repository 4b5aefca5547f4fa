// runtime/core/job_entry.hpp -- a job, as views list it (view.hpp).
//
// What was submitted, what its model needs, what its user wants, and the marks
// that its islands have got so far.
//
// Below each struct stand its fields as messages and canonical bytes contain
// them (fields.hpp).
//
// Threads: plain data.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/limits.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::core {

enum class job_state : std::uint8_t {
  running = 1,
  done = 2,
  cancelled = 3,
  failed = 4,
};

inline constexpr std::int32_t priority_min = -100;
inline constexpr std::int32_t priority_max = 100;

/// What a job does. Each kind has a placer (planning/plan.cpp), which gives its
/// islands their places, and an actor (actors/job_kinds.hpp) that runs an island
/// on a peer; nothing else depends on the kind.
enum class job_kind : std::uint8_t {
  train = 1, ///< training; the peers of an island make each step together
  serve = 2, ///< a model answers requests; an island is a pipeline of it
};

enum class mark_kind : std::uint8_t {
  retried = 1, ///< it made no progress: the same place gets another number
  arrived = 2, ///< its arriving units are all in place
  done = 3,    ///< its last step is committed
  drained = 4, ///< it has stopped before its last step, as a user asked
  /// A user asked for that: all islands stop after their step. Always of island
  /// 0, and `since` is the view that agreed on it.
  draining = 5,
  /// A served model is to have another number of pipelines, as its load asks for.
  /// Always of island 0, and `since` is the view that agreed on it.
  scaled = 6,
};

/// What the peers of an island have reported about its place of epoch `since`,
/// and what the next plan depends on; or what a user has asked for.
struct island_mark {
  mark_kind kind = mark_kind::retried;
  std::uint32_t island = 0;
  epoch since = 0;
  /// done, drained: the last committed step; scaled: the number of islands
  std::uint64_t step = 0;
  friend bool operator==(const island_mark&, const island_mark&) = default;
};
void fields(auto& v, of<island_mark> auto& x) {
  v("kind", x.kind, up_to(mark_kind::scaled));
  v("island", x.island, at_most(limits::islands_max - 1));
  v("since", x.since, at_most(epoch_max));
  v("step", x.step, at_most(epoch_max));
}
inline constexpr std::size_t marks_max = 6 * limits::islands_max;

/// The weights of a served job that follows a training job: one of that job's
/// checkpoints.
struct model_version {
  std::uint64_t step = 0;
  blob_digest manifest{};
  friend bool operator==(const model_version&, const model_version&) = default;
};
void fields(auto& v, of<model_version> auto& x) {
  v("step", x.step, at_most(epoch_max));
  v("manifest", x.manifest);
}
/// The newest, and the one before: requests keep the version that they began
/// with.
inline constexpr std::size_t versions_max = 2;

/// A job as agreed: small, complete, immutable except for its state and marks.
/// Its large data (text, tokens, weights) is in the store under its digest.
struct job_entry {
  job_id id = 0;
  std::string name;
  job_kind kind = job_kind::train;
  job_state state = job_state::running;
  std::string run_json; ///< the resolved run file, as JSON; <= 64 KiB
  blob_digest data{};   ///< the training and validation corpus
  std::uint64_t data_bytes = 0;
  blob_digest origin{}; ///< initial weights or checkpoint; zero: random from
                        ///< the seed
  std::uint64_t origin_bytes = 0;
  std::uint64_t origin_step = 0;       ///< the step of the origin
  std::uint32_t blocks = 0;            ///< of the model
  std::uint32_t microbatches = 0;      ///< in one step
  std::uint64_t block_flops = 0;       ///< forward + backward, one microbatch
  std::uint64_t head_flops = 0;        ///< additional, for the last stage
  std::uint64_t block_state_bytes = 0; ///< parameters, gradients, optimizer
  std::uint64_t embed_state_bytes = 0;
  std::uint64_t head_state_bytes = 0;
  std::uint64_t activation_bytes = 0;     ///< kept per block and microbatch
  std::uint64_t boundary_bytes = 0;       ///< from stage to stage, microbatch
  std::uint64_t block_traffic_bytes = 0;  ///< of memory, besides that of matrix
                                          ///< products
  std::uint64_t head_traffic_bytes = 0;   ///< the same for the head
  std::int32_t want_replicas = -1;        ///< -1: choose
  std::int32_t want_stages = -1;          ///< -1: choose
  std::vector<std::uint32_t> want_blocks; ///< blocks per stage; empty: choose
  std::optional<schedule_kind> want_schedule; ///< nothing: choose
  std::int32_t want_virtual = -1;    ///< runs of blocks on a peer; -1: choose
  std::uint32_t want_copies = 0;     ///< of each unit's state, besides the
                                     ///< first
  std::uint32_t want_copy_every = 0; ///< steps; 0: choose
  peer_id submitter{};
  std::uint64_t done_step = 0; ///< committed steps at its end
  epoch changed = 0; ///< the view that submitted it or last set its state
  /// Jobs of higher priority are planned first and take what they need, also
  /// from jobs that run; 0 is usual. Within priority_min .. priority_max.
  std::int32_t priority = 0;
  std::string cause; ///< why it failed
  /// When it was submitted: Unix time by the submitting node's clock; 0:
  /// unknown.
  std::int64_t submitted_ms = 0;
  std::string user; ///< "user@host" of the submitting command, for display
  std::uint32_t want_islands = 1; ///< at least 1; now: islands_of()
  /// Members that share the parts of checkpoints; 0: the keepers hold them
  /// whole.
  std::uint32_t want_part_keepers = 0;
  std::vector<island_mark> marks; ///< one of a kind for each island
  /// Of a served job that follows another, newest first; empty: its origin.
  std::vector<model_version> versions;
  friend bool operator==(const job_entry&, const job_entry&) = default;
};
void fields(auto& v, of<job_entry> auto& x) {
  v("id", x.id);
  v("name", x.name, text_of(limits::name_bytes_max));
  v("state", x.state, up_to(job_state::failed));
  v("run_json", x.run_json, lines_of(cluster::run_json_bytes_max));
  v("data", x.data);
  v("data_bytes", x.data_bytes, at_most(limits::bytes_max));
  v("origin", x.origin);
  v("origin_bytes", x.origin_bytes, at_most(limits::bytes_max));
  v("blocks", x.blocks, at_most(limits::blocks_max));
  v("microbatches", x.microbatches, at_most(limits::microbatches_max));
  v("block_flops", x.block_flops, at_most(limits::flops_max));
  v("head_flops", x.head_flops, at_most(limits::flops_max));
  v("block_state_bytes", x.block_state_bytes, at_most(limits::bytes_max));
  v("embed_state_bytes", x.embed_state_bytes, at_most(limits::bytes_max));
  v("head_state_bytes", x.head_state_bytes, at_most(limits::bytes_max));
  v("activation_bytes", x.activation_bytes, at_most(limits::bytes_max));
  v("boundary_bytes", x.boundary_bytes, at_most(limits::bytes_max));
  v("block_traffic_bytes", x.block_traffic_bytes, at_most(limits::bytes_max));
  v("head_traffic_bytes", x.head_traffic_bytes, at_most(limits::bytes_max));
  v("want_replicas", x.want_replicas, within(-1, limits::want_replicas_max));
  v("want_stages", x.want_stages, within(-1, limits::want_stages_max));
  v("want_blocks", x.want_blocks,
    list_of(limits::want_stages_max, at_most(limits::blocks_max)));
  v("want_schedule", x.want_schedule, up_to(schedule_kind::zero_bubble));
  v("want_virtual", x.want_virtual, within(-1, limits::want_virtual_max));
  v("want_copies", x.want_copies, at_most(copies_max));
  v("want_copy_every", x.want_copy_every, at_most(copy_every_max));
  v("submitter", x.submitter);
  v("done_step", x.done_step, at_most(epoch_max));
  v("origin_step", x.origin_step, at_most(epoch_max));
  v("changed", x.changed, at_most(epoch_max));
  v("priority", x.priority, within(priority_min, priority_max));
  v.edition(1, presence::if_set_or_later);
  v("cause", x.cause, text_of(limits::job_cause_bytes_max));
  v.edition(2, presence::if_set_or_later);
  v("submitted_ms", x.submitted_ms, at_most(limits::unix_ms_max));
  v("user", x.user, text_of(limits::job_user_bytes_max));
  // Views from versions with one kind of job and one island lack these.
  v("kind", x.kind, or_absent(up_to(job_kind::serve)));
  v("want_islands", x.want_islands, or_absent(within(1, limits::islands_max)));
  v("marks", x.marks, list_of(marks_max));
  v.edition(3, presence::if_set_or_later);
  v("want_part_keepers", x.want_part_keepers, at_most(cluster::members_max));
  v.edition(4, presence::if_set_or_later);
  v("versions", x.versions, list_of(versions_max));
}

/// The versions of a served job that may have requests, newest first; at least
/// one.
[[nodiscard]] std::vector<model_version> served_versions(const job_entry& job);

/// The newest place of an island, by its `since`, that has this mark; 0: none.
[[nodiscard]] epoch
marked(const job_entry& job, mark_kind kind, std::uint32_t island);

/// The number of islands that the job is to have now: that of a `scaled` mark, or
/// as it was submitted.
[[nodiscard]] std::uint32_t islands_of(const job_entry& job);

/// Whether the job runs and is to stop after its step, as a user asked.
[[nodiscard]] bool is_draining(const job_entry& job);

/// ", island 1": of a job with several islands; else empty.
[[nodiscard]] std::string
island_text(const job_entry& job, std::uint32_t island);

/// Adds a mark, or replaces an older one of that kind and island.
void set_mark(job_entry& job, const island_mark& mark);

/// "running", "done", ...
[[nodiscard]] const char* to_text(job_state s);

} // namespace shoal::core
