// tests/sim/shoal/history.hpp -- invariants of a job.
//
// Observes every event and action of every job core, every change of a unit's
// bits, and what the data source sends.
//
// H-1: one history: a step version has one loss and norm; a committed step
//      follows the newest one; steps are given up only if no seal reaches them,
//      and then that is reported.
// H-2: a step is committed after every participant has prepared it, or when
//      all sealers resume from it.
// H-3: equal versions of a unit are equal bits.
// H-4: no peer votes, runs or moves tensors under a sub-plan that it has been
//      told to leave.
// H-5: a committed step uses each of its samples once; in the committed history
//      no window of the text occurs twice in a pass over it.
// H-6: while a step runs, a peer has copies of at most copied_versions_max
//      versions.
// H-7: no deaths cost more steps than a checkpoint interval has, or than the
//      newest checkpoint lacks of which a sealer, or a present member of
//      another island, has heard.
// H-8: a peer whose view says that the job is to end begins at most one more step
//      under each sub-plan.
#pragma once

#include "runtime/core/training/job/job_core.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>

namespace shoal::sim {

class history {
public:
  /// The newest that all have, and the one in progress.
  static constexpr std::size_t copied_versions_max = 2;

  struct shape {
    std::uint64_t steps = 0;
    std::uint32_t blocks = 0;
    std::uint32_t microbatches = 0;
    std::uint64_t interval = 0; ///< of checkpoints
    std::uint64_t windows = 0;  ///< in the text; steps use each once
    std::function<core::peer_id(int)> id_of;
    std::function<int(const core::peer_id&)> number_of;
    /// The window that begins with these tokens.
    std::function<std::uint64_t(std::span<const std::int32_t>)> window_of;
    std::uint32_t islands = 1; ///< of the job
    bool cancelled = false;    ///< a user ends it
  };

  /// @param note takes two numbers for the trace of the run
  history(shape s, std::function<void(std::string)> fail,
          std::function<void(int, const std::string&)> say,
          std::function<void(std::uint64_t, std::uint64_t)> note)
    : shape_(std::move(s)), fail_(std::move(fail)), say_(std::move(say)),
      note_(std::move(note)) {}

  /// A job core of this node has taken a step.
  void stepped(int node, const core::job_core& core, const core::job_input& in,
               const core::job_actions& out);
  /// The process has ended.
  /// @param logged the checkpoints in its log on the disk
  void died(int node, const std::set<core::blob_digest>& logged);
  /// The view of this node says that the job is to end.
  void is_to_end(int node) { nodes_[node].to_end = true; }
  /// A unit's parameters and moments have changed to these.
  void unit_is(int node, std::uint32_t unit, std::uint64_t bits);
  /// A transfer is posted or sent.
  void uses_plan(int node, std::uint64_t digest);
  void sends_tokens(std::uint64_t digest, std::uint32_t sequence,
                    std::span<const std::byte> tokens);

  /// The committed steps.
  const std::vector<core::step_record>& chain() const { return chain_; }
  /// Why the history is not that of a finished run; empty if it is.
  std::string finished();
  std::uint64_t steps() const noexcept { return committed_; }
  std::uint64_t losses() const noexcept { return losses_; }
  /// The state of each job core, as text.
  std::string stand() const;
  /// The newest assignment of which the node was told, or nullptr.
  const core::island_place* told(int node) const;
  /// Number of sub-plans that any peer has adopted.
  std::size_t adoptions() const noexcept { return adopted_.size(); }
  /// The committed record of that version, or nullptr.
  const core::step_record* find(const core::state_version& v) const;

private:
  /// State of a process.
  struct state {
    const core::job_core* core = nullptr; ///< the newest that has a place
    std::uint64_t told = 0;               ///< digest of the newest sub-plan
    std::vector<core::peer_id> members;   ///< of the newest view
    bool still = false;                   ///< it has halted for `told`
    std::map<std::uint32_t, std::uint64_t> bits;
    std::vector<std::uint32_t> applying;
    core::state_version reported;
    /// The history behind each checkpoint that was begun, by step.
    std::map<std::uint64_t, std::vector<core::step_record>> writing;
    bool must_say = false;
    bool to_end = false;
    std::map<std::uint64_t, int> begun_to_end; ///< steps, by digest
    core::job_core::phase phase{};             ///< after its last step
    std::uint64_t step = 0;
  };
  using version = core::state_version;

