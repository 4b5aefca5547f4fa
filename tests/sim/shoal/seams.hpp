// tests/sim/shoal/seams.hpp -- observes training, and replaces the clocks.
//
// A node's actors train by operations of their context. The operations here
// call the product's, report to the history, and contain some of the mutants.
// Each use is counted: if actors no longer use one, every_seam_is_passed fails.
#pragma once

#include "runtime/observe/training_operations.hpp"

#include <cstddef>
#include <cstdint>

namespace shoal::sim {

class shoal_world;

enum class seam : std::uint8_t {
  step,
  apply,
  initialise,
  copy_in,
  load,
  sample
};
inline constexpr std::size_t seams_count = 6;

/// Since the start of the program.
std::uint64_t seam_hits(seam s);

/// The operations of one process for an island; observed only while the process is active,
/// not when a dead one is destroyed.
class watched_operations final : public runtime::training_operations {
public:
  watched_operations(shoal_world& world, int node, const core::island_id& id)
    : world_(world), node_(node), id_(id) {}

  core::job_actions step(core::job_core& core, const core::job_input& in,
                         core::nanoseconds now) override;
  std::uint64_t sample(const core::data_order& order, std::uint64_t step,
                       std::uint32_t index) override;
  void apply(model::unit_state& unit, kernels::backend& device,
             const kernels::adamw_options& options) override;
  void initialise(model::unit_state& unit, std::uint64_t seed) override;
  void
  copy_in(model::unit_state& unit, const std::function<void()>& copy) override;
  model::status load(model::unit_state& unit,
                     const std::function<model::status()>& read) override;

private:
  bool at_work() const;
  void unit_is(model::unit_state& unit);

  shoal_world& world_;
  int node_;
  core::island_id id_;
};

} // namespace shoal::sim
