// runtime/observe/training_operations.cpp -- each calls the function of its
// name.
#include "runtime/observe/training_operations.hpp"

#include "runtime/core/training/data_order.hpp"

namespace shoal::runtime {

core::job_actions
training_operations::step(core::job_core& core, const core::job_input& in,
                          core::nanoseconds now) {
  return core.step(in, now);
}

std::uint64_t
training_operations::sample(const core::data_order& order, std::uint64_t step,
                            std::uint32_t index) {
  return order.sample(step, index);
}

void training_operations::apply(model::unit_state& unit,
                                kernels::backend& device,
                                const kernels::adamw_options& options) {
  model::apply(unit, device, options);
}

void training_operations::initialise(model::unit_state& unit,
                                     std::uint64_t seed) {
  model::initialise(unit, seed);
}

void training_operations::copy_in(model::unit_state&,
                                  const std::function<void()>& copy) {
  copy();
}

model::status
training_operations::load(model::unit_state&,
                          const std::function<model::status()>& read) {
  return read();
}

training_operations& plain_operations() {
  static training_operations plain;
  return plain;
}

} // namespace shoal::runtime
