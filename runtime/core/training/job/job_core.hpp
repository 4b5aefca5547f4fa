// runtime/core/training/job/job_core.hpp -- the protocol of one island of a job
// on one peer.
//
// Actions = step(event, now). State is addressed in units, which are its parts
// (core/state/parts.hpp): unit 0 is the embedding, 1..blocks are the blocks,
// blocks + 1 is the final norm and head. A unit is a fixed list of whole tensors,
// and a peer holds each unit at a version {step, made}.
//
// A step is a transaction. Participants run its microbatches, or follow peers
// that do: a follower gets the reduced gradients of some units and applies them
// as their owners do, so that the state of a unit is in as many places as the
// job wants; or it gets copies every copy_every steps (state/held_copies.hpp).
// A participant with all its buckets reduced is prepared, and votes. A vote
// from every participant commits the step: norm and loss are sums in a fixed
// order, the same on all. A peer applies the step, then runs the next.
//
// Another assignment (view_changed) halts everything. One exception: if all
// participants of the former assignment still can take part, they first finish
// the step in progress, or give it up when it takes twice as long as the step
// before (graceful_change.cpp). When nothing computes any more (halted), each
// of island_place::sealers sends all others one seal: what it holds. From the
// same seals all draw the same conclusion: the newest version that, for every
// unit, some sealer holds or can roll forward to. They roll forward, fetch what
// they lack, and run on. A version that the run went back behind counts no
// more: a peer that was stopped meanwhile may still hold it. If no version is
// complete, all restore the newest checkpoint that a sealer's store has, else
// begin at the origin; the loss is reported (lost_state). Restoring takes two
// phases: first each participant gets what it needs of the checkpoint into its
// own store and verifies it; only when all have reported that (restorable) does
// any participant void what it holds. If the assignment changes during
// recovery, recovery starts over in the same way: there is no other path.
//
// Seals also name the newest published checkpoint. Perhaps no sealer has it,
// and going on without it would begin at the origin or run again more steps
// than a checkpoint interval has. Then the first step waits for it: the job
// keeps asking all members, also members that return. The wait ends when the
// patience of any participant does, or when a person asks for that
// (stop_waiting). The same applies to a checkpoint that turns out to be
// complete nowhere; where going on without it is cheap, patience is a few
// rounds. Such a checkpoint is given up: all begin anew, and seals list it from
// then on, so that the checkpoint before it is used. A checkpoint of a later
// step than any sealer knows to be committed is ignored.
//
// Members that work for other islands of the job do not seal, but have heard of
// this island's checkpoints, perhaps of more than its sealers. So before state is
// given up, each participant asks them by a seal that wants an answer; theirs
// says what they have heard. News make all begin anew, with it in the seals.
//
// Where the assignment has `arriving`, units move to their next holders while
// steps run (state/incoming_units.hpp), and all stop for the view that uses them
// (state/arrival_hold.hpp).
//
// The phases and the invariants J-1 to J-8 are in README.md. The parts in state/
// own what is known; this class owns the order: the phase, the step in progress
// and the change of assignment.
//
// Messages may be lost while a link is down: seals and votes repeat on tick
// until answered. Handlers are idempotent.
//
// Threads: none; one instance per island and peer, called from one place.
// Limits:  job_messages.hpp; blobs_told_max below; the parts.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/training/job/state/arrival_hold.hpp"
#include "runtime/core/training/job/state/checkpoint_rounds.hpp"
#include "runtime/core/training/job/state/digest_rounds.hpp"
#include "runtime/core/training/job/state/duty.hpp"
#include "runtime/core/training/job/state/held_copies.hpp"
#include "runtime/core/training/job/state/held_units.hpp"
#include "runtime/core/training/job/state/incoming_units.hpp"
#include "runtime/core/training/job/state/known_checkpoints.hpp"
#include "runtime/core/training/job/state/outgoing_units.hpp"
#include "runtime/core/training/job/state/seal_exchange.hpp"
#include "runtime/core/training/job/state/step_reports.hpp"
#include "runtime/core/training/job/state/step_votes.hpp"
#include "runtime/core/training/job_events.hpp"
#include "runtime/core/training/resume.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::core {

