// runtime/core/view.hpp -- the one small thing that all peers agree on.
//
// View = epoch, members with what was measured of them, jobs, and each job's
// assignment in the view before. Views of one shoal form a single chain; two
// peers never act on different views of one epoch. make_plan (training/plan.hpp) turns
// a view into what runs where.
//
// Invariants
// V-1: members are sorted by peer id and each peer occurs once.
// V-2: jobs are sorted by id.
// V-3: an assignment names only members of the view that it was made from.
// V-4: cuts are sorted, each occurs once, and both ends are members.
//
// Threads: plain data.
#pragma once

#include "runtime/core/ids.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::core {

/// What a peer can do, measured at start and quantised, so that noise does
/// not make new views.
struct device_profile {
  std::string kind = "cpu";            ///< "cpu" now; later "cuda"
  std::string name;                    ///< for people: the processor's name
  std::uint32_t threads = 1;           ///< that the peer may use
  std::uint64_t mflops = 0;            ///< measured fp32 matrix speed, MFLOP/s
  std::uint64_t memory_bytes = 0;      ///< that jobs may use
  std::uint32_t host_threads = 0;      ///< cores of its host; 0: not known
  std::uint64_t stream_mbps = 0;       ///< measured, of its memory, MB/s; 0: no
  std::uint64_t host_memory_bytes = 0; ///< of its host or container, in all;
                                       ///< 0: not known
  /// Nobody chose memory_bytes: peers of one host that say so have it once,
  /// for all of them (training/host_memory.hpp).
  bool memory_is_share = false;
  friend bool
  operator==(const device_profile&, const device_profile&) = default;
};

/// A network that a member is in, as measured at its end and quantised. What
/// two members reach between them is the worse end of the best common one.
struct network_profile {
  std::string name; ///< equal where members reach each other; "host": within
  nanoseconds latency = 0; ///< one way, of a small message
  std::uint64_t bytes_per_s = 0;
  friend bool
  operator==(const network_profile&, const network_profile&) = default;
};
/// A member lists so many at most.
inline constexpr std::size_t networks_max = 4;
/// And so many roles: more than plug-ins of one node have, few enough that a
/// view of many members stays small.
inline constexpr std::size_t member_roles_max = 32;

enum class member_state : std::uint8_t {
  active = 1,
  leaving = 2, ///< gets no work, still holds state until others have it
  joining = 3, ///< admitted but not heard in the shoal yet: no vote, no work
};

struct member {
  member_id id;
  std::string name;                   ///< for people
  std::vector<std::string> addresses; ///< "host:port" for tls
  std::string host; ///< boot id: peers that share cores and memory
  device_profile device;
  std::vector<network_profile> networks; ///< empty: not measured
  std::uint64_t instance = 0;            ///< which start of the process this is
  bool voter = true;                     ///< unless joining
  bool witness = false;                  ///< votes, gets no work
  member_state state = member_state::active;
  std::vector<std::string> roles; ///< that run files may place here, by name
  friend bool operator==(const member&, const member&) = default;
};

/// A run of consecutive blocks [first_block, last_block) on one member. The
/// first stage also holds the embedding, the last one the final norm and head.
struct stage_place {
  member_id where;
  std::uint32_t first_block = 0;
  std::uint32_t last_block = 0;
  std::uint32_t kept_max = 0; ///< microbatches that it may keep; 0: as the
                              ///< schedule needs (training/schedule.hpp)
  friend bool operator==(const stage_place&, const stage_place&) = default;
};

/// A full pipeline, and its share [first, last) of a step's microbatches. A
/// member is in several only where it stands in for one (training/detours.hpp).
struct replica_place {
  std::vector<stage_place> stages;
  std::uint32_t first_microbatch = 0;
  std::uint32_t last_microbatch = 0;
  friend bool operator==(const replica_place&, const replica_place&) = default;
};

/// Units [first_unit, last_unit) (training/job_core.hpp) whose state a member
/// keeps beside those that compute it. See assignment::copy_every.
struct follower_place {
  member_id where;
  std::uint32_t first_unit = 0;
  std::uint32_t last_unit = 0;
  friend bool
  operator==(const follower_place&, const follower_place&) = default;
};
/// A job asks for so many copies of its state at most.
inline constexpr std::uint32_t copies_max = 7;
inline constexpr std::uint32_t copy_every_max = 1000;
/// And a member follows so many runs of units at most, over all of a job.
inline constexpr std::size_t followers_max = 4096;

