// runtime/core/planning/cost.hpp -- what a layout of a job costs.
//
// Step = the slowest replica + the reduction between replicas + the optimizer.
// A replica takes the sum of its stages' times and hops (fill and drain of the
// pipeline) and, for each further microbatch, the time of its slowest member
// or link. A reduction sends 2 (R - 1) / R of the parameters that a member
// holds over the slowest link among all who hold them. A member that is in
// several replicas (detours.hpp) works for one after another.
//
// Members on one host share its cores: if those that are used have more threads
// than the host, all of them are slower by as much. A member that computes for
// another job, too, has its speed divided by the number of jobs.
//
// A link is as good as the worse end on the best network that both are in:
// "host" within one host, else a network of the same name, else as assumed.
//
// Units: nanoseconds, bytes; integers only. Threads: const is safe.
// Cost:  evaluate() is linear in the stages, but for replicas that split the
//        blocks differently: then stages x replicas.
#pragma once

#include "runtime/core/view.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace shoal::core {

/// Assumed of a network until it is measured: 1 GB/s, 100 us.
inline constexpr std::uint64_t assumed_bytes_per_s = 1'000'000'000;
inline constexpr nanoseconds assumed_hop = 100'000;
/// And of memory shared within a host: 4 GB/s, 30 us.
inline constexpr std::uint64_t assumed_host_bytes_per_s = 4'000'000'000;
inline constexpr nanoseconds assumed_host_hop = 30'000;
/// Bytes moved by a change of layout must pay off within so many steps.
inline constexpr std::uint64_t repay_steps = 100;
/// A layout that one death would end counts as so much slower (per cent).
inline constexpr std::uint64_t fragile_percent = 25;
/// Parameters are a quarter of the state: gradients and two moments beside.
inline constexpr std::uint64_t state_parts = 4;
/// More than any time that is compared: "cannot be".
inline constexpr std::uint64_t cost_never = ~std::uint64_t{0} / 4;

/// A block takes no longer for a microbatch, so that sums do not overflow.
inline constexpr std::uint64_t pace_max = std::uint64_t{1} << 40;

/// What a layout is searched for.
struct layout_problem {
  const job_entry& job;
  std::vector<const member*> members;               ///< usable, by id
  std::map<peer_id, std::uint64_t> memory;          ///< left by other jobs
  const assignment* previous = nullptr;             ///< or nullptr
  std::map<peer_id, std::uint32_t> busy;            ///< other jobs on a member
  std::map<peer_id, std::uint64_t> all_memory = {}; ///< for all jobs
};

/// Lower is better; a tie goes to fewer bytes moved, then more members.
struct layout_score {
  std::uint64_t cost = cost_never; ///< ns, with the charges above
  std::uint64_t moved_bytes = 0;
  std::uint64_t unused_members = 0;
  friend auto operator<=>(const layout_score&, const layout_score&) = default;
};

/// a * b / c without overflow; cost_never at most.
[[nodiscard]] std::uint64_t
muldiv(std::uint64_t a, std::uint64_t b, std::uint64_t c);

/// A problem as numbers; members are indices into problem.members.
class cost_model {
public:
  using index = std::uint32_t;
  struct stage {
    index who = 0;
    std::uint32_t first = 0; ///< blocks [first, last)
    std::uint32_t last = 0;
    std::uint32_t kept = 0; ///< microbatches, by its schedule; 0: as in 1F1B
  };
  struct replica {
    std::vector<stage> stages;
    std::uint32_t microbatches = 0;
  };
  struct link {
    std::uint64_t latency = 0;
    std::uint64_t bytes_per_s = 0;
  };
  /// Time of a block and of the head for one microbatch on a member.
  struct pace {
    std::uint64_t block = 0;
    std::uint64_t head = 0;
  };
  /// Of one replica: of(m) is the time of m microbatches.
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

  /// Says who is used, which the paces of members that share hosts follow.
  void use(std::span<const replica> replicas);
  void use(std::span<const std::vector<index>> groups);
  pace pace_of(index i) const { return paces_[i]; }

  /// The slowest link among these; the best if there are fewer than two.
  link between(std::span<const index> set) const;
  link between(index a, index b) const;

  /// @pre use() was called with the layout that it is part of
  pipeline_time time_of(const replica& r) const;
  /// Of a step on one member: what its device works on blocks and head.
  /// @pre as time_of
  std::uint64_t busy(std::span<const replica> replicas, index who) const;
  /// @param kept as in stage
  std::uint64_t
  stage_bytes(std::uint32_t blocks, std::uint32_t stage, std::uint32_t stages,
              std::uint32_t microbatches, std::uint32_t kept = 0) const;
  /// Of a step of all of them. @pre as time_of
  std::uint64_t reduction_ns(std::span<const replica> replicas) const;
  std::uint64_t optimizer_ns(std::span<const replica> replicas) const;
  std::uint64_t moved_bytes(std::span<const replica> replicas) const;
  /// Of the optimizer on units of so many bytes of state.
  std::uint64_t apply_ns(index who, std::uint64_t bytes) const {
    return muldiv(bytes, members_[who].apply, 1000);
  }

  evaluation evaluate(std::span<const replica> replicas);
  bool fits(const evaluation& e) const;
  /// From a step's time: with the charges.
  layout_score
  charge(std::uint64_t step, std::span<const replica> replicas) const;

  /// To and from the form of assignments. @returns nothing if somebody is
  /// not a member
  std::optional<std::vector<replica>>
  indexed(const std::vector<replica_place>& places) const;
  std::vector<replica_place> placed(std::span<const replica> replicas) const;

private:
  struct block_range {
    std::uint32_t first = 0, last = 0;
  };
  /// Parts of a model's state.
  struct holding {
    std::vector<block_range> blocks; ///< ascending and disjoint
    bool embedding = false;
    bool head = false;
  };
  struct entry {
    member_id id;
    std::uint64_t memory = 0;
    std::uint64_t speed = 1;
    pace alone;              ///< with the host to itself
    std::uint64_t apply = 0; ///< ps per byte of state
    std::uint32_t host = 0;
    std::uint64_t weight = 0; ///< of the host's capacity, when used
    bool counted = false;     ///< other jobs have added the weight
    std::uint64_t networks = 0;
    holding held;          ///< under the previous assignment
    holding held_and_soon; ///< with what was on its way
  };
  struct host_entry {
    std::uint64_t capacity = 1;
    std::uint64_t taken = 0; ///< by other jobs
    bool shared = false;     ///< members may slow each other down
    bool named = false;      ///< known to be one host
  };

  void add_hosts(const layout_problem& p);
  void add_networks(const layout_problem& p);
  void add_held(const assignment& previous);
  void
  add_places(const std::vector<follower_place>& places, holding entry::*where);
  /// State of a stage that `has` lacks.
  std::uint64_t
  lacks(const holding& has, const replica& r, std::size_t stage) const;
  static void merge(std::vector<block_range>& ranges); ///< to disjoint ones
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
