// runtime/core/training/job_events.hpp -- what a job_core hears and asks for.
//
// Events come from the job's shell on this peer, actions go to it, in order.
// An event that answers an action carries the digest of its assignment: under
// another one it has no effect.
//
// Threads: plain data.
#pragma once

#include "runtime/core/training/job_messages.hpp"
#include "runtime/core/view.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace shoal::core {

enum class stop_reason : std::uint8_t {
  completed = 1,
  drained = 2,
  diverged = 3, ///< too many steps in a row were not finite
};

/// A peer whose unit, as of a step, was not what it is elsewhere.
struct differing_unit {
  std::uint32_t unit = 0;
  std::uint64_t step = 0;
  peer_id at{};
  friend bool
  operator==(const differing_unit&, const differing_unit&) = default;
};

/// What happens to a job_core.
namespace job_event {

/// A view took effect here. No assignment: the job is over.
struct view_changed {
  epoch number = 0;
  std::optional<assignment> place;
  std::vector<peer_id> members; ///< of the view, witnesses included
  bool calm = false; ///< undisturbed() says so of the assignment before
  std::vector<peer_id> former{}; ///< members that may come back
};
/// Answers action halt: nothing computes, sends or receives any more, and an
/// apply or load that had begun is complete and reported, or never happened.
struct halted {
  std::uint64_t digest = 0; ///< as in the action
  bool unable = false;      ///< as in seal
};
/// All own buckets of the step are reduced and kept, those followed too.
struct prepared {
  std::uint64_t digest = 0;
  std::uint64_t step = 0;
  std::vector<unit_sums> units; ///< of all units held
  std::vector<double> losses;   ///< of all microbatches, if we hold the head
  std::vector<std::uint64_t> samples; ///< likewise
  nanoseconds busy = 0;               ///< as in vote
  nanoseconds elapsed = 0;
  bool writing = false;               ///< likewise
  bool unable = false;                ///< likewise
  std::vector<unit_digest> digests{}; ///< as asked for
};
/// Answers action apply.
struct applied {
  std::uint64_t step = 0;
};
/// A unit is here: answers fetch_unit, initialise_unit, restore_unit and
/// revert_unit.
struct loaded {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
};
/// Answers run_eval. The evaluator knows the result.
struct evaluated {
  std::uint64_t digest = 0;
  std::uint64_t step = 0;
  bool known = false;
  double loss = 0;
  std::uint64_t tokens = 0;
};
/// Answers run_checkpoint: what it saves is copied, the state may change.
struct snapshot_taken {
  std::uint64_t digest = 0;
  std::uint64_t step = 0;
};
/// At its publisher, while the run goes on: a checkpoint is complete in the
/// store, or could not be written. The last one is tried until it can: then
/// another such event follows.
struct checkpointed {
  std::uint64_t digest = 0;
  std::uint64_t step = 0;
  bool known = false;
  blob_digest manifest{};
  std::uint64_t bytes = 0;
  std::string why;
  bool trying = false;
  peer_id refused{}; ///< as in checkpoint_published
};
/// A copy of a unit is here: answers take_copies, once for each unit.
struct copied {
  std::uint64_t digest = 0;
  state_version version;
  std::uint32_t unit = 0;
};
/// The copy of a unit that arrives is here, as of `step`: answers receive_unit.
struct arrival_copied {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  std::uint64_t step = 0;
};
/// The reduced gradients of a step of such a unit are here, kept aside.
struct arrival_reduced {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  std::uint64_t step = 0;
};
/// Answers action apply_arrived.
struct arrival_applied {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  std::uint64_t step = 0;
};
/// The own store has all of this checkpoint (fetched, or found at start).
struct checkpoint_held {
  checkpoint_ref checkpoint;
};
/// It has it no longer.
struct checkpoint_dropped {
  checkpoint_ref checkpoint;
};
/// The own disk refuses a checkpoint that is to be kept here; it is tried on.
struct keep_refused {
  checkpoint_ref checkpoint;
};
/// It was published once: a log of this peer says so.
struct checkpoint_heard {
  checkpoint_ref checkpoint;
};
/// Answers fetch_checkpoint: all that was asked for is in the own store,
/// verified.
struct checkpoint_fetched {
  std::uint64_t digest = 0;
  checkpoint_ref checkpoint;
};
/// All members were asked, and together they have no whole copy of what was
/// asked for of the checkpoint. Once for each round; the shell goes on asking.
struct checkpoint_missing {
  std::uint64_t digest = 0;
  checkpoint_ref checkpoint;
};
/// Somebody here asks the job to go on without the checkpoint it waits for.
struct stop_waiting {};
/// The own store has all blobs of the job.
struct blobs_held {};
/// Somebody here asks to stop after the step in progress.
struct drain {};
struct received {
  peer_id from{};
  job_message message;
};
/// From time to time (every 200 ms): repeats what may have been lost.
struct tick {};

} // namespace job_event