/// The order of a replica's work (training/schedule.hpp).
enum class schedule_kind : std::uint8_t {
  one_f_one_b = 1,
  interleaved = 2, ///< with several runs of blocks on each peer
  zero_bubble = 3, ///< with the weight gradients where a peer would wait
};

/// Where a job runs: the job's sub-plan.
struct assignment {
  job_id job = 0;
  epoch since = 0; ///< the view that last changed this assignment: no two
                   ///< assignments of one job that differ share it
  std::vector<replica_place> replicas; ///< empty: the job waits for members
  std::vector<member_id> keepers; ///< hold the job's blobs; >= 2 if possible
  std::vector<member_id> sealers; ///< may hold state of the job, sorted: all
                                  ///< of them seal, and only they do
  member_id data_source;          ///< roles that exist once
  member_id evaluator;
  member_id checkpointer;  ///< gathers and publishes checkpoints
  member_id reporter;      ///< broadcasts the committed steps
  std::string why_waiting; ///< for people, when replicas is empty
  schedule_kind schedule = schedule_kind::one_f_one_b;
  std::vector<follower_place> followers; ///< by unit, then member
  /// 1: followers get the reduced gradients of every step and apply the same
  /// optimizer. More: all keep copies of the state of every so manieth step,
  /// and followers get those; so many steps at most are run again.
  std::uint32_t copy_every = 1;
  /// What is brought to members that will hold it under a better layout, while
  /// this one goes on (training/arrivals.hpp); by unit, then member.
  std::vector<follower_place> arriving;
  friend bool operator==(const assignment&, const assignment&) = default;
};

enum class job_state : std::uint8_t {
  running = 1,
  done = 2,
  cancelled = 3,
  failed = 4,
};

inline constexpr std::int32_t priority_min = -100;
inline constexpr std::int32_t priority_max = 100;

/// One line for people, with a path or two.
inline constexpr std::size_t job_cause_bytes_max = 512;
/// "user@host": user names have 32 bytes at most on Linux, host names 64.
inline constexpr std::size_t job_user_bytes_max = 97;

/// A job as agreed: small, complete, immutable but for its state. What is
/// large (text, tokens, weights) is in the store under its digest.
struct job_entry {
  job_id id = 0;
  std::string name;
  job_state state = job_state::running;
  std::string run_json; ///< the resolved run file, as JSON; <= 64 KiB
  blob_digest data{};   ///< the training and validation corpus
  std::uint64_t data_bytes = 0;
  blob_digest origin{}; ///< weights or checkpoint to start from; zero: seed
  std::uint64_t origin_bytes = 0;
  std::uint64_t origin_step = 0;       ///< steps that the origin has behind it
  std::uint32_t blocks = 0;            ///< of the model
  std::uint32_t microbatches = 0;      ///< in one step
  std::uint64_t block_flops = 0;       ///< forward + backward, one microbatch
  std::uint64_t head_flops = 0;        ///< last stage's extra
  std::uint64_t block_state_bytes = 0; ///< parameters, gradients, optimizer
  std::uint64_t embed_state_bytes = 0;
  std::uint64_t head_state_bytes = 0;
  std::uint64_t activation_bytes = 0;     ///< kept per block and microbatch
  std::uint64_t boundary_bytes = 0;       ///< from stage to stage, microbatch
  std::uint64_t block_traffic_bytes = 0;  ///< of memory, beside the products
  std::uint64_t head_traffic_bytes = 0;   ///< the same of the head
  std::int32_t want_replicas = -1;        ///< -1: choose
  std::int32_t want_stages = -1;          ///< -1: choose
  std::vector<std::uint32_t> want_blocks; ///< blocks per stage; empty: choose
  std::optional<schedule_kind> want_schedule; ///< nothing: choose
  std::int32_t want_virtual = -1;    ///< runs of blocks on a peer; -1: choose
  std::uint32_t want_copies = 0;     ///< of each unit's state, beside the first
  std::uint32_t want_copy_every = 0; ///< steps; 0: choose
  peer_id submitter{};
  std::uint64_t done_step = 0; ///< committed steps when it ended
  epoch changed = 0; ///< the view that submitted it or last set its state
  /// Jobs of higher priority are planned first and take what they need, also
  /// from jobs that run; 0 is usual. Within priority_min .. priority_max.
  std::int32_t priority = 0;
  /// The assignment made in this view did not move: it gets another number.
  epoch retried = 0;
  epoch arrived = 0; ///< all that arrives under the assignment since then is
                     ///< where it should be
  std::string cause; ///< why it failed, of job_cause_bytes_max at most
  /// When it was submitted: Unix time by the submitting node's clock; 0: not
  /// known.
  std::int64_t submitted_ms = 0;
  std::string user; ///< "user@host" of the submitting command, for people
  friend bool operator==(const job_entry&, const job_entry&) = default;
};

