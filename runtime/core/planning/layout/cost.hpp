// runtime/core/planning/layout/cost.hpp -- what a layout of a job costs.
//
// Step = the slowest replica + the reduction between replicas + the optimizer.
// A replica takes the sum of its stages' times and hops (fill and drain of the
// pipeline; passes of a served model have no way back and no optimizer) and, for
// each further microbatch, the time of its slowest member or link. A reduction sends 2 (R - 1) / R of the parameters that a member holds
// over the slowest link among all that hold them. A member that is in several
// replicas (detours.hpp) works for one after another.
//
// Members on one host share its cores: if the members in use have more threads
// than the host has cores, all of them are slower in proportion. If a member
// also computes for other jobs, its speed is divided by the number of jobs.
//
// The cost of a link is that of its worse end, on the best network that both
// ends are in: "host" within one host, else a network of the same name, else
// the assumed values.
//
// Units: nanoseconds, bytes; integers only. Threads: const is safe.
// Cost:  evaluate() is linear in the stages, except for replicas that split the
//        blocks differently: then stages x replicas.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/saturating.hpp"
#include "runtime/core/state/part_set.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace shoal::core {

struct job_entry; // runtime/core/job_entry.hpp
struct member;    // runtime/core/view.hpp
enum class job_kind : std::uint8_t;

/// Assumed of a network until it is measured: 1 GB/s, 100 us.
inline constexpr std::uint64_t assumed_bytes_per_s = 1'000'000'000;
inline constexpr nanoseconds assumed_hop = 100'000;
/// Assumed of shared memory within a host: 4 GB/s, 30 us.
inline constexpr std::uint64_t assumed_host_bytes_per_s = 4'000'000'000;
inline constexpr nanoseconds assumed_host_hop = 30'000;
/// Bytes moved by a change of layout must pay off within this number of steps.
inline constexpr std::uint64_t repay_steps = 100;
/// A layout that a single death would end counts as slower by this (per cent).
inline constexpr std::uint64_t fragile_percent = 25;
/// Parameters are one of four equal parts of the state: the others are the
/// gradients and two moments.
inline constexpr std::uint64_t state_parts = 4;
/// Upper limit of a block's time for one microbatch, so that sums do not
/// overflow.
inline constexpr std::uint64_t pace_max = std::uint64_t{1} << 40;

/// The part of a member's speed that each model served there reserves, in per
/// cent. Between requests a served model computes nothing, while a training job
/// never rests; with a quarter, a member with three of four parts of its speed
/// still gets its part of the layers. A served model counts on no more where its
/// member trains.
inline constexpr std::uint64_t served_share_percent = 25;
/// All served models of a member together reserve no more than this.
inline constexpr std::uint64_t served_shares_percent_max = 75;

/// The jobs that a member computes for, besides that of the problem.
struct other_work {
  std::uint32_t training = 0; ///< jobs
  std::uint32_t serving = 0;  ///< pipelines
};

/// The part of a member's speed for a job of this kind beside other work.
struct speed_share {
  std::uint64_t percent = 100;
  std::uint64_t among = 1; ///< jobs that divide this part
};
[[nodiscard]] speed_share share_of(job_kind kind, const other_work& others);

/// The problem for which a layout of one island is searched.
struct layout_problem {
  const job_entry& job;
  std::vector<const member*> members;               ///< usable, by id
  std::map<peer_id, std::uint64_t> memory;          ///< not taken by other jobs
  const island_place* previous = nullptr;           ///< or nullptr
  std::map<peer_id, other_work> busy;               ///< of members that compute
                                                    ///< for other jobs
  std::map<peer_id, std::uint64_t> all_memory = {}; ///< total, for all jobs
  std::uint32_t island = 0;                         ///< which one of the job
};

/// Whether the arrivals under p.previous, which is not null, count as held.
[[nodiscard]] bool has_arrived(const layout_problem& p);

/// Whether p.previous, which is not null, made no progress: the island begins
/// anew.
[[nodiscard]] bool is_retried(const layout_problem& p);

/// Lower is better; in a tie fewer bytes moved, then more members.
struct layout_score {
  std::uint64_t cost = cost_never; ///< ns, with the charges for moves and
                                   ///< fragility
  std::uint64_t moved_bytes = 0;
  std::uint64_t unused_members = 0;
  friend auto operator<=>(const layout_score&, const layout_score&) = default;
};

