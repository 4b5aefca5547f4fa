// runtime/core/view.hpp -- the one small thing that all peers agree on.
//
// View = epoch, members with the measurements of them, jobs, and each job's
// assignment in the view before. Views of one shoal form a single chain; two
// peers never act on different views of one epoch. make_plan
// (planning/plan.hpp) turns a view into what runs where.
//
// Invariants
// V-1: members are sorted by peer id and each peer occurs once.
// V-2: jobs are sorted by id.
// V-3: an assignment names only members of the view that it was made from.
// V-4: cuts are sorted, each occurs once, and both ends are members.
//
// Below each struct stand its fields as messages and canonical bytes contain
// them (fields.hpp).
//
// Threads: plain data.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/planner_version.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::core {

/// The abilities of a peer, measured at start and quantised, so that noise does
/// not cause new views.
struct device_profile {
  std::string kind = "cpu";            ///< "cpu" now; later "cuda"
  std::string name;                    ///< the processor's name, for display
  std::uint32_t threads = 1;           ///< usable by the peer
  std::uint64_t mflops = 0;            ///< measured fp32 matrix speed, MFLOP/s
  std::uint64_t memory_bytes = 0;      ///< usable by jobs
  std::uint32_t host_threads = 0;      ///< cores of its host; 0: unknown
  std::uint64_t stream_mbps = 0;       ///< memory bandwidth, measured, MB/s; 0:
                                       ///< none
  std::uint64_t host_memory_bytes = 0; ///< total of its host or container; 0:
                                       ///< unknown
  /// No user chose memory_bytes: peers of one host with this flag have that
  /// amount only once, for all of them (planning/host_memory.hpp).
  bool memory_is_share = false;
  /// Room on the peer's disk for the files of served models, those that are there
  /// included (planning/file_keepers.hpp); 0: unknown.
  std::uint64_t disk_bytes = 0;
  friend bool
  operator==(const device_profile&, const device_profile&) = default;
};

/// Its editions are those of `member`.
void fields(auto& v, of<device_profile> auto& x) {
  v("kind", x.kind, text_of(limits::name_bytes_max));
  v("name", x.name, text_of(limits::name_bytes_max));
  v("threads", x.threads, at_most(limits::threads_max));
  v("mflops", x.mflops, at_most(limits::mflops_max));
  v("memory_bytes", x.memory_bytes, at_most(limits::bytes_max));
  v.edition(1, presence::if_set);
  v("host_threads", x.host_threads, at_most(limits::threads_max));
  v("stream_mbps", x.stream_mbps, at_most(limits::mflops_max));
  v.edition(2, presence::if_set);
  v("host_memory_bytes", x.host_memory_bytes, at_most(limits::bytes_max));
  v("memory_is_share", x.memory_is_share);
  v.edition(3, presence::if_set); // only for the member
  v.edition(4, presence::if_set);
  v("disk_bytes", x.disk_bytes, at_most(limits::bytes_max));
}

/// A network that a member is in, as measured at its end and quantised. The
/// speed between two members is that of the worse end of their best common
/// network.
struct network_profile {
  std::string name; ///< equal where members reach each other; "host": within
  nanoseconds latency = 0; ///< one way, of a small message
  std::uint64_t bytes_per_s = 0;
  friend bool
  operator==(const network_profile&, const network_profile&) = default;
};
void fields(auto& v, of<network_profile> auto& x) {
  v("name", x.name, text_of(limits::name_bytes_max));
  v("latency", x.latency, at_most(limits::latency_max));
  v("bytes_per_s", x.bytes_per_s, at_most(limits::bytes_max));
}
/// Limit of the networks that a member lists.
inline constexpr std::size_t networks_max = 4;
/// Limit of its roles: more than the plug-ins of one node have, few enough that
/// a view of many members stays small.
inline constexpr std::size_t member_roles_max = 32;

enum class member_state : std::uint8_t {
  active = 1,
  leaving = 2, ///< gets no work, still holds state until others have it
  joining = 3, ///< admitted, not in contact yet: no vote, no work
};