/// What never changes for an island of a job, and which peer we are.
struct job_config {
  island_id id;
  std::uint32_t islands = 1; ///< of the job
  peer_id self{};
  std::uint32_t blocks = 0;
  std::uint32_t microbatches = 0; ///< in one step
  std::uint64_t total_steps = 0;  ///< the last step
  std::uint64_t origin_step = 0;  ///< of the initial weights
  std::uint32_t copies = 1;       ///< wanted places of state besides the first
  /// After this many steps in a row that are not finite, the job ends; > 0.
  std::uint32_t max_bad_steps = 10;
  std::uint64_t eval_every = 0;       ///< 0: never; also at origin and end
  std::uint64_t checkpoint_every = 0; ///< see pace; 0: only at the end
  bool checkpoint_at_end = true;
  /// How long the run waits for a checkpoint whose holders are away, where
  /// going on without it costs more than checkpoint_every steps. Higher: a
  /// machine may take longer to come back, at the cost of a longer pause if
  /// none does.
  nanoseconds checkpoint_patience = 600'000'000'000;
  /// All holders of a unit that is in several places hash its state every
  /// digest_every steps, one unit at a time; 0: never. Higher: differences are
  /// noticed later. A parameter has 12 bytes, so a unit of 30M takes 36 ms of
  /// one processor at 10 GB/s: 1.1 ms a step, of at least 300 ms.
  std::uint64_t digest_every = 32;
  step_record last;      ///< newest that an earlier process here has reported
  std::uint64_t top = 0; ///< the largest step among them; see seal
  std::uint64_t evaluated = 0; ///< newest step + 1 that it knew the loss of
};

class job_core {
public:
  explicit job_core(job_config config);

  [[nodiscard]] job_actions step(const job_input& event, nanoseconds now);

  /// The job's phase on this peer, for status lines and tests.
  enum class phase : std::uint8_t {
    idle,      ///< not a sealer, or no assignment yet
    halting,   ///< waiting for halted
    sealing,   ///< waiting for seals
    fetching,  ///< until all stores that need the checkpoint have it
    restoring, ///< rolling forward, loading
    gated,     ///< ready, except for the job's blobs
    evaluating,
    checkpointing,
    running,  ///< the step's microbatches
    voting,   ///< prepared; waiting for votes
    applying, ///< the optimizer runs
    holding,  ///< all has arrived: waiting for the view that uses it
    standby,  ///< not a participant; may hold state
    done,     ///< finished: state kept until the job leaves the view
    over,     ///< the job has left the view
  };
  /// The seals received for the assignment in effect: what each sealer holds.
  [[nodiscard]] const std::map<peer_id, seal>& seals() const noexcept {
    return seals_.all();
  }
  [[nodiscard]] phase now_in() const noexcept { return phase_; }
  /// Whether the job waits for a checkpoint that no present peer has.
  [[nodiscard]] bool awaits_checkpoint() const noexcept {
    return phase_ == phase::fetching && absent_;
  }
  [[nodiscard]] std::uint64_t step_in_progress() const noexcept {
    return current_;
  }
  /// The assignment taken up, and its header; digest 0: none.
  [[nodiscard]] const std::optional<island_place>& place() const noexcept {
    return duty_.place;
  }
  [[nodiscard]] const job_header& under() const noexcept {
    return duty_.header;
  }
  /// The units held here, complete, and their versions.
  [[nodiscard]] const std::map<std::uint32_t, state_version>&
  held() const noexcept {
    return held_.versions();
  }
  [[nodiscard]] const island_id& id() const noexcept { return config_.id; }
  [[nodiscard]] bool has_blobs() const noexcept { return has_blobs_; }
  /// Whether something should move here: other peers wait for this one, or this
  /// one waits for others. False while work on files takes its time.
  [[nodiscard]] bool should_move() const;
  /// Whether something should move, at the speed of files: state comes from
  /// disks, or the job's data, which some peer has, comes from other stores.
  [[nodiscard]] bool loads() const;
  /// Whether only a new beginning can save a checkpoint that this peer's disk
  /// refuses: no checkpoint will follow it, and other peers could make it.
  [[nodiscard]] bool should_hand_over() const;
  /// The peers whose disks refuse checkpoints, as far as known here; ascending.
  [[nodiscard]] std::vector<peer_id> refusing_disks() const {
    return rounds_.refusing(duty_);
  }
  /// A number that changes whenever anything has moved here; repeats do not
  /// count.
  [[nodiscard]] std::uint64_t mark() const;
  /// Copies kept here, by version.
  [[nodiscard]] const std::map<state_version, std::set<std::uint32_t>>&
  copies() const noexcept {
    return copies_.all();
  }

