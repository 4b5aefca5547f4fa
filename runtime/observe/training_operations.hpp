// runtime/observe/training_operations.hpp -- the operations that determine the
// result of a run, as actors call them.
//
// A node's actors call them by their context. In the product each one calls the
// function of its name, and nothing else. The simulation observes each call:
// its input, its output, and the state of a unit afterwards.
//
// Threads: the caller's. step() and sample() are called by actors, the others
//          by work on the device queue.
// Cost:    a virtual call for a step of a job's core, an operation on a whole
//          unit, or a sample.
#pragma once

#include "runtime/core/training/job/job_core.hpp"
#include "runtime/model/unit_state.hpp"

#include <cstdint>
#include <functional>

namespace shoal::core {
class data_order;
}

namespace shoal::runtime {

class training_operations {
public:
  virtual ~training_operations() = default;

  /// A step of a job's core.
  virtual core::job_actions
  step(core::job_core& core, const core::job_input& in, core::nanoseconds now);

  /// The window of a training sample.
  virtual std::uint64_t sample(const core::data_order& order,
                               std::uint64_t step, std::uint32_t index);

  /// One step of the optimizer.
  virtual void apply(model::unit_state& unit, kernels::backend& device,
                     const kernels::adamw_options& options);

  /// The unit's state at step 0.
  virtual void initialise(model::unit_state& unit, std::uint64_t seed);

  /// `copy` puts state into the unit that has come from a peer, or was kept
  /// here.
  virtual void
  copy_in(model::unit_state& unit, const std::function<void()>& copy);

  /// `read` puts state of a checkpoint into the unit.
  virtual model::status
  load(model::unit_state& unit, const std::function<model::status()>& read);
};

/// The operations of the product.
training_operations& plain_operations();

} // namespace shoal::runtime