struct member {
  member_id id;
  std::string name;                   ///< for display
  std::vector<std::string> addresses; ///< "host:port" for tls
  std::string host; ///< boot id: peers that share cores and memory
  device_profile device;
  std::vector<network_profile> networks; ///< empty: not measured
  std::uint64_t instance = 0;            ///< identifies one start of the
                                         ///< process
  bool voter = true;                     ///< false only while joining
  bool witness = false;                  ///< votes, gets no work
  member_state state = member_state::active;
  std::vector<std::string> roles; ///< names of roles that run files may place
                                  ///< here
  friend bool operator==(const member&, const member&) = default;
};
void fields(auto& v, of<member> auto& x) {
  v("id", x.id);
  v("instance", x.instance);
  v("name", x.name, text_of(limits::name_bytes_max));
  v("addresses", x.addresses,
    list_of(limits::addresses_max, text_of(limits::address_bytes_max)));
  v("host", x.host, text_of(limits::name_bytes_max));
  v("device", x.device);
  v("voter", x.voter);
  v("witness", x.witness);
  v("state", x.state, up_to(member_state::joining));
  v.edition(1, presence::if_set); // measurements, also of the device
  v("networks", x.networks, list_of(networks_max));
  v.edition(2, presence::if_set); // only for the device
  v.edition(3, presence::if_set);
  v("roles", x.roles,
    list_of(member_roles_max, text_of(limits::role_name_bytes_max)));
}

enum class job_state : std::uint8_t {
  running = 1,
  done = 2,
  cancelled = 3,
  failed = 4,
};

inline constexpr std::int32_t priority_min = -100;
inline constexpr std::int32_t priority_max = 100;

/// One line of text, with a path or two.
inline constexpr std::size_t job_cause_bytes_max = 512;
/// "user@host": on Linux user names have at most 32 bytes, host names 64.
inline constexpr std::size_t job_user_bytes_max = 97;

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
  std::string cause; ///< why it failed, at most job_cause_bytes_max
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
  v("cause", x.cause, text_of(job_cause_bytes_max));
  v.edition(2, presence::if_set_or_later);
  v("submitted_ms", x.submitted_ms, at_most(limits::unix_ms_max));
  v("user", x.user, text_of(job_user_bytes_max));
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

/// Two members that cannot reach each other, though a quorum reaches both: no
/// plan may need a link between them.
struct cut_pair {
  member_id low; ///< the lower peer id
  member_id high;
  friend auto operator<=>(const cut_pair&, const cut_pair&) = default;
};
void fields(auto& v, of<cut_pair> auto& x) {
  v("low", x.low);
  v("high", x.high);
}

/// The secret that all peers share, and the hash by which a view identifies it.
using cluster_key = std::array<std::uint8_t, 32>;
using key_digest = std::array<std::uint8_t, 32>;

/// A token that was handed out: the first peer that proves possession of its
/// key may have the cluster key, once.
struct invitation {
  cluster_key key{};          ///< of the token, not of the cluster
  std::int64_t expires_s = 0; ///< Unix time
  peer_id used_by{};          ///< zero: not used yet
  friend bool operator==(const invitation&, const invitation&) = default;
};
void fields(auto& v, of<invitation> auto& x) {
  v("key", x.key);
  v("expires_s", x.expires_s);
  v("used_by", x.used_by);
}

/// A peer that was expelled because it stalled a job although it answered. It
/// returns after a pause that grows with `times`.
struct stalled_peer {
  peer_id peer{};
  std::uint32_t times = 0; ///< in quick succession
  epoch since = 0;         ///< the view that expelled it last
  friend bool operator==(const stalled_peer&, const stalled_peer&) = default;
};
void fields(auto& v, of<stalled_peer> auto& x) {
  v("peer", x.peer);
  v("times", x.times, at_most(cluster::stall_times_max));
  v("since", x.since, at_most(epoch_max));
}

/// A shoal that had no quorum when `recover --force` created another one, which
/// goes on with its jobs.
struct superseded_shoal {
  shoal_id shoal{};
  epoch number = 0; ///< its last view, as known to the peer that was forced
  friend bool
  operator==(const superseded_shoal&, const superseded_shoal&) = default;
};
void fields(auto& v, of<superseded_shoal> auto& x) {
  v("shoal", x.shoal);
  v("number", x.number, at_most(epoch_max));
}