  /// Progress of arrivals here: units that have come, and all.
  struct arrival_count {
    std::size_t here = 0;
    std::size_t all = 0;
  };
  [[nodiscard]] arrival_count arrivals() const noexcept;

  static constexpr nanoseconds repeat_after = job_repeat_after;
  /// The longest time that a calm change waits for a step in progress.
  static constexpr nanoseconds finish_max = 60'000'000'000;
  static constexpr std::size_t blobs_told_max = 64; ///< peers that have them
  /// A checkpoint that no store has complete for this many rounds, a second
  /// apart, is given up where that is cheap; elsewhere users are told that the
  /// run waits.
  static constexpr std::uint32_t missing_rounds_max = 3;
  /// The longest time that a participant waits for what members of other
  /// islands have heard. Dead ones leave the view earlier.
  static constexpr nanoseconds hearing_max = 15'000'000'000;

private:
  void on(const job_event::view_changed& e);
  void on(const job_event::halted& e);
  void on(const job_event::prepared& e);
  void on(const job_event::applied& e);
  void on(const job_event::loaded& e);
  void on(const job_event::copied& e);
  void on(const job_event::arrival_copied& e);
  void on(const job_event::arrival_reduced& e);
  void on(const job_event::arrival_applied& e);
  void on(const job_event::evaluated& e);
  void on(const job_event::snapshot_taken& e);
  void on(const job_event::checkpointed& e);
  void on(const job_event::checkpoint_held& e);
  void on(const job_event::checkpoint_dropped& e);
  void on(const job_event::keep_refused& e);
  void on(const job_event::checkpoint_heard& e);
  void on(const job_event::checkpoint_fetched& e);
  void on(const job_event::checkpoint_missing& e);
  void on(const job_event::stop_waiting& e);
  void on(const job_event::blobs_held& e);
  void on(const job_event::drain& e);
  void on(const job_event::received& e);
  void on(const job_event::tick& e);

  void take(const peer_id& from, const vote& m);
  void take(const peer_id& from, const seal& m);
  void take(const peer_id& from, const have_blobs& m);
  void take(const peer_id& from, const progress& m);
  void take(const peer_id& from, const eval_result& m);
  void take(const peer_id& from, const checkpoint_published& m);
  void take(const peer_id& from, const have_checkpoint& m);
  void take(const peer_id&, const shards_written&) {} ///< for its checkpointer
  void take(const peer_id&, const stall_report&) {}   ///< for a stall_watch
  void take(const peer_id&, const remark&) {}         ///< for the log
  void take(const peer_id& from, const arrival_wanted& m);
  void take(const peer_id& from, const arrival_begun& m);
  void take(const peer_id& from, const arrival_complete& m);
  void take(const peer_id& from, const records_wanted& m);
  void take(const peer_id& from, const restorable& m);
  void take(const peer_id& from, const stop_waiting& m);

  [[nodiscard]] bool may_finish(const job_event::view_changed& e) const;
  void take_up(const job_event::view_changed& e);
  void take_up_if_late();
  void take_up_if_halted(const peer_id& from);
  void begin_halt();
  void make_seal();
  void resume_if_sealed();
  void begin_fetch();
  void ask_others();
  void ask_newcomers(const std::vector<peer_id>& before);
  void take_answer(const peer_id& from, const seal& m);
  void restorable_if_ready();
  void restore_if_fetched();
  void take_effect();
  void load_units();
  void continue_if_loaded();
  void enter(const state_version& at, bool evaluated, bool checkpointed);

