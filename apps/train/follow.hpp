// apps/train/follow.hpp -- watches a job and brings home what it makes.
//
// Events go to a progress; checkpoints are fetched below <folder>/checkpoint
// meanwhile, of which the newest `keep` stay, and at the end the newest becomes
// the model in <folder>. One is shown when it is here. One that has been
// overtaken before its turn came is left out, but never the last. Without a
// folder it only watches. Where the job waits for a checkpoint that no peer has,
// it is offered the newest that is here.
//
// Threads: one, and the fetcher's.
// Errors:  what cannot be fetched is said each time, and left out. Of a job that
//          has ended the last checkpoint is tried until it can be written.
#pragma once

#include "apps/common/progress.hpp"
#include "apps/train/step_gaps.hpp"
#include "apps/transfer/checkpoint_fetcher.hpp"
#include "apps/transfer/checkpoint_offer.hpp"
#include "runtime/control/client.hpp"
#include "runtime/identity/kept_folder.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::apps {

/// "step-12" -> 12; also for "step-12.partial" -1.
std::int64_t step_of(const std::filesystem::path& folder);

/// (step, folder) of the checkpoints in OUT/checkpoint, oldest first.
std::vector<std::pair<std::int64_t, std::filesystem::path>>
checkpoints(const std::filesystem::path& out);

/// The step of the model in OUT, if it is that of a checkpoint there; else -1.
std::int64_t model_step(const std::filesystem::path& out);

/// The newest checkpoint of one of these jobs for which `out` had no room, in the
/// temporary directory (follow_config::spare_in); or empty. Another run may have
/// been in `out` before.
std::filesystem::path kept_for(const std::filesystem::path& out,
                               const std::vector<std::string>& jobs);

struct follow_config {
  std::filesystem::path folder; ///< may be empty
  /// Where `folder` is now, or why nothing may be written there; asked before
  /// each writing. Empty: it stays where it is.
  std::function<model::result<std::filesystem::path>()> place;
  std::int64_t keep = 10; ///< checkpoints
  /// Events below this position are old: of their checkpoints only the newest
  /// is fetched, after them.
  std::uint64_t old = 0;
  /// The step that the job went on from; none: its first steps may be missing.
  std::optional<std::uint64_t> origin;
  /// The last checkpoint of a job that has ended at a step, as another peer knows it.
  /// Asked where the node that is followed knows none of that step: it may have been
  /// away. Empty: no other peer is asked.
  std::function<std::optional<runtime::job_event>(std::uint64_t step)>
    elsewhere;
  /// How checkpoints are fetched, if the node that is followed does not answer.
  runtime::client_config at;
  /// If no node keeps the last checkpoint while it cannot be written, a folder of
  /// its own is made for it in this one, and removed when it is in `folder`. May
  /// be empty.
  std::filesystem::path spare_in;
  /// The command that fetches the last checkpoint later; empty: none does.
  std::string attach;
};

/// What a command does about the job that it watches. Called by follower::run().
class follow_host {
public:
  virtual ~follow_host() = default;
  /// Asked at least once a second; true ends the watching.
  virtual bool stops() = 0;
  /// No node answers now. @returns whether that ends the watching
  virtual bool lost() { return false; }
  /// The client goes on with another node, which may lack what was uploaded.
  virtual void moved() {}
  /// An event, before anything is done about it.
  virtual void seen(const runtime::job_event&) {}
  /// The job wants bytes of this digest that no peer has. @returns whether they
  /// are its data; else it is offered the newest checkpoint
  virtual bool give(const core::blob_digest&) { return false; }
  /// Asked while the last checkpoint of an ended job cannot be written; false
  /// tries it again.
  virtual bool gives_up() { return true; }
  /// The first such attempt follows. @param kept where the checkpoint is
  /// meanwhile, or empty
  virtual void trying(const std::filesystem::path& /*kept*/) {}
};

class follower final : private runtime::follow_handler {
public:
  /// @pre `client`, `out` and `host` outlive it
  follower(runtime::client& client, progress& out, follow_host& host,
           follow_config config);

  /// Until the job ends, or `host` stops.
  std::error_code run(core::job_id job);

  const std::string& state() const { return state_; } ///< at the end; "done"
  const std::string& cause() const { return cause_; } ///< of a failure
  /// The step of the newest checkpoint that the job has made, if any.
  const std::optional<std::uint64_t>& told_step() const { return told_step_; }
  /// That the checkpoint of a step is named by the log, and no peer has it.
  /// @param attach the command that asks again; "": there is none
  static std::string not_fetched(std::uint64_t step, const std::string& attach);
  /// The job has ended, and nothing of it is elsewhere that the folder lacks: it has
  /// the checkpoint of the last step or, of a job that was ended early and whose
  /// followed node saw all of its steps, the newest one.
  bool has_all() const {
    const bool to_end = state_ == "done" || client_.lacked_steps();
    return ended_
           && newest_step_ >= (to_end ? last_step_ : told_step_.value_or(0));
  }
  /// The model is in the folder, or a later one is.
  bool saved() const { return saved_; }
  /// The newest checkpoint here, or empty.
  const std::filesystem::path& newest() const { return newest_; }
  std::uint64_t newest_step() const { return newest_step_; }
  std::uint64_t last_step() const { return last_step_; }
  /// The last checkpoint below `spare_in`, since it is not in the folder; or empty.
  const std::filesystem::path& spared() const { return spared_; }

private:
  // follow_handler
  bool on(const runtime::job_event& e) override;
  void up_to_date() override;
  bool stops() override;
  bool lost() override;
  void moved() override;

  void look_elsewhere(const runtime::job_event& end);
  void fetch_pending();
  void settle();
  void collect();
  void bring_home(const runtime::job_event& end);
  void try_again(const runtime::job_event& last);
  void spare_one(const runtime::job_event& last);
  bool pause();
  model::status find_folder();
  void take_home(const checkpoint_fetcher::outcome& o);
  bool save_model();

  runtime::client& client_;
  progress& out_;
  follow_host& host_;
  follow_config config_;
  bool old_ = true; ///< what comes was there before the watching began
  runtime::job_event pending_; ///< an old checkpoint that may be the newest
  std::string state_, cause_;
  bool saved_ = false;
  std::filesystem::path newest_;
  std::uint64_t newest_step_ = 0;
  std::uint64_t last_step_ = 0;
  std::optional<double> last_loss_; ///< none: no step was told
  bool has_run_ = false; ///< the log is of a peer that saw the job run
  step_gaps gaps_;
  bool has_steps_ = false;
  std::optional<std::uint64_t> told_step_;
  std::int64_t newest_ms_ = 0; ///< of the events that were shown
  /// Events before this are late: another node is followed, whose log has them.
  std::int64_t late_before_ms_ = 0;
  core::blob_digest wanted_digest_{}; ///< newest that was asked for
  std::optional<checkpoint_fetcher::outcome> unwritten_; ///< the newest one
  runtime::held_folder kept_;                            ///< that of spared_
  std::filesystem::path spared_;
  bool trying_ = false; ///< again: what fails is not said each time
  core::job_id job_ = 0;
  checkpoint_offer offer_;
  /// What the fetcher says of nodes that are gone is shown: client_ says nothing.
  std::atomic<bool> ended_{false};
  std::unique_ptr<blob_source> source_;         ///< of fetcher_
  std::unique_ptr<checkpoint_fetcher> fetcher_; ///< none without a folder
};

} // namespace shoal::apps
