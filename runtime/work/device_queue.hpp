// runtime/work/device_queue.hpp -- the queue of a device, on which computation
// runs.
//
// Actors never compute. They submit work; the device runs it, one piece at a
// time, and posts the results. A CPU device is one thread with its team of
// workers; under the simulator it is a duration. A piece that takes long is a
// pass: it runs in segments, and gives the device back between two of them if
// urgent work waits.
//
// D-1: urgent work goes before usual work. A usual pass gives the device back
//      after the segment in which urgent work was submitted; on a processor
//      usual work also lets it run between two calls of kernels, and while such
//      work comes, long calls are cut into pieces of 20 ms (cut_backend.hpp). So
//      urgent work waits for one of these at most, and for the urgent work
//      before it.
// D-2: work of one class begins in the order in which it was submitted.
// D-3: a pass that has given the device back goes on before other usual work
//      begins. So usual work has its effects in the same order as without any
//      urgent work.
//
// D-4: urgent work reads and writes nothing that usual work writes.
//
// Not promised: that usual work ever runs while urgent work keeps coming. Its
// senders have to limit it.
//
// Threads:   submit() from any thread. Work runs on the device's thread. `done`
//            runs there too, right after its work, and may only post a message.
// Ownership: the queue owns the closures until they have run.
// Cost:      an idle device sleeps. A pass costs no more than a piece of work
//            if nothing urgent comes, but for a lock between segments.
// Errors:    work must not throw; submit after close() drops the work.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace shoal::kernels {
class backend;
}

namespace shoal::runtime {

/// Which work goes first (D-1).
enum class urgency : std::uint8_t { usual, urgent };

struct work_label {
  core::job_id job = 0; ///< whose work it is; 0: no job's
  urgency how = urgency::usual;
};

class device_queue {
public:
  virtual ~device_queue() = default; ///< As close().
  using work = std::function<void(kernels::backend&)>;
  /// Runs the next segment of a pass. @returns whether another one follows
  using segments = std::function<bool(kernels::backend&)>;

  using label = work_label;

  /// Queues `run`, then `done`. At most queue_max pieces may wait: more is a
  /// bug. Either function may be empty.
  void submit(work run, std::function<void()> done, label what = {}) {
    segments once;
    if (run)
      once = [run = std::move(run)](kernels::backend& backend) {
        run(backend);
        return false;
      };
    submit_pass(std::move(once), std::move(done), what);
  }

  /// The same of a pass, which is one piece; `done` runs after its last
  /// segment.
  virtual void
  submit_pass(segments run, std::function<void()> done, label what) = 0;

  /// The piece that is running, or is next to run.
  struct piece_in_front {
    std::int64_t since = 0; ///< when it came to the front, or has come back to
                            ///< it; nanoseconds of the steady clock. 0: there
                            ///< is none
    core::job_id job = 0;
  };
  virtual piece_in_front front() const { return {}; }

  /// Since when the queue is busy with a piece. 0: it is empty.
  std::int64_t busy_since() const { return front().since; }
  /// The same of a piece of that job's work. 0: it is empty, or busy with other
  /// work.
  std::int64_t busy_since(core::job_id job) const {
    const piece_in_front now = front();
    return now.job == job ? now.since : 0;
  }

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
