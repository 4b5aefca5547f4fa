// runtime/host/host_limits.hpp -- the processors and memory that this process may use.
//
// Processors are those that the scheduler may give it (affinity), or fewer if a
// control group limits their time: `docker run --cpus 1.5`, a Slurm step, a
// systemd CPUQuota=. The same holds for memory. Both versions of control groups
// are read, from the process's own group up to the root; the tightest limit
// counts.
//
// A core may consist of several processors (SMT), which share its vector units:
// one thread of matrix products keeps these busy, and a second one only takes
// cache. So threads are counted by cores.
//
// Units:   thousandths of a processor; bytes.
// Threads: any; reads a few small files.
// Errors:  none; a file that cannot be read sets no limit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>

namespace shoal::runtime {

struct host_limits {
  std::uint64_t processors_milli = 0; ///< 0: no limit
  std::uint64_t memory_bytes = 0;     ///< 0: no limit
};

/// @param self  lists the groups of this process: /proc/self/cgroup
/// @param mount has the groups: /sys/fs/cgroup
[[nodiscard]] host_limits
read_host_limits(const std::filesystem::path& self = "/proc/self/cgroup",
                 const std::filesystem::path& mount = "/sys/fs/cgroup");

/// The memory that this process could ever have: the host's, or the limit of
/// its control group if that is less. 0: not known.
[[nodiscard]] std::uint64_t
host_memory(const host_limits& limits,
            const std::filesystem::path& meminfo = "/proc/meminfo");

/// The part of it that is free now.
[[nodiscard]] std::uint64_t
free_memory(const host_limits& limits,
            const std::filesystem::path& meminfo = "/proc/meminfo");

/// The number of cores that `processors` belong to. A processor whose core the
/// system does not name counts as a core of its own.
/// @param topology names the cores: /sys/devices/system/cpu
[[nodiscard]] int
count_cores(const std::set<int>& processors,
            const std::filesystem::path& topology = "/sys/devices/system/cpu");

/// The number of threads for computation: the cores that this process may use,
/// or fewer within its quota; at least 1.
[[nodiscard]] int usable_threads(const host_limits& limits);

/// The cores of the whole host: at least 1.
[[nodiscard]] int
host_cores(const std::filesystem::path& topology = "/sys/devices/system/cpu");

/// Reduces `rate`, which `threads` threads reach without a quota, to the quota.
/// @returns the rate with the quota
[[nodiscard]] std::uint64_t
within_quota(std::uint64_t rate, int threads, const host_limits& limits);

} // namespace shoal::runtime
