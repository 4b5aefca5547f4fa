// runtime/host_limits.hpp -- what the system lets this process use.
//
// Processors are those that the scheduler may give it (affinity), less if a
// control group limits their time: `docker run --cpus 1.5`, a Slurm step, a
// systemd CPUQuota=. Memory likewise. Both kinds of control groups are read,
// from the process's own group up to the root: the tightest counts.
//
// A core may be several processors (SMT), which share its units for vectors:
// one thread of matrix products keeps them busy, a second one only takes its
// caches. So threads are counted by cores.
//
// Units:   thousandths of a processor; bytes.
// Threads: any; reads a few small files.
// Errors:  none; what cannot be read does not limit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>

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

/// All memory that this process could ever have: the host's, or less within
/// its control group. 0: not known.
[[nodiscard]] std::uint64_t
host_memory(const host_limits& limits,
            const std::filesystem::path& meminfo = "/proc/meminfo");

/// What of it is free now, likewise.
[[nodiscard]] std::uint64_t
free_memory(const host_limits& limits,
            const std::filesystem::path& meminfo = "/proc/meminfo");

/// The cores that `processors` are of. One of which the system does not say it
/// counts as a core of its own.
/// @param topology where it says so: /sys/devices/system/cpu
[[nodiscard]] int
count_cores(const std::set<int>& processors,
            const std::filesystem::path& topology = "/sys/devices/system/cpu");

/// Threads for computation: as many as cores that this process may use, or
/// fewer within its quota; at least 1.
[[nodiscard]] int usable_threads(const host_limits& limits);

/// The cores of the whole host: at least 1.
[[nodiscard]] int
host_cores(const std::filesystem::path& topology = "/sys/devices/system/cpu");

/// @returns `rate`, which `threads` threads reach without a quota, as it is
///          with it
[[nodiscard]] std::uint64_t
within_quota(std::uint64_t rate, int threads, const host_limits& limits);

} // namespace shoal::runtime
