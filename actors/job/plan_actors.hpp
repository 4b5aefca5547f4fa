// actors/job/plan_actors.hpp -- the actors of one sub-plan on this peer, as a
// unit.
//
// Made when a sub-plan takes effect, dismissed before the next one does: all
// actors are told to end, and `gone` becomes true when every one of them has.
// Only then may the job's units be replaced.
//
// Threads: the job actor's.
#pragma once

#include "actors/training/training_state.hpp"

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace shoal::model {
struct corpus;
}

namespace shoal::actors {

struct write_shards;  // actors/checkpoint/shard_writer.hpp
struct refuse_shards; // the same
struct checkpoint_over;
struct shards_told;    // actors/checkpoint/checkpointer.hpp
struct send_gradients; // actors/reduction/reducer.hpp

class plan_actors {
public:
  /// Starts all roles that `plan` gives to this peer except the data source;
  /// `owner` gets their messages and monitors them.
  void start(caf::event_based_actor* owner, world_ptr world, sub_plan_ptr plan);

  /// Starts the data source, when the text is here, with the step or evaluation
  /// that has begun meanwhile.
  void add_data_source(std::shared_ptr<const model::corpus> text);

  /// Tells all to end.
  void dismiss();
  /// A monitored actor has ended.
  void ended(const caf::actor_addr& who);
  bool gone() const noexcept { return monitored_.empty(); }
  bool active() const noexcept { return plan_ != nullptr; }
  const sub_plan_ptr& plan() const noexcept { return plan_; }

  /// Stages of this peer.
  const std::vector<stage_name>& stages() const noexcept { return stages_; }
  bool in_first_replica() const;
  bool reduces() const noexcept { return reducer_ != nullptr; }
  bool is_data_source() const;
  bool is_evaluator() const;

  void begin_step(std::uint64_t step);
  void begin_eval(std::uint64_t step);
  void begin_checkpoint(const core::job_action::run_checkpoint& a);
  /// To the writer of this peer's shards, if this peer has stages.
  void pass(write_shards m);
  void pass(const refuse_shards& m);
  void pass(const checkpoint_over& m);
  /// To the checkpointer, if it is here.
  void pass(const shards_told& m);
  /// To the reducer, if it is here.
  void pass(const send_gradients& m);

private:
  caf::actor add(caf::actor member);

  caf::event_based_actor* owner_ = nullptr;
  world_ptr world_;
  sub_plan_ptr plan_;
  std::vector<stage_name> stages_;
  caf::actor stage_, reducer_, data_source_, evaluator_, checkpointer_, writer_;
  std::vector<caf::actor_addr> monitored_;
  std::uint64_t step_waits_ = 0; ///< waiting step + 1, for the data source
  std::uint64_t eval_waits_ = 0;
};

} // namespace shoal::actors
