// runtime/work/device_queue.hpp -- the queue of a device, on which computation
// runs.
//
// Actors never compute. They submit work; the device runs it in order, one
// piece at a time, and posts the results. A CPU device is one thread with its
// team of workers; under the simulator it is a duration.
//
// Threads:   submit() from any thread. Work runs on the device's thread. `done`
//            runs there too, right after its work, and may only post a message.
// Ownership: the queue owns the closures until they have run.
// Cost:      an idle device sleeps.
// Errors:    work must not throw; submit after close() drops the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace shoal::kernels {
class backend;
}

namespace shoal::runtime {

class device_queue {
public:
  virtual ~device_queue() = default; ///< As close().
  using work = std::function<void(kernels::backend&)>;

  /// Queues `run`, then `done`. At most queue_max pieces may wait: more is a
  /// bug. Either function may be empty.
  virtual void submit(work run, std::function<void()> done) = 0;

  /// Start time of the piece that is running, or is next to run; nanoseconds of
  /// the steady clock. 0: the queue is empty.
  virtual std::int64_t busy_since() const { return 0; }

  /// Runs all queued work, then ends the thread. Must not be called from work.
  virtual void close() = 0;

  static constexpr std::size_t queue_max = 65536;
};

/// A CPU device with a total of `threads` workers; 0: one for each processor.
/// `name` is its thread's name, for top and debuggers: at most 15 bytes.
std::unique_ptr<device_queue>
make_cpu_device(int threads, const char* name = "shoal-device");

/// One thread for work that waits for the disk. Its backend is the reference,
/// only because the interface needs one.
std::unique_ptr<device_queue> make_io_device(const char* name = "shoal-disk");

} // namespace shoal::runtime
