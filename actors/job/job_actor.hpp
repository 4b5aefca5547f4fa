// actors/job/job_actor.hpp -- the class that implements job.hpp.
//
// Its members are defined in several files:
//   job.cpp                   messages in, actions out
//   job_units.cpp             loads, fetches and serves the state of units
//   job_checkpoint_fetch.cpp  fetches a checkpoint before it is restored
//   job_state_copies.cpp      copies of state, against the death of peers
//   job_state_digests.cpp     digests of state, against faulty memory
//   job_unit_arrivals.cpp     units that come and go while steps run
//   job_saving.cpp            checkpoints, and which of them stay on the disk
//   job_evaluation.cpp        evaluations
//   job_stalls.cpp            what is done when the job does not move
//   job_leaving_alone.cpp     what is saved when no quorum lets the node go
//   job_remarks.cpp           the log: steps, and remarks to other members
//   job_text.cpp              the text, for the data source
//   job_trace.cpp             entries in the node's trace
// Private to these files.
#pragma once

#include "actors/checkpoint/blob_set.hpp"
#include "actors/checkpoint/checkpointer.hpp"
#include "actors/checkpoint/shard_writer.hpp"
#include "actors/job/job.hpp"
#include "actors/job/plan_actors.hpp"
#include "actors/reduction/reducer.hpp"
#include "actors/training/evaluator.hpp"
#include "actors/training/receiver.hpp"
#include "runtime/core/training/job/job_core.hpp"
#include "runtime/core/training/stall_watch.hpp"
#include "runtime/core/training/step_pace.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/links/links.hpp"
#include "runtime/model/data/corpus.hpp"
#include "runtime/work/leaving_alone.hpp"

#include <caf/all.hpp>

#include <deque>
#include <functional>
#include <set>
#include <vector>

namespace shoal::actors {

/// The completion of something elsewhere; runs in the actor.
struct job_later {
  std::function<void()> run;
};

class job_actor : public caf::event_based_actor {
public:
  job_actor(caf::actor_config& cfg, job_config config, world_ptr world);
  const char* name() const override { return "job"; }
  caf::behavior make_behavior() override;

private:
  using text_ptr = std::shared_ptr<const model::corpus>;

  runtime::context& node() { return *config_.node; }
  const runtime::run_config& run() const { return world_->run; }
  core::island_id id() const { return {config_.entry.id, config_.island}; }

  /// Gives an input to the core and carries out the resulting actions.
  void feed(core::job_input input);
  void on_view(const job_view& m);
  void trace_phase();
  void trace_reducing(bool now);
  void report_holds();
  /// Whether the view says that the job is to stop after its step.
  bool is_to_end() const;
  void say_that_it_ends();
  /// Names the network that steps wait for, once.
  void say_if_slow(const core::island_place& place);
  void on_drain();
  void cancel_if_at_rest();

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
  void on_eval_part();
  void log(runtime::job_event e);
  void log_step(const core::step_record& r);
  void expect_gradient(std::uint32_t unit);
  struct leaving_unit;
  std::shared_ptr<void> open_span(const char* what, std::uint32_t unit);
  bool awaits(const core::job_action::receive_unit& a) const;
  void expect_piece(const core::job_action::receive_unit& a,
                    const std::shared_ptr<void>& span);
  void take_copy(const core::job_action::receive_unit& a, const buffer& copy);
  bool is_leaving(const std::shared_ptr<leaving_unit>& out) const;
  void send_piece(const std::shared_ptr<leaving_unit>& out);
  void send_piece_after(const std::shared_ptr<leaving_unit>& out,
                        core::nanoseconds rest);
  void drop_unfinished_arrivals();
  void take_digests(const core::job_action::run_step& a);
  kernels::adamw_options optimizer(std::uint64_t step, double norm) const;
  void keep_copy(const core::job_action::take_copies& a, std::uint32_t unit,
                 const buffer& copy);
  void load_text();
  void warm_text();
  void read_text();
  void fetch_text();
  void look_for_blobs();
  void hold(const core::checkpoint_ref& checkpoint);
  void log_checkpoint(const core::checkpoint_ref& checkpoint);
  void publish(const core::checkpoint_ref& checkpoint);
  core::epoch since_of(std::uint64_t digest) const;
  void find_checkpoints();
  void say_needed();
  void drop_old_checkpoints(std::vector<core::checkpoint_ref> old = {});
  void
  keep_refused(const core::checkpoint_ref& checkpoint, std::error_code error);
  void hand_over_if_refused();
  struct rescue;
  void on_leaving_alone(const runtime::leaving_alone& m);
  void save_when_still(std::shared_ptr<void> lease);
  void save_what_is_here(std::shared_ptr<void> lease);
  std::optional<core::state_version> newest_whole() const;
  void save_unit(const std::shared_ptr<rescue>& all);
  void write_unit(const std::shared_ptr<rescue>& all, const buffer& copy);
  void publish_alone(const std::shared_ptr<rescue>& all);
  void say_not_saved(const std::string& why);
  void say_lost(const std::string& why, std::uint64_t saved);
  void save(const core::job_action::run_checkpoint& a);
  void copy_units(const core::job_action::run_checkpoint& a,
                  const std::vector<std::uint32_t>& units);
  /// Logs a line that every peer of the job derives by itself. The job's
  /// reporter also sends it to the members that are no peers of the job.
  void note(std::uint64_t step, const std::string& text);
  /// Logs a line that only this peer knows, and sends it to all members.
  void note_own(std::uint64_t step, const std::string& text);
  /// Logs what the job waits for. The reporter sends it to all members, and
  /// repeats it for members that join later.
  /// @param wanted digest of bytes that a follower can upload; zero: none
  void note_wait(std::uint64_t step, const std::string& why,
                 const core::blob_digest& wanted = {});
  void log_remark(const core::remark& r);
  void tell_members(const core::remark& r);
  void repeat_wait();
  void log_if_bad(const core::step_record& r);
  bool reports() const; ///< whether this peer is the reporter of the present
                        ///< assignment
  core::remark remark_of(std::uint64_t step, const std::string& text) const;
  void fail(const std::string& why);

