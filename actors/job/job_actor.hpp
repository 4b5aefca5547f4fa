// actors/job/job_actor.hpp -- the class that implements job.hpp.
//
// Its members are defined in several files:
//   job.cpp                   messages in, actions out
//   job_units.cpp             loads, fetches and serves the state of units
//   job_checkpoint_fetch.cpp  fetches a checkpoint before it is restored
//   job_state_copies.cpp      copies of state, against the death of peers
//   job_state_digests.cpp     digests of state, against faulty memory
//   job_parts.cpp             actions for its parts, and their events
// Its parts are objects of their own (actors/job/parts).
// Private to these files.
#pragma once

#include "actors/checkpoint/blob_set.hpp"
#include "actors/checkpoint/checkpointer.hpp"
#include "actors/checkpoint/shard_writer.hpp"
#include "actors/job/job.hpp"
#include "actors/job/parts/job_context.hpp"
#include "actors/job/parts/job_evaluation.hpp"
#include "actors/job/parts/job_remarks.hpp"
#include "actors/job/parts/job_rescue.hpp"
#include "actors/job/parts/job_saving.hpp"
#include "actors/job/parts/job_stalls.hpp"
#include "actors/job/parts/job_text.hpp"
#include "actors/job/parts/unit_moves.hpp"
#include "actors/job/plan_actors.hpp"
#include "actors/reduction/reducer.hpp"
#include "actors/training/receiver.hpp"
#include "runtime/core/training/job/job_core.hpp"
#include "runtime/core/training/step_pace.hpp"
#include "runtime/links/links.hpp"
#include "runtime/work/leaving_alone.hpp"

#include <caf/all.hpp>

#include <deque>
#include <functional>
#include <set>
#include <vector>

