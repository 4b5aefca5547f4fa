// actors/job/plan_actors.cpp -- starts and ends the roles of a sub-plan.
#include "actors/job/plan_actors.hpp"

#include "actors/checkpoint/checkpointer.hpp"
#include "actors/checkpoint/shard_writer.hpp"
#include "actors/reduction/reducer.hpp"
#include "actors/training/data_source.hpp"
#include "actors/training/evaluator.hpp"
#include "actors/training/stage.hpp"
#include "runtime/context.hpp"

#include <caf/all.hpp>

#include <algorithm>

namespace shoal::actors {

caf::actor plan_actors::add(caf::actor member) {
  owner_->monitor(member);
  monitored_.push_back(member.address());
  return member;
}

void plan_actors::start(caf::event_based_actor* owner, world_ptr world,
                        sub_plan_ptr plan) {
  owner_ = owner;
  world_ = std::move(world);
  plan_ = std::move(plan);
  caf::actor_system& system = owner->system();
  const auto self = caf::actor_cast<caf::actor>(owner);
  stages_ = stages_on(plan_->where, world_->node->self());
  const core::member_parts& here = plan_->holds.of(world_->node->self());
  if (!here.held.empty()) // a follower has no stage
    reducer_ = add(spawn_reducer(system, {world_, plan_, self}));
  if (!stages_.empty())
    stage_ = add(spawn_stage(system, {world_, plan_, self, reducer_}));
  if (is_evaluator())
    evaluator_ = add(spawn_evaluator(system, {world_, plan_, self}));
  if (reducer_)
    writer_ = add(spawn_shard_writer(system, {world_, plan_}));
  // Any participant may have to publish, also one that only keeps copies.
  if (here.takes_part)
    checkpointer_ = add(spawn_checkpointer(system, {world_, plan_, self}));
}

void plan_actors::add_data_source(std::shared_ptr<const model::corpus> text) {
  if (data_source_)
    return;
  data_source_ =
    add(spawn_data_source(owner_->system(), {world_, plan_, std::move(text)}));
  if (eval_waits_ != 0)
    owner_->send(data_source_, actors::begin_eval{eval_waits_ - 1});
  if (step_waits_ != 0)
    owner_->send(data_source_, actors::begin_step{step_waits_ - 1});
  step_waits_ = eval_waits_ = 0;
}

void plan_actors::dismiss() {
  if (plan_)
    *plan_->over = true;
  for (caf::actor* a : {&stage_, &reducer_, &data_source_, &evaluator_,
                        &checkpointer_, &writer_}) {
    if (*a)
      owner_->send_exit(*a, caf::exit_reason::user_shutdown);
    *a = nullptr;
  }
  stages_.clear();
  step_waits_ = eval_waits_ = 0;
  plan_ = nullptr;
}

void plan_actors::ended(const caf::actor_addr& who) {
  std::erase(monitored_, who);
}

bool plan_actors::in_first_replica() const {
  return !stages_.empty() && stages_.front().replica == 0;
}
bool plan_actors::is_data_source() const {
  return plan_ && plan_->where.data_source.peer == world_->node->self();
}
bool plan_actors::is_evaluator() const {
  return plan_ && plan_->where.evaluator.peer == world_->node->self();
}

void plan_actors::begin_step(std::uint64_t step) {
  const actors::begin_step m{step};
  if (reducer_)
    owner_->send(reducer_, m);
  if (stage_)
    owner_->send(stage_, m);
  if (data_source_)
    owner_->send(data_source_, m);
  else if (is_data_source())
    step_waits_ = step + 1;
}

void plan_actors::begin_eval(std::uint64_t step) {
  const actors::begin_eval m{step};
  if (evaluator_)
    owner_->send(evaluator_, m);
  if (in_first_replica())
    owner_->send(stage_, m);
  if (data_source_)
    owner_->send(data_source_, m);
  else if (is_data_source())
    eval_waits_ = step + 1;
}

void plan_actors::begin_checkpoint(const core::job_action::run_checkpoint& a) {
  if (checkpointer_ && a.publisher == world_->node->self())
    owner_->send(checkpointer_,
                 actors::begin_checkpoint{a.step, a.last, a.unable});
}

void plan_actors::pass(write_shards m) {
  if (writer_)
    owner_->send(writer_, std::move(m));
}
void plan_actors::pass(const refuse_shards& m) {
  if (writer_)
    owner_->send(writer_, m);
}
void plan_actors::pass(const checkpoint_over& m) {
  if (writer_)
    owner_->send(writer_, m);
}
void plan_actors::pass(const shards_told& m) {
  if (checkpointer_)
    owner_->send(checkpointer_, m);
}

void plan_actors::pass(const send_gradients& m) {
  if (reducer_)
    owner_->send(reducer_, m);
}

} // namespace shoal::actors
