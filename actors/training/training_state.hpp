// actors/training/training_state.hpp -- the units of one job's model on this
// peer.
//
// Units with parameters, gradients and moments, shared by the job's actors on
// this peer. The job actor decides which units exist; stages compute on them,
// the reducer sums their gradients, transfers read and write them. A job is
// halted when its actors have ended, the work that they had queued has run, and
// the sub-plan's lease has been released: then the job actor may replace them.
//
// Ownership: closures on the queue and transfers hold a unit's shared_ptr, so a
//            unit that has been released stays valid until they have ended.
#pragma once

#include "actors/training/buffers.hpp"
#include "kernels/memory/recycling_resource.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/training/job/job_core.hpp"
#include "runtime/jobs/run_config.hpp"
#include "runtime/model/stage_model.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::runtime {
class context;
}

namespace shoal::actors {

using unit_ptr = std::shared_ptr<model::unit_state>;

/// State shared by all actors of an island of a job on this peer.
struct job_world {
  runtime::context* node = nullptr; ///< outlives the job
  core::job_id job = 0;
  std::uint32_t island = 0;
  runtime::run_config run;
  /// The initial model, of which some files are kept; zero: there is none.
  core::blob_digest origin{};
  std::shared_ptr<const model::unit_layout> layout;
  buffer_pool buffers;
  buffer_pool state_buffers; ///< for copies of units
  /// The memory of units.
  std::shared_ptr<model::recycling_resource> state_memory, gradient_memory;
  std::map<model::unit_index, unit_ptr> units; ///< changed only by the job
                                               ///< actor
  /// Copies of earlier states, of units computed here and of units followed.
  std::map<core::state_version, std::map<model::unit_index, buffer>> copies;
  /// The own store has refused the last part of a checkpoint that it was to
  /// hold.
  std::atomic<bool> disk_refuses{false};
  /// Counts work that the device has finished for the job, to show progress.
  std::atomic<std::uint64_t> finished{0};

  core::island_id id() const { return {job, island}; }

  /// For training, with all values 0; null memories: prefaulted_pages().
  unit_ptr make_unit(model::unit_index unit) const {
    return std::make_shared<model::unit_state>(
      layout, unit, model::purpose::training, gradient_memory, state_memory);
  }
  std::size_t tokens_per_microbatch() const {
    return std::size_t(run.local_batch_size * run.seq_len);
  }
  std::size_t hidden_bytes() const {
    return tokens_per_microbatch() * layout->config().hidden_size
           * sizeof(float);
  }
  std::uint64_t tokens_per_step() const {
    return std::uint64_t(run.sequences_per_step() * run.seq_len);
  }
};
using world_ptr = std::shared_ptr<job_world>;

/// One sub-plan, in the form that its actors use.
struct sub_plan {
  explicit sub_plan(core::island_place place)
    : where(std::move(place)), holds(where) {}

  core::island_id id{};
  core::island_place where;
  core::holdings holds; ///< under `where`
  std::uint64_t digest = 0;
  /// Copied by transfers that write into units, in addition to queued work.
  std::shared_ptr<void> lease;
  /// Set when the job has halted: work that still waits for the device is
  /// dropped.
  std::shared_ptr<std::atomic<bool>> over =
    std::make_shared<std::atomic<bool>>(false);
};
using sub_plan_ptr = std::shared_ptr<const sub_plan>;

/// A stage of a sub-plan that runs on a peer.
struct stage_name {
  std::uint32_t replica = 0;
  std::uint32_t stage = 0;
};
/// Those that run on `peer`; by replica, then stage.
std::vector<stage_name>
stages_on(const core::island_place& a, const core::peer_id& peer);

/// A unit as three consecutive arrays: parameters, first and second moment.
std::size_t state_bytes(const model::unit_state& unit);
std::size_t gradient_bytes(const model::unit_state& unit);
/// Digest of the whole state, the same on all machines for the same bits.
std::uint64_t digest_of(const model::unit_state& unit);
void copy_state_out(kernels::backend& device, model::unit_state& unit,
                    std::span<float> into);
void copy_state_in(kernels::backend& device, std::span<const float> from,
                   model::unit_state& unit);

/// A steady clock, in the core's units.
core::nanoseconds steady_now();
/// The wall clock, for logs.
std::int64_t unix_ms();

} // namespace shoal::actors