  /// Device work, then `then` in this actor.
  void compute(std::function<void(kernels::backend&)> work,
               std::function<void()> then);
  /// Runs `then` here after all work that was given to the device and the
  /// reductions before.
  void fence(std::function<void()> then);
  /// Runs `then` in this actor; callable from any thread.
  std::function<void(std::function<void()>)> poster();

  /// Fetches while `wanted` returns true, with another try every second; `then`
  /// runs here. Without `any_plan` only while this sub-plan lasts.
  struct fetching {
    blob_set set;
    std::vector<core::peer_id> holders;
    bool any_plan = false;
    std::function<bool()> wanted; ///< none: always
    std::function<void()> then;
    /// Called after each failed try; returns whether to stop. None: never
    /// stops.
    std::function<bool(std::error_code)> failed = {};
    int unreadable = 0; ///< tries with an invalid manifest or index
  };
  void fetch_lasting(fetching f);
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
  void note_once(const std::string& text);
  std::vector<core::peer_id> members() const;
  std::string name_of(const core::peer_id& peer) const;

  // Stalls.
  void record(const core::job_input& input);
  void predict_waits();
  core::stall_watch::sight sight();
  void see_disk(core::stall_watch::sight& s);
  void look_for_stalls();
  void on_report(const core::peer_id& from, const core::stall_report& r);
  void carry_out(const core::stall_watch::actions& actions);
  void note_verdict(const std::string& text);
  void keep_flight(std::string why);
  void tell_verdict(const std::string& text);
  void write_flight();
  void list_transfers(const std::vector<runtime::link_hub::pending>& all);
  blob_set job_blobs() const;
  blob_set needed_blobs() const; ///< the same, depending on the role

  job_config config_;
  world_ptr world_;
  core::job_core core_;
  plan_actors actors_;
  std::deque<core::job_input> inputs_;
  bool feeding_ = false;
  core::job_core::phase traced_ = core::job_core::phase::idle;
  bool reducing_ = false; ///< as shown in the trace

  std::shared_ptr<const core::view> view_;
  std::optional<core::island_place> place_;
  core::epoch logged_since_ = 0;
  std::uint64_t turn_ = 0;               ///< counts halts
  std::uint64_t cancelled_ = 0;          ///< digest of the former sub-plan
  core::epoch cancelled_since_ = 0;      ///< its epoch
  std::uint64_t digest_ = 0;             ///< of the adopted sub-plan; 0: none
  core::epoch adopted_since_ = 0;        ///< epoch of the adopted sub-plan
  std::optional<std::uint64_t> halting_; ///< digest to confirm by `halted`
  std::weak_ptr<void> lease_;            ///< of the newest sub-plan
  text_ptr text_;
  /// Number of checkpoints that others have written in place of this peer,
  /// whose disk refused its part, and the number after which it tries again:
  /// one checkpoint is lost if that fails.
  std::size_t left_out_ = 0;
  std::size_t left_out_max_ = left_out_first;
  static constexpr std::size_t left_out_first = 4, left_out_most = 256;
  bool loading_text_ = false;
  bool text_warmed_ = false; ///< tried already, only once

