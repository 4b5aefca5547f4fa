// tests/actors/simulated_time.hpp -- the core of a job knows no other time than
// that which the test lets pass.
#pragma once

#include "runtime/observe/training_operations.hpp"

#include <caf/actor_clock.hpp>

#include <chrono>

namespace shoal::test {

class simulated_time final : public runtime::training_operations {
public:
  explicit simulated_time(caf::actor_clock& clock) : clock_(clock) {}
  core::job_actions step(core::job_core& core, const core::job_input& in,
                         core::nanoseconds) override {
    const std::chrono::nanoseconds now = clock_.now().time_since_epoch();
    return training_operations::step(core, in, now.count());
  }

private:
  caf::actor_clock& clock_;
};

} // namespace shoal::test