namespace shoal::actors {

class job_actor : public caf::event_based_actor,
                  private job_owner,
                  private job_text::events,
                  private job_evaluation::events,
                  private unit_moves::events,
                  private job_saving::events {
public:
  job_actor(caf::actor_config& cfg, job_config config, world_ptr world);
  const char* name() const override { return "job"; }
  caf::behavior make_behavior() override;

private:
  runtime::context& node() { return *config_.node; }
  const runtime::run_config& run() const { return world_->run; }
  core::island_id id() const { return {config_.entry.id, config_.island}; }

  /// Gives an input to the core and carries out the resulting actions.
  void feed(core::job_input input);
  void on_view(const job_view& m);
  void trace_phase();
  void trace_reducing(bool now);
  void report_holds();
  void report_refusing_disks();
  /// Whether the view says that the job is to stop after its step.
  bool is_to_end() const;
  void on_drain();
  void cancel_if_at_rest();

  job_context make_context();
  std::uint64_t digest() const { return here_.digest(); }

  // job_owner
  void
  post_after(std::chrono::nanoseconds wait, std::function<void()> run) override;
  void send_to(const core::peer_id& to, core::job_message message) override;
  void say(const std::string& line) override;
  core::nanoseconds now() const override { return steady_now(); }

  // Events of the parts.
  void text_loaded(const job_text::text_ptr& text) override;
  void text_damaged() override;
  void text_unusable(const std::string& why) override { fail(why); }
  void text_found() override;
  void
  evaluated(std::uint64_t step, const std::optional<eval_summed>& sum) override;
  void moved(const core::job_input& what) override { feed(what); }
  void state_reading() override { ++reading_state_; }
  void state_read() override;
  void saving_changed(const core::job_input& what) override { feed(what); }
  void found(std::vector<core::job_input> first) override;
  void write(const write_shards& m) override { actors_.pass(m); }
  void refuse(const refuse_shards& m) override { actors_.pass(m); }
  void end(const checkpoint_over& m) override { actors_.pass(m); }
  void fetch(lasting_fetch f) override;
  void hand_over(core::epoch since) override;

  // One overload for each action.
  void act(const core::job_action::halt& a);
  void act(const core::job_action::send& a);
  void act(const core::job_action::adopt& a);
  void act(const core::job_action::apply& a);
  void act(const core::job_action::fetch_unit& a);
  void act(const core::job_action::serve_unit& a);
  void act(const core::job_action::take_copies& a);
  void act(const core::job_action::receive_unit& a);
  void act(const core::job_action::send_unit& a);
  void act(const core::job_action::apply_arrived& a);
  void act(const core::job_action::arrivals_complete& a);
  void act(const core::job_action::revert_unit& a);
  void act(const core::job_action::drop_copies& a);
  void act(const core::job_action::initialise_unit& a);
  void act(const core::job_action::fetch_checkpoint& a);
  void act(const core::job_action::restore_unit& a);
  void act(const core::job_action::release& a);
  void act(const core::job_action::run_step& a);
  void act(const core::job_action::run_eval& a);
  void act(const core::job_action::run_checkpoint& a);
  void act(const core::job_action::step_known& a);
  void act(const core::job_action::committed& a);
  void act(const core::job_action::eval_known& a);
  void act(const core::job_action::checkpoint_known& a);
  void act(const core::job_action::checkpoint_failed& a);
  void act(const core::job_action::checkpoints_slow& a);
  void act(const core::job_action::keep_checkpoint& a);
  void act(const core::job_action::checkpoint_given_up& a);
  void act(const core::job_action::checkpoint_awaited& a);
  void act(const core::job_action::begin_anew& a);
  void act(const core::job_action::lost_state& a);
  void act(const core::job_action::went_back& a);
  void act(const core::job_action::state_differs& a);
  void act(const core::job_action::get_blobs& a);
  void act(const core::job_action::waiting& a);
  void act(const core::job_action::finished& a);
  void act(const core::job_action::ended& a);

  void halted_if_still();
  void on_computed(const step_computed& m);
  void on_reduced(const step_reduced& m);
  void prepare_if_complete();
  void take_digests(const core::job_action::run_step& a);
  void keep_copy(const core::job_action::take_copies& a, std::uint32_t unit,
                 const buffer& copy);
  core::epoch since_of(std::uint64_t digest) const;
  void on_leaving_alone(const runtime::leaving_alone& m);
  void fail(const std::string& why);

  /// Loads a unit from a checkpoint: fetches its files, reads and checks them.
  struct loading {
    core::blob_digest manifest{};
    std::vector<core::peer_id> holders;
    std::uint32_t unit = 0;
    std::uint64_t digest = 0;                            ///< of the sub-plan
    std::optional<core::checkpoint_ref> checkpoint = {}; ///< none: the origin
  };
  void say_missing(const loading& l);
  void on_offer(const runtime::checkpoint_offered& m);
  void fetch_again(const core::job_action::fetch_checkpoint& a);
  void verify_fetched(const core::job_action::fetch_checkpoint& a);
  /// After this many rounds, a second apart, with an invalid manifest the job
  /// fails. Its bytes are the same on all peers: a damaged copy would have been
  /// replaced by then.
  static constexpr int unreadable_rounds_max = 3;
  /// Random values from the run's seed.
  void initialise(model::unit_index unit, std::uint64_t digest);
  void load_from(loading l);
  void read_files(const loading& l);
  std::vector<core::peer_id> members() const { return here_.members(); }

  blob_set job_blobs() const;
  blob_set needed_blobs() const; ///< the same, depending on the role

  job_config config_;
  world_ptr world_;
  core::job_core core_;
  job_context here_;
  job_text text_;
  job_evaluation evaluation_;
  job_remarks remarks_;
  unit_moves moves_;
  job_stalls stalls_;
  job_saving saving_;
  job_rescue rescue_;
  plan_actors actors_;
  std::deque<core::job_input> inputs_;
  bool feeding_ = false;
  core::job_core::phase traced_ = core::job_core::phase::idle;
  bool reducing_ = false; ///< as shown in the trace

  std::uint64_t turn_ = 0;               ///< counts halts
  std::uint64_t cancelled_ = 0;          ///< digest of the former sub-plan
  core::epoch cancelled_since_ = 0;      ///< its epoch
  std::optional<std::uint64_t> halting_; ///< digest to confirm by `halted`
  std::weak_ptr<void> lease_;            ///< of the newest sub-plan
  core::nanoseconds step_began_ = 0;
  std::uint64_t began_ = 0; ///< the step in progress, if it is measured; else 0
  core::step_pace pace_;    ///< of steps that this peer does not compute
  core::state_version measured_;      ///< of here_.took and bubble_permille_
  std::uint32_t bubble_permille_ = 0; ///< of the same step
  std::optional<step_computed> computed_; ///< by this peer, for the step in
                                          ///< progress
  std::optional<step_reduced> reduced_;
  std::vector<core::unit_digest> digests_; ///< of the same step, when complete
  /// Files that were hashed for the units of this sub-plan; used only on the
  /// disk queue.
  std::shared_ptr<std::set<core::blob_digest>> verified_ =
    std::make_shared<std::set<core::blob_digest>>();
  int reading_state_ = 0; ///< copies and digests in progress: delay apply
  job_holds reported_;
  std::vector<core::peer_id> refusing_reported_;

  bool over_ = false;
  /// Released when the drained run has ended.
  std::shared_ptr<void> leaving_alone_;
};

} // namespace shoal::actors
