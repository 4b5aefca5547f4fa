// runtime/core/training/job_events.hpp -- input and output of a job_core.
//
// Events come from the job's shell on this peer; actions go to it, in order. An
// event that answers an action carries the digest of that action's assignment:
// under another assignment it has no effect.
//
// Threads: plain data.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/training/job_messages.hpp"

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

/// A peer that, as of a step, held other bytes of a unit than other holders.
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
  std::optional<island_place> place;
  std::vector<peer_id> members; ///< of the view, including witnesses
  bool calm = false; ///< undisturbed() holds for the former assignment
  std::vector<peer_id> former{}; ///< members that may come back
};
/// Answers action halt: nothing computes, sends or receives any more. An apply
/// or load that had begun has completed and been reported, or has not happened.
struct halted {
  std::uint64_t digest = 0; ///< as in the action
  bool unable = false;      ///< see seal
};
/// All our buckets of the step are reduced and kept, also those that we follow.
struct prepared {
  std::uint64_t digest = 0;
  std::uint64_t step = 0;
  std::vector<unit_square> units; ///< of all units held
  std::vector<double> losses;     ///< of all microbatches, if we hold the head
  std::vector<std::uint64_t> samples; ///< also only then
  nanoseconds busy = 0;               ///< see vote
  nanoseconds elapsed = 0;
  bool writing = false;               ///< see vote
  bool unable = false;                ///< see vote
  std::vector<unit_digest> digests{}; ///< those that run_step asked for
};
/// Answers action apply.
struct applied {
  std::uint64_t step = 0;
};
/// A unit is here: the answer to fetch_unit, initialise_unit, restore_unit and
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
/// Answers run_checkpoint: the state to save is copied and may now change.
struct snapshot_taken {
  std::uint64_t digest = 0;
  std::uint64_t step = 0;
};
/// At the publisher, while the run goes on: a checkpoint is written, and is in
/// the store but for the parts that only others keep, or could not be written. The last checkpoint is retried until it is
/// complete: then another such event follows.
struct checkpointed {
  std::uint64_t digest = 0;
  std::uint64_t step = 0;
  bool known = false;
  blob_digest manifest{};
  std::uint64_t bytes = 0;
  std::string why;
  bool trying = false;
  peer_id refused{}; ///< see checkpoint_published
  part_set lacks{};  ///< if `known`: parts that our store does not have
};
/// A copy of a unit is here: answers take_copies, once for each unit.
struct copied {
  std::uint64_t digest = 0;
  state_version version;
  std::uint32_t unit = 0;
};
/// The copy of an arriving unit is here, as of `step`: answers receive_unit.
struct arrival_copied {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  std::uint64_t step = 0;
};
/// The reduced gradients of a step of an arriving unit are here, kept for
/// later.
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
/// Our store has this checkpoint (fetched, or found at start), but for the parts
/// that it lacks.
struct checkpoint_held {
  checkpoint_ref checkpoint;
  part_set lacks{};
};
/// Our store no longer has it.
struct checkpoint_dropped {
  checkpoint_ref checkpoint;
};
/// Our disk refuses a checkpoint that we are to keep; the shell keeps trying.
struct keep_refused {
  checkpoint_ref checkpoint;
};
/// It was published once, according to a log of this peer.
struct checkpoint_heard {
  checkpoint_ref checkpoint;
};
/// Answers fetch_checkpoint: our store has all that was asked for, verified.
struct checkpoint_fetched {
  std::uint64_t digest = 0;
  checkpoint_ref checkpoint;
};
/// All members were asked, and together they have no complete copy of what was
/// asked for. Once in each round; the shell keeps asking.
struct checkpoint_missing {
  std::uint64_t digest = 0;
  checkpoint_ref checkpoint;
};
/// A user of this peer asks the job to go on without the checkpoint that it
/// waits for.
struct stop_waiting {};
/// Our store has all blobs of the job.
struct blobs_held {};
/// The job is to stop after the step in progress, as a user asked: the view says
/// so, or this peer was asked, or it is the last one and leaves.
struct drain {
  bool wanted = true; ///< false: it was, in a shoal that this peer has left
};
struct received {
  peer_id from{};
  job_message message;
};
/// Comes every 200 ms: repeats messages that may have been lost.
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
  peer_id to{}; ///< never this peer
  job_message message;
};
/// All seals are here: the assignment takes effect, resuming at `from`. Connect
/// actors and links. Non-participants that hold state get this action too.
struct adopt {
  std::uint64_t digest = 0;
  island_place place;
  state_version from;
  std::vector<std::uint32_t> units; ///< units that we hold; empty: none
};
/// Bring these units to `step`; answer applied. All are at step - 1, with their
/// gradients reduced and kept, perhaps as those of an arrival. Must not be
/// interrupted.
struct apply {
  std::uint64_t step = 0;
  double grad_norm = 0; ///< before clipping; NaN: the units do not change
  std::vector<std::uint32_t> units;
};
/// Get a unit's state at `step` from a peer that has been told to serve it.
/// With this action, initialise_unit or restore_unit the unit's former state
/// becomes void.
struct fetch_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  std::uint64_t step = 0;
  peer_id from{};
};
/// Send a unit's state, which we hold at `step`, to a peer that fetches it. The
/// state does not change until the peer has it.
struct serve_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  std::uint64_t step = 0;
  peer_id to{};
  std::optional<state_version> copy; ///< serve the copy of this version
};
/// Keep copies of our units, all at `version`, and send them to their
/// followers; get copies of the units that we follow. The run goes on
/// meanwhile. Answer copied for each unit.
struct take_copies {
  std::uint64_t digest = 0;
  state_version version;
  std::vector<std::uint32_t> own;
  std::vector<std::uint32_t> followed;
};
/// A unit arrives, all in the background. If `copy`, get its state at `version`
/// and answer arrival_copied; else go on from what we hold. Also get its
/// reduced gradients of each later step, at most arrival_backlog_max at a time,
/// and answer arrival_reduced for each. Earlier requests for the unit become
/// void.
struct receive_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  state_version version;
  peer_id from{};
  bool copy = true;
};
/// Send an arriving unit: if `copy`, a copy of its present state; also its
/// reduced gradients of each later step until too many wait to be sent.
struct send_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  state_version version;
  peer_id to{};
  bool copy = true;
  bool paced = false; ///< send the copy without delaying steps (arrivals.hpp)
};
/// Bring an arriving unit to `step` with the gradients kept for it; answer
/// arrival_applied. Must not be interrupted.
struct apply_arrived {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  std::uint64_t step = 0;
  double grad_norm = 0; ///< before clipping; NaN: the unit does not change
};
/// All state that arrives under the assignment is here: ask for a view that
/// says so.
struct arrivals_complete {
  epoch since = 0;
};
/// Replace a unit's state by its copy.
struct revert_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  state_version version;
};
/// Drop all copies except those of these versions, at most two.
struct drop_copies {
  std::vector<state_version> keep;
};
/// Get what these units are restored from into our store and verify it. Ask
/// first `holders`, then all members, again and again until it is here
/// (checkpoint_fetched); report each unsuccessful round (checkpoint_missing).
/// Our state stays valid meanwhile.
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
/// Load a unit's state from a checkpoint, after fetch_checkpoint; the stores of
/// `holders` have it.
struct restore_unit {
  std::uint64_t digest = 0;
  std::uint32_t unit = 0;
  checkpoint_ref checkpoint;
  std::vector<peer_id> holders;
};
/// Drop these units.
struct release {
  std::vector<std::uint32_t> units;
};
/// Run the microbatches of a step; answer prepared, with the digests of these
/// units before the step.
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
/// Write a checkpoint of `step`; answer snapshot_taken. `last`: no later step
/// could be saved instead.
struct run_checkpoint {
  std::uint64_t digest = 0;
  std::uint64_t step = 0;
  bool last = false;
  std::vector<peer_id> unable; ///< peers whose votes say that they cannot
                               ///< write; ascending
  peer_id publisher{};
};
/// A committed step, after all those before it: goes to the
/// log.
struct step_known {
  step_record record;
  step_time took;                    ///< as the reporter measured; 0 if not
                                     ///< from it
  std::uint32_t bubble_permille = 0; ///< as measured; 0: unknown, or none
};
/// A step is committed, perhaps before its turn in the log. `publish`: send it,
/// perhaps again, as `progress` under `header` and with what is measured here,
/// to every other member of the view.
struct committed {
  step_record record;
  bool publish = false;
  job_header header;
};
/// The result of an evaluation, ours or the evaluator's: goes to the log.
struct eval_known {
  eval_result result;
};
/// A checkpoint exists, ours or another peer's: goes to the log.
struct checkpoint_known {
  checkpoint_ref checkpoint;
  peer_id at{};
  std::uint64_t bytes = 0;
  std::vector<peer_id> unable; ///< peers that wrote nothing of it; ascending
};
/// That peer could not write a checkpoint: goes to the log, once for each peer.
struct checkpoint_failed {
  std::uint64_t step = 0;
  peer_id at{};
  std::string why;
  bool trying = false; ///< it keeps trying
  bool others = false; ///< until other peers have taken over
};
/// The disk cannot keep up with checkpoints: if all peers died, more steps than
/// the interval would be lost. Once; the run goes on.
struct checkpoints_slow {
  std::uint64_t step = 0;
  std::uint64_t lag = 0; ///< steps that one checkpoint takes
};
/// We are a keeper: fetch this checkpoint, then answer checkpoint_held.
struct keep_checkpoint {
  checkpoint_ref checkpoint;
  part_set parts; ///< that our store should have
  peer_id at{};
};
/// No peer has a complete copy of this checkpoint: it is useless. Once.
struct checkpoint_given_up {
  checkpoint_ref checkpoint;
};
/// The holders of the newest checkpoint are away, and going on without it would
/// cost more steps than the interval: the run waits for them. Once for each
/// checkpoint.
struct checkpoint_awaited {
  checkpoint_ref checkpoint;
  std::vector<peer_id> holders; ///< as far as known here
  std::uint64_t last = 0;       ///< largest committed step known
  std::uint64_t otherwise = 0;  ///< without the checkpoint, the step to go on
                                ///< from
  nanoseconds patience = 0;     ///< after this time the run goes on without it
};
/// Ask for a view that begins the assignment anew.
struct begin_anew {
  epoch since = 0;
};
/// Committed steps are lost: no peer holds `unit` as of `last`; the run goes on
/// at `resume`. Of the steps reported here, those up to `kept` stay. `kept` is
/// `resume`, or the step before if `resume` is still to be reported.
struct lost_state {
  std::uint32_t unit = 0; ///< the first such unit
  std::uint64_t last = 0;
  std::uint64_t resume = 0;
  std::uint64_t kept = 0;
};
/// The same for a peer that was not a sealer: the others have lost state and
/// reported so. Steps reported here after `kept`, up to `last`, are run again.
struct went_back {
  std::uint64_t last = 0;
  std::uint64_t kept = 0;
};
/// Holders of one version of a unit had different bytes: the peers named here
/// get the unit again from the others.
struct state_differs {
  std::vector<differing_unit> units; ///< not empty
};
/// Get the job's blobs into our store, then answer blobs_held.
struct get_blobs {
  std::vector<peer_id> holders;
};
/// What the job waits for, to show to users.
struct waiting {
  std::string why;
  bool for_data = false; ///< no member has the job's data
};
/// The run ended after `step`: its last evaluation and checkpoint are done, and
/// the checkpoint is in two stores if there are two keepers. Once for each
/// assignment; the reporter then ends the job.
struct finished {
  std::uint64_t step = 0;
  stop_reason reason = stop_reason::completed;
  epoch since = 0; ///< of the assignment
};
/// The job has left the view, and nothing of it computes here: release
/// everything.
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