/// Two members that can not reach each other, though a quorum reaches both:
/// nothing may be planned that needs a link between them.
struct cut_pair {
  member_id low; ///< the lower peer id
  member_id high;
  friend auto operator<=>(const cut_pair&, const cut_pair&) = default;
};

/// The secret that all peers share, and the hash by which a view names one.
using cluster_key = std::array<std::uint8_t, 32>;
using key_digest = std::array<std::uint8_t, 32>;

/// A token that was handed out: whoever proves its key first may have the
/// cluster key, once.
struct invitation {
  cluster_key key{};          ///< of the token, not of the cluster
  std::int64_t expires_s = 0; ///< Unix time
  peer_id used_by{};          ///< zero: nobody yet
  friend bool operator==(const invitation&, const invitation&) = default;
};

/// A peer that was expelled because a job did not move for its sake, though it
/// answered. It comes back after a pause, which grows with `times`.
struct stalled_peer {
  peer_id peer{};
  std::uint32_t times = 0; ///< one soon after the other
  epoch since = 0;         ///< the view that has expelled it last
  friend bool operator==(const stalled_peer&, const stalled_peer&) = default;
};

/// A shoal that was without a quorum when `recover --force` made another one,
/// which goes on with its jobs.
struct superseded_shoal {
  shoal_id shoal{};
  epoch number = 0; ///< its last view, as the peer knew it that was forced
  friend bool
  operator==(const superseded_shoal&, const superseded_shoal&) = default;
};

struct view {
  shoal_id shoal{};
  epoch number = 0;
  std::string cluster;
  std::vector<member> members;
  std::vector<job_entry> jobs;
  std::vector<assignment> previous; ///< assignments of the view before
  std::uint32_t planner_version = 1;
  /// Set in a shoal's last view: its members join this shoal instead.
  std::optional<shoal_id> dissolved_into;
  std::vector<std::string> dissolved_addresses; ///< where to find it
  std::vector<cut_pair> cuts;
  /// The cluster key in use; zero: the one that the peers were started with.
  core::key_digest key{};
  std::vector<peer_id> revoked; ///< never admitted again; newest last
  /// Former members, newest last: they may come back with a replaced key.
  std::vector<peer_id> lapsed;
  std::vector<invitation> invites;   ///< oldest first
  std::vector<stalled_peer> stalled; ///< members or not; the latest last
  /// Whose peers join this shoal when they return; the latest last.
  std::vector<superseded_shoal> superseded;
  /// Jobs that have ended and are not listed any more, newest last: what still
  /// wishes to submit one of them is late.
  std::vector<job_id> removed;
  friend bool operator==(const view&, const view&) = default;
};

/// @returns the member with this peer id, or nullptr.
const member* find_member(const view& v, const peer_id& id);
const job_entry* find_job(const view& v, job_id id);

/// Whether the view lists these two, in any order, as cut from each other.
bool is_cut(const view& v, const peer_id& a, const peer_id& b);
bool is_revoked(const view& v, const peer_id& id);

/// Whether the member's vote counts: it is a voter and has taken its seat.
bool votes(const member& m);

/// Whether `agreeing` (peers; duplicates and strangers are ignored) is a
/// quorum of the voters of `v`: more than half, or exactly half with the
/// voter of the lowest id among them.
bool is_quorum(const view& v, const std::vector<peer_id>& agreeing);

} // namespace shoal::core
