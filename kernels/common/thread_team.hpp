// kernels/common/thread_team.hpp -- the threads that one CPU device computes with.
//
// A fork-join pool: run() hands numbered tasks to the workers and to the
// calling thread and returns when all have run. Any thread may run any task, so
// a task must write only memory of its own and read nothing that another task
// of the same run writes: then the result does not depend on the number of
// threads.
//
// Threads:   one caller at a time per team; a second caller waits for the
//            first. run() inside a task runs its tasks on that thread, in
//            order.
// Cost:      workers spin for some microseconds after a run, then sleep in
//            the kernel: an idle team uses no CPU.
// Errors:    the constructor and resize() throw std::system_error if no
//            thread can be started.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace shoal::kernels {

/// A fixed set of threads; destroyed only while no run is in progress.
class thread_team {
public:
  /// Upper bound of the size of a team.
  static constexpr unsigned threads_max = 1024;

  /// Starts `threads` - 1 workers; the caller of run() is the other one.
  /// @pre 1 <= threads <= threads_max
  explicit thread_team(unsigned threads = 1);
  ~thread_team();
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;

  unsigned size() const noexcept;
  /// Ends all workers and starts again with another number of threads.
  void resize(unsigned threads);

  /// Calls body(task, worker) for every task in [0, count); `worker` is in
  /// [0, size()) and belongs to one thread for the length of the run.
  template <class Body>
  void run(std::size_t count, Body&& body) {
    using plain = std::remove_reference_t<Body>;
    run_erased(
      count,
      [](void* context, std::size_t task, unsigned worker) {
        (*static_cast<plain*>(context))(task, worker);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
  }

private:
  using task_function = void (*)(void*, std::size_t, unsigned);
  void run_erased(std::size_t count, task_function run, void* context);

  struct state;
  std::unique_ptr<state> state_;
};

} // namespace shoal::kernels
