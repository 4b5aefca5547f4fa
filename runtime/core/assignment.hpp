// runtime/core/assignment.hpp -- where one job runs, and which peer holds what.
//
// The planner makes assignments (planning/plan.hpp), and views carry them. An
// assignment is a list of islands. The peers of an island work in step with each
// other, by the protocol of training/job/job_core.hpp; islands know nothing of
// each other, so that a change in one leaves the others as they are. A job's
// state is cut into parts (state/parts.hpp), which are called units here; who
// holds which of them is answered by state/holdings.hpp.
//
// Invariants
// two different places of one island of a job never have the same `since`.
// digest() covers what the actors of the island depend on, and nothing of
//      other islands.
//
// Threads: plain data and pure functions.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shoal::core {

/// A device of a member: what a plan places work and state on.
struct seat {
  member_id member;
  std::uint32_t device = 0; ///< index among the member's devices

  seat() = default;
  /// A member alone stands for its first device.
  seat(const member_id& m, std::uint32_t d = 0) : member(m), device(d) {}
  friend auto operator<=>(const seat&, const seat&) = default;
};
void fields(auto& v, of<seat> auto& x) {
  v("member", x.member);
  v("device", x.device, at_most(limits::devices_max - 1));
}

/// One of the seats that share the work of a stage.
struct shard_place {
  seat where;
  friend bool operator==(const shard_place&, const shard_place&) = default;
};
void fields(auto& v, of<shard_place> auto& x) {
  v("where", x.where);
}

/// A run of consecutive blocks [first_block, last_block). The first stage also
/// holds the embedding, the last one the final norm and head. The planner gives
/// each stage one shard, which has all of its blocks.
struct stage_place {
  std::vector<shard_place> shards; ///< by rank; at least one
  std::uint32_t first_block = 0;
  std::uint32_t last_block = 0;
  std::uint32_t kept_max = 0; ///< microbatches that it may keep; 0: as many as
                              ///< the schedule needs (schedule/schedule.hpp)

  /// The member of the first shard, which speaks for the stage.
  [[nodiscard]] const member_id& lead() const noexcept {
    return shards.front().where.member;
  }
  friend bool operator==(const stage_place&, const stage_place&) = default;
};
void fields(auto& v, of<stage_place> auto& x) {
  v("shards", x.shards, list_of(limits::shards_max));
  v("first_block", x.first_block, at_most(limits::blocks_max));
  v("last_block", x.last_block, at_most(limits::blocks_max));
  v("kept_max", x.kept_max, at_most(limits::microbatches_max));
  v.must(runtime::errc::corrupt, [&] { return !x.shards.empty(); });
  v.must(runtime::errc::too_large,
         [&] { return x.first_block <= x.last_block; });
}
/// A stage of one shard, on the first device of a member.
[[nodiscard]] inline stage_place
stage_on(const member_id& who, std::uint32_t first_block,
         std::uint32_t last_block, std::uint32_t kept_max = 0) {
  return {{{who}}, first_block, last_block, kept_max};
}

/// A full pipeline, and its share [first, last) of a step's microbatches. A
/// member is in several replicas only where it stands in for another
/// (planning/detours.hpp).
struct replica_place {
  std::vector<stage_place> stages;
  std::uint32_t first_microbatch = 0;
  std::uint32_t last_microbatch = 0;
  friend bool operator==(const replica_place&, const replica_place&) = default;
};
void fields(auto& v, of<replica_place> auto& x) {
  v("stages", x.stages, list_of(limits::stages_max));
  v("first_microbatch", x.first_microbatch, at_most(limits::microbatches_max));
  v("last_microbatch", x.last_microbatch, at_most(limits::microbatches_max));
  v.must(runtime::errc::too_large,
         [&] { return x.first_microbatch <= x.last_microbatch; });
}

/// Units [first_unit, last_unit) whose state a seat keeps in addition to those
/// that compute them. See island_place::copy_every.
struct holder_place {
  seat where;
  std::uint32_t first_unit = 0;
  std::uint32_t last_unit = 0;
  friend bool operator==(const holder_place&, const holder_place&) = default;
};
void fields(auto& v, of<holder_place> auto& x) {
  v("where", x.where);
  v("first_unit", x.first_unit, at_most(limits::blocks_max + 2));
  v("last_unit", x.last_unit, at_most(limits::blocks_max + 2));
  v.must(runtime::errc::too_large, [&] { return x.first_unit <= x.last_unit; });
}
/// The largest number of copies of its state that a job may ask for.
inline constexpr std::uint32_t copies_max = 7;
inline constexpr std::uint32_t copy_every_max = 1000;
/// The largest number of runs of followed units, over all of a job.
inline constexpr std::size_t followers_max = 4096;