using job_input =
  std::variant<job_event::view_changed, job_event::halted, job_event::prepared,
               job_event::applied, job_event::loaded, job_event::copied,
               job_event::arrival_copied, job_event::arrival_reduced,
               job_event::arrival_applied, job_event::evaluated,
               job_event::snapshot_taken, job_event::checkpointed,
               job_event::checkpoint_held, job_event::checkpoint_dropped,
               job_event::keep_refused, job_event::checkpoint_heard,
               job_event::checkpoint_fetched, job_event::checkpoint_missing,
               job_event::stop_waiting, job_event::blobs_held, job_event::drain,
               job_event::received, job_event::tick>;

/// What a job_core asks its shell to do, in this order.
namespace job_action {

/// Stop all work and links of the job, then answer halted. A running apply
/// completes first.
struct halt {
  std::uint64_t digest = 0; ///< of the new assignment; 0: the job is over
};
struct send {
  peer_id to{}; ///< never ourselves
  job_message message;
};
/// The seals are in: the assignment takes effect here, resuming at `from`.
/// Wire up actors and links. Non-participants that hold state get it too.
struct adopt {
  std::uint64_t digest = 0;
  assignment place;
  state_version from;
  std::vector<std::uint32_t> units; ///< that we hold; empty: none
};
/// Make these units (all at step - 1, gradients reduced and kept, if need be
/// those of an arrival kept aside) those of `step`; answer applied. Not to be
/// interrupted.
struct apply {
  std::uint64_t step = 0;
  double grad_norm = 0; ///< before clipping; NaN: the units stay as they are
  std::vector<std::uint32_t> units;
};
/// Get a unit's state at `step` from a peer that has been told to serve it.
/// Here, in initialise_unit and restore_unit: what was held of the unit is void
/// from now on.
struct fetch_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  std::uint64_t step = 0;
  peer_id from{};
};
/// Send a unit's state, which we hold at `step`, to a peer that fetches it.
/// It does not change before the peer has it.
struct serve_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  std::uint64_t step = 0;
  peer_id to{};
  std::optional<state_version> copy; ///< from the copy of this version
};
/// Keep copies of the own units, all at `version`, and send them to those who
/// follow them; get those of the units that we follow. The run goes on
/// meanwhile. Answer copied for each unit.
struct take_copies {
  std::uint64_t digest = 0;
  state_version version;
  std::vector<std::uint32_t> own;
  std::vector<std::uint32_t> followed;
};
/// A unit arrives, all in the background: get its state at `version`, if
/// `copy`, else go on from what is held; answer arrival_copied. And get its
/// reduced gradients of each later step, arrival_backlog_max at once; answer
/// arrival_reduced for each. What was asked for of the unit before is void.
struct receive_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  state_version version;
  peer_id from{};
  bool copy = true;
};
/// Send such a unit: a copy of it as it is now, if `copy`, and its reduced
/// gradients of each later step until too many wait to be sent.
struct send_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  state_version version;
  peer_id to{};
  bool copy = true;
  bool paced = false; ///< the copy: steps must not take longer (arrivals.hpp)
};
/// Make such a unit that of `step`, by the gradients that are kept aside;
/// answer arrival_applied. Not to be interrupted.
struct apply_arrived {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  std::uint64_t step = 0;
  double grad_norm = 0; ///< before clipping; NaN: the unit stays as it is
};
/// All that arrives under the assignment is there: let a view say so.
struct arrivals_complete {
  epoch since = 0;
};
/// Make a unit's state what its copy is.
struct revert_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  state_version version;
};
/// Forget all copies but those of these versions, two at most.
struct drop_copies {
  std::vector<state_version> keep;
};
/// Get what these units are restored from into the own store and verify it:
/// first from `holders`, then from all members, again and again until it is
/// there (checkpoint_fetched); say so of each round in vain
/// (checkpoint_missing). What is held stays valid meanwhile.
struct fetch_checkpoint {
  std::uint64_t digest = 0;
  checkpoint_ref checkpoint;
  std::vector<peer_id> holders; ///< of a whole copy; none: no sealer has one
  std::vector<std::uint32_t> units;
};
/// Make a unit's state from the job's origin (its weights, or the seed).
struct initialise_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
};
/// Load a unit's state from a checkpoint, after fetch_checkpoint; `holders` have
/// it in their stores.
struct restore_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  checkpoint_ref checkpoint;
  std::vector<peer_id> holders;
};
/// Forget these units.
struct release {
  std::vector<std::uint32_t> units;
};
/// Run the microbatches of a step; answer prepared, with the digests of these
/// units as they are now.
struct run_step {
  std::uint64_t digest = 0;
  std::uint64_t step = 0;
  std::vector<std::uint32_t> digests{};
};
/// Evaluate the state at `step`; answer evaluated.
struct run_eval {
  std::uint64_t digest = 0;
  std::uint64_t step = 0;
};
/// Write a checkpoint of `step`; answer snapshot_taken. `last`: nothing
/// follows that could be saved instead.
struct run_checkpoint {
  std::uint64_t digest = 0;
  std::uint64_t step = 0;
  bool last = false;
  std::vector<peer_id> unable; ///< to write, as votes have said; ascending
  peer_id publisher{};
};
/// A committed step, after all those before it (job_reports.cpp): to the log.
struct step_known {
  step_record record;
  step_time took;                    ///< as the reporter said; 0 if not from it
  std::uint32_t bubble_permille = 0; ///< as measured; 0: not known, or none
};
/// A step is committed, whether or not its turn in the log has come. `publish`:
/// we tell it, maybe once more, as `progress` under `on`, with what is measured
/// here, to every other member of the view.
struct committed {
  step_record record;
  bool publish = false;
  job_header on;
};
/// The result of an evaluation, ours or from the evaluator: to the log.
struct eval_known {
  eval_result result;
};
/// A checkpoint exists, ours or another's: to the log.
struct checkpoint_known {
  checkpoint_ref checkpoint;
  peer_id at{};
  std::uint64_t bytes = 0;
  std::vector<peer_id> unable; ///< had no part in it; ascending
};
/// A checkpoint could not be written there: to the log, once for each peer.
struct checkpoint_failed {
  std::uint64_t step = 0;
  peer_id at{};
  std::string why;
  bool trying = false; ///< it tries on
  bool others = false; ///< then: until others have taken over
};
/// The disk cannot keep up with checkpoints: more steps than they are apart
/// would be lost if all died. Once; the run goes on.
struct checkpoints_slow {
  std::uint64_t step = 0;
  std::uint64_t lag = 0; ///< steps that one takes
};
/// We are a keeper: fetch this checkpoint, then say checkpoint_held.
struct keep_checkpoint {
  checkpoint_ref checkpoint;
  peer_id at{};
};
/// Nobody has a whole copy of this checkpoint: it is of no use. Once.
struct checkpoint_given_up {
  checkpoint_ref checkpoint;
};
/// The peers that hold the newest checkpoint are not here, and going on without
/// it would cost more steps than the interval: the run waits for them. Once for
/// each checkpoint.
struct checkpoint_awaited {
  checkpoint_ref checkpoint;
  std::vector<peer_id> holders; ///< as far as known here
  std::uint64_t last = 0;       ///< largest committed step known
  std::uint64_t otherwise = 0;  ///< step to go on from without it
  nanoseconds patience = 0;     ///< until the run goes on without it
};
/// Let a view begin the assignment anew.
struct begin_anew {
  epoch since = 0;
};
/// Committed steps are lost: no peer holds `unit` as of `last`; the run goes
/// on at `resume`. Of the steps reported here those up to `kept` stay: `resume`
/// or, where that one is still to be reported, the one before.
struct lost_state {
  std::uint32_t unit = 0; ///< the first such unit
  std::uint64_t last = 0;
  std::uint64_t resume = 0;
  std::uint64_t kept = 0;
};
/// The same for a peer that was not asked: others have lost state, and said so.
/// Steps reported here after `kept`, up to `last`, are run again.
struct went_back {
  std::uint64_t last = 0;
  std::uint64_t kept = 0;
};
/// Holders of one version of a unit have had other bytes: those named here get
/// it anew from the others.
struct state_differs {
  std::vector<differing_unit> units; ///< not empty
};
/// Get the job's blobs into the own store, then say blobs_held.
struct get_blobs {
  std::vector<peer_id> holders;
};
/// For people: what the job waits for.
struct waiting {
  std::string why;
  bool for_data = false; ///< no member has the job's data
};
/// The run ended after `step`, its last evaluation and checkpoint done and the
/// checkpoint in two stores where there are two keepers. Once for each
/// assignment: whoever reports then ends the job.
struct finished {
  std::uint64_t step = 0;
  stop_reason reason = stop_reason::completed;
  epoch since = 0; ///< of the assignment
};
/// The job has left the view, and nothing of it computes here: drop it all.
struct ended {};

} // namespace job_action

using job_output = std::variant<
  job_action::halt, job_action::send, job_action::adopt, job_action::apply,
  job_action::fetch_unit, job_action::serve_unit, job_action::take_copies,
  job_action::receive_unit, job_action::send_unit, job_action::apply_arrived,
  job_action::arrivals_complete, job_action::revert_unit,
  job_action::drop_copies, job_action::fetch_checkpoint,
  job_action::initialise_unit, job_action::restore_unit, job_action::release,
  job_action::run_step, job_action::run_eval, job_action::run_checkpoint,
  job_action::step_known, job_action::committed, job_action::eval_known,
  job_action::checkpoint_known, job_action::checkpoint_failed,
  job_action::checkpoints_slow, job_action::keep_checkpoint,
  job_action::checkpoint_given_up, job_action::checkpoint_awaited,
  job_action::begin_anew, job_action::lost_state, job_action::went_back,
  job_action::state_differs, job_action::get_blobs, job_action::waiting,
  job_action::finished, job_action::ended>;
using job_actions = std::vector<job_output>;

} // namespace shoal::core
