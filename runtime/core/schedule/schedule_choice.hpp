// runtime/core/schedule/schedule_choice.hpp -- which schedule a replica runs.
//
// A replica's stages are given as the layout has placed them. For every
// schedule that the job allows, the peers are simulated together
// (schedule.hpp), with as many microbatches kept as their memory allows. Each
// peer's blocks form one run or, if the job asks for that, are dealt out in
// several (virtual stages). The shortest step wins; a schedule that keeps more,
// or sends more, must be faster by schedule_gain_permille.
//
// A job whose peers have too little memory to keep what 1F1B keeps does not
// fit; the layout detects that.
//
// Units:  nanoseconds, bytes; integers only.
// Cost:   at most simulated_items_max items for each schedule that is tried:
//         a step of more microbatches is shortened, and the rest is computed
//         from the time of the slowest peer. 1 ms for 4 stages, some 40 ms for
//         64.
#pragma once

#include "runtime/core/schedule/schedule.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace shoal::core {

struct job_entry; // runtime/core/job_entry.hpp

inline constexpr std::uint32_t schedule_gain_permille = 10;
inline constexpr std::uint64_t simulated_items_max = 60'000;
/// Largest number of runs of blocks per peer that is tried for an interleaved
/// schedule.
inline constexpr std::uint32_t virtual_degree_max = 4;
/// Limit of a replica's stages in an assignment (wire/codec.hpp).
inline constexpr std::uint32_t pipeline_stages_max = 64;

/// A stage as placed.
struct pipeline_part {
  std::uint32_t peer = 0; ///< numbered in order of occurrence
  std::uint32_t blocks = 0;
  stage_time block;         ///< of one block; `transfer` is that of the stage
  stage_time extra;         ///< in addition, on any of its runs: the head
  std::uint64_t memory = 0; ///< on its peer, for kept microbatches
};

struct schedule_problem {
  std::vector<pipeline_part> parts;
  std::uint32_t microbatches = 0;
  std::uint64_t kept_bytes = 0;      ///< of one block and microbatch, from F to
                                     ///< W
  std::optional<schedule_kind> kind; ///< as the job wants it
  std::int32_t virtual_degree = -1;
};

struct scheduled_stage {
  std::uint32_t part = 0;
  std::uint32_t blocks = 0;
  std::uint32_t kept_max = 0;
};

struct schedule_choice {
  schedule_kind kind = schedule_kind::one_f_one_b;
  std::uint32_t virtual_degree = 1;
  std::vector<scheduled_stage> stages;
  std::uint64_t step = 0;            ///< without reduction and optimizer
  std::uint32_t bubble_permille = 0; ///< of the step
};

/// The simulated step time of a pipeline. @pre p is complete
[[nodiscard]] std::uint64_t
estimate_step(const pipeline& p, std::span<const stage_time> times);

/// One schedule.
/// @returns nothing if the parts cannot be cut like that, or their memory is
/// less than it needs
[[nodiscard]] std::optional<schedule_choice>
try_schedule(const schedule_problem& p, schedule_kind kind,
             std::uint32_t virtual_degree);

/// The best choice for all replicas of a job together: they run the same
/// schedule, so the slowest counts.
/// @returns one choice for each replica; 1F1B as placed if nothing else is
/// possible. @pre at least one replica, each with a part
[[nodiscard]] std::vector<schedule_choice>
choose_schedule(const std::vector<schedule_problem>& replicas);

/// Chooses for `a`, whose replicas are placed: sets its schedule, cuts its
/// stages and sets how many microbatches each may keep. `mflops`: the speed of
/// each member in this layout; `memory`: what the job may use of it. F, B and W
/// are assumed to take a third each of the arithmetic of a microbatch.
void set_schedule(island_place& a, const job_entry& job,
                  const std::map<peer_id, std::uint64_t>& mflops,
                  const std::map<peer_id, std::uint64_t>& memory,
                  nanoseconds hop);

} // namespace shoal::core