  void begin_arrivals();
  void halt_arrivals();
  void repeat_arrivals();
  void note_arrived();
  void ask_if_arrived();
  void note_step(const step_record& r);

  void settle();
  void start_step();
  void commit_if_voted();
  void finish_if_told();
  void give_up(const checkpoint_ref& c);
  void go_on_without(const checkpoint_ref& c);
  void say_awaited();
  void ask_for_blobs();
  void repeat();
  [[nodiscard]] bool keeper() const;
  [[nodiscard]] bool gate_open() const;
  [[nodiscard]] bool diverged() const noexcept {
    return bad_run_ >= config_.max_bad_steps;
  }
  void say_what_data_is_missing();
  void log_eval(const eval_result& r);
  void release_spare();

  void tell(const std::vector<peer_id>& whom, const job_message& m);
  template <class Action>
  void act(Action a) {
    out_.emplace_back(std::move(a));
  }
  [[nodiscard]] bool eval_due(std::uint64_t step) const noexcept;
  [[nodiscard]] bool checkpoint_due(std::uint64_t step) const noexcept;
  [[nodiscard]] bool last_step(std::uint64_t step) const noexcept;

  job_config config_;
  nanoseconds now_ = 0;
  job_actions out_;
  phase phase_ = phase::idle;

  duty duty_; ///< under the latest assignment taken up
  std::vector<peer_id> members_;
  std::vector<peer_id> former_; ///< earlier members that may come back
  std::optional<job_event::view_changed> next_; ///< after the step

  // What is here, and what the shell has been asked to change.
  held_units held_;
  state_version prepared_; ///< zero: none
  std::vector<std::uint32_t> prepared_units_;
  vote own_vote_; ///< of prepared_
  std::optional<state_version> applying_;
  std::vector<std::uint32_t> applying_units_;
  job_header running_; ///< the assignment of the step in progress
  std::vector<std::uint32_t> running_units_;

  digest_rounds digests_;

  held_copies copies_;
  std::optional<job_event::prepared> late_; ///< held back until copies are here

  // Units that move while steps run.
  incoming_units incoming_;
  outgoing_units outgoing_;
  arrival_hold hold_;

  // Sealing.
  seal_exchange seals_;
  std::optional<resume_decision> decision_;
  std::set<peer_id> restorable_; ///< peers that can restore what they need
  bool fetched_ = false;         ///< what this peer needs is here
  std::set<peer_id> unheard_; ///< members of other islands that are to answer
  nanoseconds asked_ = 0;     ///< the first time
  bool news_ = false;         ///< an answer has some: all begin anew
  std::uint32_t missing_rounds_ = 0;
  /// A checkpoint that the job waits for, kept across assignments.
  checkpoint_ref awaited_;
  nanoseconds awaited_since_ = 0;
  bool awaited_reported_ = false;
  bool absent_ = false; ///< no present peer has all of it

  // The step in progress.
  std::uint64_t current_ = 0;
  step_votes votes_;
  bool committed_here_ = false; ///< a step, under this assignment
  bool eval_settled_ = false;   ///< for the state at current_ - 1
  bool checkpoint_settled_ = false;
  bool checkpoint_again_ = false; ///< of the state to resume at
  bool unable_here_ = false;      ///< to write checkpoints, as of the last halt
  checkpoint_rounds rounds_;
  nanoseconds repeated_ = 0;
  nanoseconds step_began_ = 0;
  nanoseconds step_took_ = 0; ///< of the newest committed step; 0: none

  // History.
  step_reports reports_;
  std::uint64_t stop_step_ = 0; ///< drained: first step not to run; 0: none
  std::uint64_t evaluated_;     ///< newest step + 1 evaluated; 0: none
  eval_result last_eval_;
  known_checkpoints known_;
  bool drain_ = false;
  bool finished_ = false;

  // Blobs.
  bool has_blobs_ = false;
  std::uint32_t bad_run_ = 0; ///< step_record::bad of the step current_ - 1
  bool asked_for_blobs_ = false;
  std::map<peer_id, bool> blobs_at_;
};

/// "running", "waiting for data": for users, traces and flight records.
[[nodiscard]] const char* to_text(job_core::phase p);

} // namespace shoal::core
