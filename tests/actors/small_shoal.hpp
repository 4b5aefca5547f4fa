// tests/actors/small_shoal.hpp -- several nodes' actors on one thread, step by
// step.
//
// The product's supervisor and job actors under CAF's test coordinator, in the
// product's wiring of a node. Its ports are the test's: device work runs at
// once, transfers are copied when both ends are there, views are what the test
// says. Every message is one step, so a test can let a node die between any two
// of them, and the same steps give the same run.
#pragma once

#include "actors/training/link_names.hpp"
#include "runtime/context.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/view.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/jobs/run_config.hpp"
#include "runtime/links/links.hpp"
#include "tests/support/scratch.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::test {

class small_node;

/// What a run has shown, from one node's log.
struct run_record {
  std::vector<double> losses; ///< of step 1, 2, ...
  std::vector<double> norms;
  std::string state; ///< empty: not ended
  std::size_t checkpoints = 0;
  std::size_t evaluations = 0;
  std::size_t notices = 0;
  std::size_t lost_states = 0; ///< notices of it
  std::size_t repeated = 0;    ///< steps that were run again
  std::string texts;           ///< of the notices, each a line
};

/// Of one island. @param log all events of the job
run_record
record_of(const std::vector<runtime::job_event>& log, std::uint32_t island);

/// A view that has changed the job's sub-plan.
struct past_view {
  core::view view;
  core::island_place place;
  /// That was committed under it, and not run again later; 0: none.
  std::uint64_t first_step = 0;
};

class small_shoal {
public:
  /// @param text the training text, cut into both splits by the corpus
  /// @param journals a node that starts again knows what it had logged
  small_shoal(std::size_t nodes, runtime::run_config run, std::string text,
              bool journals = false);
  ~small_shoal();

  /// Submits the job and hands the first view to all.
  void submit();
  /// Submits a second job that runs the same training; its id.
  core::job_id submit_twin();
  /// Runs one message, or lets 100 ms pass if there is none.
  void step();
  /// Runs until the job has ended in the view. @returns false after too long.
  bool finish(std::size_t steps_max = 400000);
  bool ended() const;
  std::size_t steps() const noexcept { return steps_; }

  /// The node is gone: its messages and transfers too; others get a view.
  void kill(std::size_t node);
  /// A bit of the next transfer of this kind is another when it has come.
  void flip_next(actors::link_kind kind) { flipped_ = std::uint32_t(kind); }
  /// Nothing reaches it, nor comes from it; others get a view without it. Then it
  /// is back, with all that it had.
  void cut_off(std::size_t node);
  void bring_back(std::size_t node);
  /// Its actors end, of which nobody hears.
  void silence(std::size_t node);
  /// Every blob in the store of a node that is gone has a flipped bit.
  void rot(std::size_t node);
  /// The blobs of a node's store, as they lie on its disk.
  std::vector<std::filesystem::path> blobs(std::size_t node) const;
  /// The files of a checkpoint in a node's store, by name, and "manifest".
  std::map<std::string, std::filesystem::path>
  checkpoint(std::size_t node, std::uint64_t step, core::job_id job = 1) const;
  /// The steps of the checkpoints that a node's log has of a job.
  std::vector<std::uint64_t>
  checkpoints(std::size_t node, core::job_id job) const;
  /// Refuses to write more blobs, or no longer.
  void fill_disk(std::size_t node, bool full);
  /// Called where the passes of a node's job let urgent work run.
  void
  between_segments(std::size_t node, std::function<void(core::job_id)> then);
  /// What a node has said.
  const std::vector<std::string>& said(std::size_t node) const;
  core::job_entry& entry() { return job_; }
  /// Puts a blob into a node's store, as a client does.
  core::blob_digest upload(std::size_t node, const std::string& text);
  /// All reach each other over this, by their profiles.
  void set_network(core::network_profile n);
  /// It does not compute; before submit().
  void make_witness(std::size_t node);
  /// It is back with nothing but its store.
  void restart(std::size_t node);
  /// The views so far that have changed the sub-plan, by what a node has logged.
  std::vector<past_view> past(std::size_t node) const;
  /// Instead of submit(): runs to the end under these, each from its first step
  /// on. Nobody dies, and who is in none of them does nothing.
  /// @returns false after too long
  bool replay(const std::vector<past_view>& views);
  /// A node hears this from another.
  void pass(std::size_t from, std::size_t to, core::job_message m);
  /// The flight records of a node.
  std::vector<std::filesystem::path> flights(std::size_t node) const;
  /// A node leaves, and no quorum agrees. `node_ends` becomes true when its jobs
  /// allow that.
  void leave_alone(std::size_t node, bool& node_ends);
  /// Asks the job on node 0 to end after the step in progress.
  void drain();
  /// The same wish, in a view, as a user's of that node.
  void cancel(std::size_t node);

  run_record record(std::size_t node, std::uint32_t island = 0) const;
  std::vector<runtime::job_event> events(std::size_t node) const;
  /// Most bytes that a node has had at once for copies of units.
  std::size_t most_copied(std::size_t node) const;
  /// Of this kind, so far.
  std::size_t transfers(actors::link_kind kind) const;
  /// What the peers of an island have sent each other so far: tensors, and
  /// control messages by kind; and pairs of peers, by number.
  struct traffic {
    std::size_t transfers = 0;
    std::map<std::size_t, std::size_t> messages;
    std::set<std::pair<std::uint8_t, std::uint8_t>> pairs;
  };
  const traffic& traffic_of(std::uint32_t island) { return moved_in_[island]; }
  const core::view& view() const { return view_; }
  const core::plan& plan() const { return *plan_; }

private:
  friend class small_node;
  friend class fake_links;
  struct transfer; // one end of one

  void publish();
  void tell_all();
  void lose(std::size_t node);
  /// Of all nodes' logs; reads what is new in them.
  std::uint64_t newest_step();
  void add_member(std::size_t node);
  void match(const core::peer_id& from, const core::peer_id& to,
             transport::bulk_tag tag);

  using key = std::tuple<core::peer_id, core::peer_id, transport::bulk_tag>;

  bool journals_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* scheduler_ = nullptr;
  scratch folder_{"shoal-actors"};
  core::view view_;
  std::shared_ptr<const core::plan> plan_;
  core::job_entry job_;
  std::vector<core::network_profile> networks_;
  std::vector<std::byte> text_;
  std::vector<std::unique_ptr<small_node>> nodes_, gone_;
  std::map<key, std::shared_ptr<transfer>> transfers_;
  std::map<std::uint32_t, std::size_t> moved_;     ///< transfers, by kind
  std::map<std::uint32_t, traffic> moved_in_;      ///< by island
  std::map<std::uint64_t, std::uint32_t> islands_; ///< by digest
  std::optional<std::uint32_t> flipped_;           ///< kind
  std::vector<past_view> past_;
  bool replaying_ = false; ///< views come from elsewhere
  std::uint64_t newest_step_ = 0;
  std::size_t steps_ = 0;
};

} // namespace shoal::test
