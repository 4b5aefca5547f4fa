// runtime/core/training/resume.hpp -- conclusions from a set of seals or votes:
// where a run goes on, and what a step amounts to.
//
// Pure functions: all peers with the same set conclude the same. Which seals and
// votes a peer waits for is the protocol's business (job/).
//
// Threads: none. Cost: decide_resume takes units * sealers, each times the
// logarithm of the versions that a unit is held at.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/training/job_events.hpp"

#include <map>
#include <optional>
#include <vector>

namespace shoal::core {

/// The conclusion from a set of seals: the same on every sealer.
struct resume_decision {
  enum class source : std::uint8_t { live = 1, checkpoint = 2, origin = 3 };
  source from = source::live;
  state_version version; ///< where the run goes on
  step_record record;    ///< of `version`; valid if `known`
  bool known = false;    ///< `record` holds norm and loss
  checkpoint_ref checkpoint;
  std::vector<peer_id> checkpoint_holders; ///< of parts of it; none: the
                                           ///< sealers lack some part
  std::uint64_t otherwise = 0; ///< without the checkpoint, the step to go on
                               ///< from
  bool costly = false; ///< `otherwise` is the origin, or over an interval back
  std::vector<checkpoint_ref> heard; ///< the credible ones; ascending
  struct transfer {
    std::uint32_t unit = 0;
    peer_id from{};
    peer_id to{};
  };
  std::vector<transfer> transfers;
  struct place_of_unit {
    std::uint32_t unit = 0;
    peer_id at{};
  };
  std::vector<place_of_unit> in_step;    ///< arriving units that are at the
                                         ///< version
  std::vector<differing_unit> differing; ///< not used to go on from
  std::optional<state_version> copies;   ///< the newest complete ones
  std::uint64_t last = 0;           ///< newest committed step that a seal knows
  std::uint64_t top = 0;            ///< as in seal
  std::uint32_t lost_unit = 0;      ///< if version.step < last
  bool stop = false;                ///< drained: no step runs after `version`
  bool evaluated = false;           ///< `version` has been evaluated
  bool checkpointed = false;        ///< and is in as many stores as wanted
  std::uint64_t checkpoint_lag = 0; ///< the largest that a seal knows
  std::vector<peer_id> unable;      ///< to write checkpoints, by peer;
                                    ///< ascending
  std::vector<checkpoint_ref> given_up; ///< in the list of some seal
};

/// @param interval steps that the run would rather run again than wait for a
///        checkpoint that no sealer has; 0: none
/// @pre one seal for each of place.sealers
[[nodiscard]] resume_decision
decide_resume(const island_place& place, std::uint32_t blocks,
              std::uint64_t origin_step, std::uint64_t interval,
              const std::map<peer_id, seal>& seals);

/// Whether `given_up` has this checkpoint, or one with the same files that was
/// reported later; not one that was made again since.
[[nodiscard]] bool is_given_up(const checkpoint_ref& c,
                               const std::vector<checkpoint_ref>& given_up);

/// Norm and loss of a step from one vote per participant, bit-equal whatever
/// the split: the root of the sums in unit and tensor order, each unit counted
/// once; the mean of the losses in microbatch order.
/// @returns nothing if a unit or the losses are missing
[[nodiscard]] std::optional<step_record>
tally(const std::vector<const vote*>& votes, std::uint32_t blocks,
      std::uint32_t microbatches);

/// The share of the step's computing phase in which peers did not compute, from
/// their votes, in thousandths. The phase ends with the last peer that
/// computes; peers without a stage do not count. It may differ between peers
/// after a resume, and affects nothing.
[[nodiscard]] std::uint32_t
bubble_permille(const std::vector<const vote*>& votes);

} // namespace shoal::core
