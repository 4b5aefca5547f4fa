// runtime/core/planning/plan_reasons.hpp -- why a plan differs from what its
// user may expect: pure functions of the view, so that every peer gives the
// same reasons.
//
// A wish is a key of the run file that asks for a layout, a schedule or copies.
// The planner meets it as far as the members allow; a wish that it does not
// meet is part of the plan, with the cause. So are the members that have
// nothing to do.
//
// Units: bytes, nanoseconds. Cost: linear in members and stages.
#pragma once

#include "runtime/core/planning/followers.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/view.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::core {

struct unheld_wish {
  std::string key; ///< "parallelism.pipeline_parallel_degree"
  std::string wanted;
  std::string got; ///< "2 stages"
  std::string why;
  friend bool operator==(const unheld_wish&, const unheld_wish&) = default;
};

/// Unmet wishes of `a`, which make_plan(v) returned; nothing while the job
/// waits.
[[nodiscard]] std::vector<unheld_wish>
unheld_wishes(const view& v, const assignment& a);

/// "pipeline_parallel_degree = 3: 2 stages, as the model has 2 layers".
[[nodiscard]] std::string to_text(const unheld_wish& w);

/// to_text(v, a) of plan.hpp, with these wishes instead of unheld_wishes(v, a).
[[nodiscard]] std::string to_text(const view& v, const assignment& a,
                                  const std::vector<unheld_wish>& unheld);

/// Why the planner does so.
inline constexpr const char* rare_copies_cause =
  "keeping up with each step would cost more than 2 % of its time";
static_assert(copy_cost_permille == 20);

/// What the loss of a peer may cost where the planner has chosen to copy the
/// state in more than every step (island_place::copy_every); "" otherwise, and if
/// the user has asked for it.
/// @param checkpoint_every steps; 0: there are no checkpoints
[[nodiscard]] std::string
rare_copies_text(const job_entry& job, const island_place& a,
                 std::uint64_t checkpoint_every);

/// The participant whose network a step mostly waits for.
struct slow_network {
  member_id where;
  network_profile network; ///< as measured at its end
  friend bool operator==(const slow_network&, const slow_network&) = default;
};

/// A step counts as slow by the network if it would take less than this share of
/// its predicted time with networks as fast as is assumed of unmeasured ones.
inline constexpr std::uint64_t slow_network_percent = 50;

/// Nothing if no network of a participant of `a` makes its steps slow.
[[nodiscard]] std::optional<slow_network>
slow_network_of(const view& v, job_id job, const island_place& a);

/// "steps mostly wait for the network of b, which carries 1 MB/s (tls)".
[[nodiscard]] std::string to_text(const view& v, const slow_network& slow);

struct idle_member {
  member_id who;
  std::string why; ///< "shares its host's cores with a"
};

/// Members that neither compute nor hold state under `a`, by id; nothing while
/// the job waits.
[[nodiscard]] std::vector<idle_member>
idle_members(const view& v, const assignment& a);

/// Memory of one member that an assignment needs, by kind.
struct memory_kinds {
  std::uint64_t parameters = 0;
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;
  std::uint64_t activations = 0;
  std::uint64_t copies = 0; ///< of others' state, and arriving state
  std::uint64_t sum() const {
    return parameters + gradients + optimizer + activations + copies;
  }
};
[[nodiscard]] std::map<member_id, memory_kinds>
memory_of(const job_entry& job, const island_place& a);

/// Floating-point operations of one step.
[[nodiscard]] std::uint64_t step_flops(const job_entry& job);

/// MFLOP/s of all members that compute under `a`, as measured; the cores of a
/// host count only once.
[[nodiscard]] std::uint64_t mflops_of(const view& v, const island_place& a);

} // namespace shoal::core