struct view {
  shoal_id shoal{};
  epoch number = 0;
  std::string cluster;
  std::vector<member> members;
  std::vector<job_entry> jobs;
  std::vector<assignment> previous; ///< assignments of the previous view
  /// The version of the peers that agreed on it.
  std::uint32_t planner_version = core::planner_version;
  /// Set in a shoal's last view: its members join this shoal instead.
  std::optional<shoal_id> dissolved_into;
  std::vector<std::string> dissolved_addresses; ///< addresses of that shoal
  std::vector<cut_pair> cuts;
  /// The cluster key in use; zero: the one with which the peers were started.
  core::key_digest key{};
  std::vector<peer_id> revoked; ///< never admitted again; newest last
  /// Former members, newest last: they may come back with a replaced key.
  std::vector<peer_id> lapsed;
  std::vector<invitation> invites;   ///< oldest first
  std::vector<stalled_peer> stalled; ///< members or not; latest last
  /// Shoals whose peers join this one when they return; latest last.
  std::vector<superseded_shoal> superseded;
  /// Jobs that have ended and are no longer listed, newest last: a late
  /// submission of one of them is ignored.
  std::vector<job_id> removed;
  /// Numbers of views in which the shoal was as good as gone: the next one was
  /// proposed by a process that had returned, and no process that was there
  /// before has proposed any since. Ascending.
  std::vector<epoch> outages;
  friend bool operator==(const view&, const view&) = default;
};

/// Whether V-1, V-2 and V-4 hold.
bool is_in_order(const view& v);

void fields(auto& v, of<view> auto& x) {
  v("shoal", x.shoal);
  v("number", x.number, at_most(epoch_max));
  v("cluster", x.cluster, text_of(limits::name_bytes_max));
  v("members", x.members, list_of(cluster::members_max));
  v("jobs", x.jobs, list_of(cluster::jobs_max));
  v("previous", x.previous, list_of(cluster::jobs_max));
  v("planner_version", x.planner_version);
  v("dissolved_into", x.dissolved_into);
  v("dissolved_addresses", x.dissolved_addresses,
    list_of(limits::addresses_max, text_of(limits::address_bytes_max)));
  v.edition(1, presence::if_set);
  v("cuts", x.cuts, list_of(cluster::cuts_max));
  v.edition(2, presence::if_set_or_later);
  v("key", x.key, or_absent());
  v("revoked", x.revoked, list_of(cluster::revoked_max));
  v("lapsed", x.lapsed, list_of(cluster::lapsed_max));
  v("invites", x.invites, list_of(cluster::invites_max));
  v.edition(3, presence::if_set_or_later);
  v("stalled", x.stalled, list_of(cluster::stalled_max));
  v.edition(4, presence::if_set_or_later);
  v("superseded", x.superseded, list_of(cluster::superseded_max));
  v.edition(5, presence::if_set_or_later);
  v("removed", x.removed, list_of(cluster::jobs_removed_max));
  v.edition(6, presence::if_set_or_later);
  v("outages", x.outages, list_of(cluster::outages_max, at_most(epoch_max)));
  v.must(runtime::errc::corrupt, [&] { return is_in_order(x); });
}

/// @returns the member with this peer id, or nullptr.
const member* find_member(const view& v, const peer_id& id);
const job_entry* find_job(const view& v, job_id id);

/// Whether the view lists these two, in either order, as cut from each other.
bool is_cut(const view& v, const peer_id& a, const peer_id& b);
bool is_revoked(const view& v, const peer_id& id);

/// Whether the member's vote counts: it is a voter and has taken its seat.
bool votes(const member& m);

/// Whether `agreeing` (peers; duplicates and strangers are ignored) is a
/// quorum of the voters of `v`: more than half, or exactly half with the
/// voter of the lowest id among them.
bool is_quorum(const view& v, const std::vector<peer_id>& agreeing);

} // namespace shoal::core
