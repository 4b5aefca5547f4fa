// tests/actors/inline_queue.hpp -- a device queue that runs its work at once, in the
// caller's thread.
#pragma once

#include "kernels/backend.hpp"
#include "runtime/work/device_queue.hpp"

#include <memory>

namespace shoal::test {

struct inline_queue final : runtime::device_queue {
  void submit_pass(segments run, std::function<void()> done, label) override {
    while (run && run(*unused)) {
    }
    if (done)
      done();
  }
  void close() override {}
  std::unique_ptr<kernels::backend> unused = kernels::make_reference_backend();
};

} // namespace shoal::test
