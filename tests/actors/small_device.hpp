// tests/actors/small_device.hpp -- a device that computes at once, and memory that
// is counted.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <memory_resource>

namespace shoal::test {

/// Runs work where it is submitted.
class inline_device : public runtime::device_queue {
public:
  inline_device() : backend_(kernels::make_cpu_backend(team_)) {}
  void
  submit_pass(segments run, std::function<void()> done, label what) override {
    while (run && run(*backend_))
      if (between && what.how == runtime::urgency::usual)
        between(what.job);
    if (done)
      done();
  }
  void close() override {}
  /// Called between two segments of a usual pass, where urgent work may run.
  std::function<void(core::job_id)> between;

private:
  kernels::thread_team team_{1};
  std::unique_ptr<kernels::backend> backend_;
};

/// Counts what is in use.
class counting_memory : public std::pmr::memory_resource {
public:
  std::size_t most() const { return most_; }

private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    used_ += bytes;
    most_ = std::max(most_, used_);
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void
  do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
    used_ -= bytes;
    std::pmr::new_delete_resource()->deallocate(p, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::size_t used_ = 0;
  std::size_t most_ = 0;
};

} // namespace shoal::test