/// A problem as numbers; members are indices into problem.members.
class cost_model {
public:
  using index = std::uint32_t;
  struct stage {
    index who = 0;
    std::uint32_t first = 0; ///< blocks [first, last)
    std::uint32_t last = 0;
    std::uint32_t kept = 0; ///< microbatches kept by its schedule; 0: as in
                            ///< 1F1B
  };
  struct replica {
    std::vector<stage> stages;
    std::uint32_t microbatches = 0;
  };
  struct link {
    std::uint64_t latency = 0;
    std::uint64_t bytes_per_s = 0;
  };
  /// Time of one block and of the head for one microbatch on a member.
  struct pace {
    std::uint64_t block = 0;
    std::uint64_t head = 0;
  };
  /// Times of one replica: of(m) is the time of m microbatches.
  struct pipeline_time {
    std::uint64_t fill = 0;
    std::uint64_t bottleneck = 0;
    std::uint64_t of(std::uint64_t microbatches) const;
  };
  struct evaluation {
    std::uint64_t step = cost_never;
    std::uint64_t pipelines = 0; ///< parts of step
    std::uint64_t reduction = 0;
    std::uint64_t optimizer = 0;
    std::vector<std::uint64_t> bytes; ///< by member
  };

  explicit cost_model(const layout_problem& p);

  std::size_t size() const { return members_.size(); }
  const job_entry& job() const { return *job_; }
  std::uint64_t memory(index i) const { return members_[i].memory; }
  std::uint64_t speed(index i) const { return members_[i].speed; }
  std::uint32_t host(index i) const { return members_[i].host; }
  bool host_is_shared(index i) const { return hosts_[host(i)].shared; }

  /// Sets which members are used: the paces of members that share hosts depend
  /// on it.
  void use(std::span<const replica> replicas);
  void use(std::span<const std::vector<index>> groups);
  pace pace_of(index i) const { return paces_[i]; }

  /// The slowest link among the members of `set`; the best one if there are
  /// fewer than two.
  link between(std::span<const index> set) const;
  link between(index a, index b) const;

  /// @pre use() was called with the layout that `r` is part of
  pipeline_time time_of(const replica& r) const;
  /// Time in one step in which the device of a member works on blocks and head.
  /// @pre as time_of
  std::uint64_t busy(std::span<const replica> replicas, index who) const;
  /// @param kept as in stage
  std::uint64_t
  stage_bytes(std::uint32_t blocks, std::uint32_t stage, std::uint32_t stages,
              std::uint32_t microbatches, std::uint32_t kept = 0) const;
  /// Time of the reduction of one step of all replicas. @pre as time_of
  std::uint64_t reduction_ns(std::span<const replica> replicas) const;
  std::uint64_t optimizer_ns(std::span<const replica> replicas) const;
  std::uint64_t moved_bytes(std::span<const replica> replicas) const;
  /// Time of the optimizer on units with `bytes` of state.
  std::uint64_t apply_ns(index who, std::uint64_t bytes) const {
    return muldiv(bytes, members_[who].apply, 1000);
  }

  evaluation evaluate(std::span<const replica> replicas);
  bool fits(const evaluation& e) const;
  /// The score from a step's time, with the charges.
  layout_score
  charge(std::uint64_t step, std::span<const replica> replicas) const;

  /// Conversion to and from the form of assignments.
  /// @returns nothing if a peer in it is not a member
  std::optional<std::vector<replica>>
  indexed(const std::vector<replica_place>& places) const;
  std::vector<replica_place> placed(std::span<const replica> replicas) const;

private:
  struct entry {
    member_id id;
    std::uint64_t memory = 0;
    std::uint64_t speed = 1;
    pace alone;              ///< with the host to itself
    std::uint64_t apply = 0; ///< ps per byte of state
    std::uint32_t host = 0;
    other_work others;
    std::uint64_t weight = 0; ///< of the host's capacity, when used
    std::uint64_t taken = 0;  ///< of that, by other jobs at any time
    std::uint64_t networks = 0;
    part_set held;          ///< held under the previous assignment
    part_set held_and_soon; ///< the same and what was arriving
  };
  /// Capacity and weights: hundredths of a thread, or of a member.
  struct host_entry {
    std::uint64_t capacity = 1;
    std::uint64_t taken = 0; ///< by other jobs
    bool shared = false;     ///< members may slow each other down
    bool named = false;      ///< known by name as one host
  };

  void add_hosts(const layout_problem& p);
  void add_networks(const layout_problem& p);
  void add_held(const layout_problem& p);
  /// The parts of a stage of `r`.
  static part_range parts_of(const replica& r, const stage& s);
  /// Bytes of state of these parts that `has` lacks.
  std::uint64_t lacks(const part_set& has, const part_range& parts) const;
  /// Whether a member is in several replicas (detours.hpp).
  bool shares(std::span<const replica> replicas) const;
  void correct_shared(evaluation& e, std::span<const replica> replicas) const;
  void set_paces(std::span<const std::uint8_t> used);

  const job_entry* job_;
  bool fragile_matters_ = false;
  std::vector<entry> members_;
  std::vector<host_entry> hosts_;
  std::vector<pace> paces_;
  std::vector<std::vector<link>> networks_; ///< by network, by member
  std::vector<link> within_;                ///< by member: "host"
  bool has_previous_ = false;
};

/// Score of replicas as placed; nothing if they do not fit in memory.
[[nodiscard]] std::optional<layout_score>
score(const layout_problem& p, const std::vector<replica_place>& replicas);

} // namespace shoal::core