/// The order of a replica's work (schedule/schedule.hpp).
enum class schedule_kind : std::uint8_t {
  one_f_one_b = 1,
  interleaved = 2, ///< with several runs of blocks on each peer
  zero_bubble = 3, ///< runs weight gradients where a peer would wait
};

/// Where an island of a job runs: its part of the plan (its sub-plan).
struct island_place {
  epoch since = 0; ///< the view that last changed this place (A-1)
  std::vector<replica_place> replicas; ///< empty: the island waits for members
  /// Hold the job's text, and whole checkpoints unless others share them; >= 2
  /// if possible.
  std::vector<member_id> keepers;
  std::vector<member_id> sealers; ///< all that may hold state of the island,
                                  ///< sorted: all of them seal, and no others
  member_id data_source;          ///< roles that exist once
  member_id evaluator;
  member_id checkpointer;  ///< gathers and publishes checkpoints
  member_id reporter;      ///< broadcasts the committed steps
  std::string why_waiting; ///< the reason, if replicas is empty
  schedule_kind schedule = schedule_kind::one_f_one_b;
  std::vector<holder_place> followers; ///< by unit, then member
  /// 1: followers get the reduced gradients of every step and apply the same
  /// optimizer. More: all holders keep copies of the state every copy_every
  /// steps, and followers get those; at most copy_every steps are run again.
  std::uint32_t copy_every = 1;
  /// State that is brought to members that will hold it under a better layout,
  /// while this one goes on (planning/arrivals.hpp); by unit, then member.
  std::vector<holder_place> arriving;
  /// Share the parts of each checkpoint: each part is in as many of their
  /// stores as there are keepers. None: the keepers hold all parts.
  std::vector<member_id> part_keepers;
  friend bool operator==(const island_place&, const island_place&) = default;
};
void fields(auto& v, of<island_place> auto& x) {
  v("since", x.since, at_most(epoch_max));
  v("replicas", x.replicas, list_of(limits::replicas_max));
  v("keepers", x.keepers, list_of(cluster::members_max));
  v("sealers", x.sealers, list_of(cluster::members_max));
  v("data_source", x.data_source);
  v("evaluator", x.evaluator);
  v("checkpointer", x.checkpointer);
  v("reporter", x.reporter);
  v("why_waiting", x.why_waiting, cleaned_text_of(limits::text_bytes_max));
  // Absent in views from versions with only one schedule.
  v("schedule", x.schedule, or_absent(up_to(schedule_kind::zero_bubble)));
  v("followers", x.followers, list_of(followers_max));
  v("copy_every", x.copy_every, at_most(copy_every_max));
  v.edition(1, presence::if_set);
  v("arriving", x.arriving, list_of(followers_max));
  v.edition(2, presence::if_set);
  v("part_keepers", x.part_keepers, list_of(cluster::members_max));
}

/// The place of an island that a message was made under.
struct job_header {
  job_id job = 0;
  std::uint64_t digest = 0; ///< digest(island_id, island_place)
  epoch since = 0;          ///< island_place::since
  std::uint32_t island = 0;
  [[nodiscard]] island_id id() const noexcept { return {job, island}; }
  friend bool operator==(const job_header&, const job_header&) = default;
};
void fields(auto& v, of<job_header> auto& x) {
  v("job", x.job);
  v("digest", x.digest);
  v("since", x.since, at_most(epoch_max));
  v("island", x.island, at_most(limits::islands_max - 1));
}

/// Where a job runs: at least one island, by its index.
struct assignment {
  job_id job = 0;
  std::vector<island_place> islands;
  friend bool operator==(const assignment&, const assignment&) = default;
};
void fields(auto& v, of<assignment> auto& x) {
  v("job", x.job);
  v("islands", x.islands, list_of(limits::islands_max));
}

/// Whether the job runs nowhere: each of its islands waits for members.
[[nodiscard]] bool waits(const assignment& a);

/// 64-bit digest of an island's place. Links and messages of a job carry it, so
/// that nothing made under another place, or by another island, has an effect.
[[nodiscard]] std::uint64_t digest(const island_id& id, const island_place& a);

/// "1f1b", "interleaved", "zero_bubble": the names in run files.
[[nodiscard]] const char* to_text(schedule_kind k);

} // namespace shoal::core
