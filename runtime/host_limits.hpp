// runtime/host_limits.hpp -- what the system lets this process use.
//
// Processors are those that the scheduler may give it (affinity), less if a
// control group limits their time: `docker run --cpus 1.5`, a Slurm step, a
// systemd CPUQuota=. Memory likewise. Both kinds of control groups are read,
// from the process's own group up to the root: the tightest counts.
//
// Units:   thousandths of a processor; bytes.
// Threads: any; reads a few small files.
// Errors:  none; what cannot be read does not limit.
#pragma once

#include <cstdint>
#include <filesystem>

namespace shoal::runtime {

struct host_limits {
  std::uint64_t processors_milli = 0; ///< 0: no limit
  std::uint64_t memory_bytes = 0;     ///< 0: no limit
};

/// @param self  which groups we are in: /proc/self/cgroup
/// @param mount where they are: /sys/fs/cgroup
[[nodiscard]] host_limits
read_host_limits(const std::filesystem::path& self = "/proc/self/cgroup",
                 const std::filesystem::path& mount = "/sys/fs/cgroup");

/// Threads that can run at once: at least 1.
[[nodiscard]] int usable_threads(const host_limits& limits);

/// @returns `rate`, which `threads` threads reach without a quota, as it is
///          with it
[[nodiscard]] std::uint64_t
within_quota(std::uint64_t rate, int threads, const host_limits& limits);

} // namespace shoal::runtime
