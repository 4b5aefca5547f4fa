// actors/job/parts/job_saving.hpp -- the checkpoints of a job on one peer.
//
// Writes its shards of each, keeps whole ones in the store, or its share of
// their parts, and removes old ones: the newest checkpoint.keep_latest_k stay.
// Says once when the disk of a peer refuses, and when that is over.
//
// Part of a job actor: see job_context.hpp.
//
// Threads: the owner's; files are read and removed on the disk's thread.
// Errors:  a peer whose disk refuses leaves its shards to others, and tries again
//          after some checkpoints.
#pragma once

#include "actors/checkpoint/needed_checkpoints.hpp"
#include "actors/checkpoint/shard_writer.hpp"
#include "actors/job/parts/job_context.hpp"
#include "actors/job/parts/job_remarks.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

namespace shoal::actors {

class job_saving {
public:
  class events {
  public:
    /// Something for the core.
    virtual void saving_changed(const core::job_input& what) = 0;
    /// The search for checkpoints has ended: these inputs go before all others.
    virtual void found(std::vector<core::job_input> first) = 0;
    /// To this peer's shard writer.
    virtual void write(const write_shards& m) = 0;
    virtual void refuse(const refuse_shards& m) = 0;
    virtual void end(const checkpoint_over& m) = 0;
    /// Fetches blobs, as long as it takes.
    virtual void fetch(lasting_fetch f) = 0;
    /// Other peers have to write the last checkpoint. As there are no votes any
    /// more, only another sub-plan, and the seals before it, can tell all peers.
    virtual void hand_over(core::epoch since) = 0;

  protected:
    ~events() = default;
  };

  /// All arguments outlive this object.
  /// @param needed what the islands on this node need; one for all of them
  job_saving(const job_context& here,
             std::shared_ptr<needed_checkpoints> needed, job_remarks& remarks,
             events& to)
    : here_(here), needed_(std::move(needed)), remarks_(remarks), to_(to) {}

  /// Finds the checkpoints that an earlier process of this peer has left in its
  /// store.
  void look();
  /// Whether that goes on; until then the core must get no input.
  bool looking() const noexcept { return looking_; }

  /// Writes this peer's shards of a checkpoint.
  void begin(const core::job_action::run_checkpoint& a);
  /// Whether a copy of units is still being written.
  bool writing() const noexcept { return !snapshot_.expired(); }
  void known(const core::job_action::checkpoint_known& a);
  void failed(const core::job_action::checkpoint_failed& a);
  void slow(const core::job_action::checkpoints_slow& a);
  /// Gets parts of a checkpoint into the own store.
  void keep(const core::job_action::keep_checkpoint& a);
  /// The checkpoint is in the own store, but for these parts: only now older
  /// ones may be dropped. It may have been written under a former sub-plan: then
  /// no peer has announced it yet.
  void hold(const core::checkpoint_ref& checkpoint,
            const core::part_set& lacks = {});
  /// The job goes on from this one: other islands leave its files alone.
  void restoring(const core::checkpoint_ref& checkpoint);
  /// Removes the rest of a checkpoint that was given up.
  void give_up(const core::job_action::checkpoint_given_up& a);

  /// The newest checkpoint in the job's log that has this step.
  std::optional<core::checkpoint_ref> logged(std::uint64_t step) const;

  /// The step that this peer's store can go on from: that of its newest
  /// checkpoint, else the origin.
  std::uint64_t newest_step() const;

  /// The sub-plan ends.
  void halt() { keeping_.clear(); }
  void tick();

private:
  void save(const core::job_action::run_checkpoint& a);
  void copy_units(const core::job_action::run_checkpoint& a,
                  const std::vector<std::uint32_t>& units);
  void log_checkpoint(const core::checkpoint_ref& checkpoint);
  void publish(const core::checkpoint_ref& checkpoint);
  void
  keep_refused(const core::checkpoint_ref& checkpoint, std::error_code error);
  [[nodiscard]] core::part_set all_parts() const;
  /// The least number of checkpoints to keep where peers share their parts: other
  /// peers may not have all of the newest yet.
  static constexpr std::size_t shared_min = 3;
  [[nodiscard]] bool shares() const;
  void drop_old(std::vector<core::checkpoint_ref> old = {});
  [[nodiscard]] bool is_served(const core::blob_digest& manifest) const;
  void drop_what_was_served(std::vector<core::checkpoint_ref>& old);
  void say_needed();

  const job_context& here_;
  std::shared_ptr<needed_checkpoints> needed_;
  job_remarks& remarks_;
  events& to_;

  // Making.
  std::uint64_t saving_ = 0; ///< newest step whose checkpoint was begun
  std::weak_ptr<shard_snapshot> snapshot_; ///< while it is written
  /// Number of checkpoints that others have written in place of this peer,
  /// whose disk refused its shards, and the number after which it tries again:
  /// one checkpoint is lost if that fails.
  std::size_t left_out_ = 0;
  std::size_t left_out_max_ = left_out_first;
  static constexpr std::size_t left_out_first = 4, left_out_most = 256;
  core::epoch handed_over_ = 0; ///< sub-plan that was asked to begin anew

  // Keeping.
  bool looking_ = false;
  /// In the own store, with the parts that it lacks.
  std::map<core::checkpoint_ref, core::part_set> checkpoints_;
  /// Being fetched to be kept: these parts.
  std::map<core::checkpoint_ref, core::part_set> keeping_;
  core::checkpoint_ref restored_;             ///< the latest; no manifest: none
  std::set<core::checkpoint_ref> logged_;     ///< those in the job's log
  std::vector<core::checkpoint_ref> dropped_; ///< here, while they were served
  std::set<std::uint64_t> published_;         ///< steps that have a checkpoint
  core::epoch published_since_ = 0;           ///< under the newest sub-plan
  std::set<std::uint64_t> not_saved_; ///< newer steps without a checkpoint

  // Reporting.
  bool fails_ = false;               ///< has been reported
  std::set<core::peer_id> refusing_; ///< peers whose full disk has been
                                     ///< reported
};

} // namespace shoal::actors