  std::uint64_t evaluating_ = 0;
  int eval_parts_ = 0; ///< parts that this peer still waits for
  std::optional<eval_summed> eval_sum_;
  core::nanoseconds step_began_ = 0;
  std::uint64_t began_ = 0; ///< the step in progress, if it is measured; else 0
  core::step_pace pace_;    ///< of steps that this peer does not compute
  core::step_time took_;    ///< of the newest committed step
  core::state_version measured_;          ///< of took_ and bubble_permille_
  std::uint32_t bubble_permille_ = 0;     ///< of the same step
  std::optional<step_computed> computed_; ///< by this peer, for the step in
                                          ///< progress
  std::optional<step_reduced> reduced_;
  std::vector<core::unit_digest> digests_; ///< of the same step, when complete
  std::vector<core::checkpoint_ref> checkpoints_;
  std::set<core::checkpoint_ref> keeping_; ///< being fetched to be kept
  core::checkpoint_ref restored_;          ///< the latest; no manifest: none
  std::set<core::checkpoint_ref> logged_;  ///< those in the job's log
  std::set<std::uint64_t> published_;      ///< steps that have a checkpoint
  core::epoch published_since_ = 0;        ///< under the newest sub-plan
  std::set<std::uint64_t> not_saved_;      ///< newer steps without a checkpoint
  std::uint64_t saving_ = 0;               ///< newest step whose checkpoint was
                                           ///< begun
  std::weak_ptr<shard_snapshot> snapshot_; ///< while it is written
  /// Files that were hashed for the units of this sub-plan; used only on the
  /// disk queue.
  std::shared_ptr<std::set<core::blob_digest>> verified_ =
    std::make_shared<std::set<core::blob_digest>>();
  std::set<std::string> noted_;                ///< texts under this sub-plan
  std::map<core::peer_id, std::string> names_; ///< of members, also former ones
  static constexpr std::size_t names_max = 4096; ///< beyond it only present
                                                 ///< members
  /// A unit that arrives at this peer.
  struct arriving_unit {
    core::job_action::receive_unit asked;
    bool copied = false;
    std::uint64_t expected = 0; ///< gradients are posted up to this step
    std::map<std::uint64_t, buffer> gradients; ///< kept aside, by step
    buffer copy;                               ///< until it is complete
    std::uint32_t pieces_expected = 0;
    std::uint32_t pieces_left = 0;
  };
  std::map<std::uint32_t, arriving_unit> arriving_;
  /// Units of the former sub-plan, while this one is adopted.
  std::map<std::uint32_t, arriving_unit> kept_arriving_;
  /// A copy that leaves this peer, piece by piece.
  struct leaving_unit {
    core::job_action::send_unit asked;
    buffer copy;
    std::uint32_t next = 0; ///< next piece
    std::uint32_t pieces = 0;
    std::shared_ptr<void> span;
  };
  std::map<std::pair<core::peer_id, std::uint32_t>,
           std::shared_ptr<leaving_unit>>
    leaving_;
  int reading_state_ = 0;     ///< copies and digests in progress: delay apply
  bool looking_ = false;      ///< at checkpoints on the disk; inputs wait
  bool saving_fails_ = false; ///< has been reported
  bool end_said_ = false;
  std::string slow_said_;            ///< of a network that steps wait for
  std::set<core::peer_id> refusing_; ///< peers whose full disk has been
                                     ///< reported
  core::epoch handed_over_ = 0;      ///< sub-plan that was asked to begin anew
  std::uint64_t last_step_ = 0;      ///< newest committed step in the log
  job_holds reported_;
  unsigned ticks_ = 0;

  core::stall_watch watch_;
  core::job_header header_;          ///< of place_
  std::optional<core::remark> wait_; ///< what the job waits for
  core::nanoseconds predicted_ = 0;  ///< longest time without a change
  bool alone_ = true;                ///< no other job shares the devices
  bool listing_ = false;             ///< a list of transfers has been requested
  std::vector<core::peer_id> sending_to_;
  std::vector<std::string> under_way_;     ///< transfers, as text
  std::string flight_why_;                 ///< reason of a pending flight
                                           ///< record
  int flight_ticks_ = 0;                   ///< since then
  std::optional<std::uint64_t> flight_at_; ///< newest step at the last stall
  bool over_ = false;
  bool deaf_ = false; ///< saves what is here: other peers change nothing
  /// Released when the drained run has ended.
  std::shared_ptr<void> leaving_alone_;
};

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::job_later)