  void took(int node, const core::job_core& core, const core::job_input& in);
  void
  on(int node, const core::job_core& core, const core::job_action::adopt& a);
  void on(int node, const core::job_core& core,
          const core::job_action::step_known& a);
  void on(int node, const core::job_core& core,
          const core::job_action::committed& a);
  void
  on(int node, const core::job_core& core, const core::job_action::run_step& a);
  void
  on(int node, const core::job_core& core, const core::job_action::send& a);
  void
  on(int node, const core::job_core& core, const core::job_action::finished& a);
  void
  on(int node, const core::job_core& core, const core::job_action::ended& a);
  void
  on(int node, const core::job_core& core, const core::job_action::apply& a);
  void on(int node, const core::job_core& core,
          const core::job_action::lost_state& a);
  void on(int node, const core::job_core& core,
          const core::job_action::went_back& a);
  void on(int node, const core::job_core& core,
          const core::job_action::run_checkpoint& a);
  void on(int node, const core::job_core& core,
          const core::job_action::checkpoint_known& a);
  void on(int node, const core::job_core& core,
          const core::job_action::checkpoint_given_up& a);
  template <class Other>
  void on(int, const core::job_core&, const Other&) {}

  void check_loss(int node, const core::job_core& core,
                  const core::job_action::adopt& a, std::uint64_t tip);
  void check_unit(int node, const core::job_core& core, std::uint32_t unit);
  void check_samples(const version& v);
  std::vector<core::step_record> chain_to(version v) const;
  void check_holdings(int node, const core::job_core& core);
  bool reachable(const version& v, std::uint64_t digest) const;
  /// @param what text, or a function that makes it: nearly all checks hold
  template <class What>
  void check(bool ok, const What& what) const {
    if (ok) [[likely]]
      return;
    if constexpr (std::is_invocable_v<What>)
      fail_(what());
    else
      fail_(what);
  }

  core::peer_id id_of(int node) const { return shape_.id_of(node); }
  int number_of(const core::peer_id& id) const { return shape_.number_of(id); }

  shape shape_;
  std::function<void(std::string)> fail_;
  std::function<void(int, const std::string&)> say_;
  std::function<void(std::uint64_t, std::uint64_t)> note_;
  std::map<int, state> nodes_;
  std::map<std::uint64_t, core::island_place> places_; ///< by digest
  std::map<core::epoch, std::uint64_t> digests_;       ///< by `since`
  std::map<version, core::step_record> known_;
  std::map<std::pair<version, std::uint32_t>, std::uint64_t> bits_;
  std::map<version, std::set<int>> prepared_; ///< made = since
  std::map<std::uint64_t, version> resumed_;  ///< by digest
  std::map<std::uint64_t, std::map<core::peer_id, core::seal>> seals_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> sent_;
  std::vector<core::step_record> chain_;
  std::vector<core::step_record> ended_; ///< at the first end of the run
  /// By manifest.
  std::map<core::blob_digest, std::vector<core::step_record>> saved_;
  std::map<int, std::set<core::checkpoint_ref>> told_of_; ///< over all its
                                                          ///< processes
  std::set<core::blob_digest> given_up_;
  std::optional<core::checkpoint_ref> restoring_; ///< in the current step
  std::map<version, version> same_; ///< made by restoring -> as originally made
  std::map<core::epoch, std::uint64_t> adopted_;
  std::uint64_t committed_ = 0;
  std::uint64_t losses_ = 0;
};

} // namespace shoal::sim
