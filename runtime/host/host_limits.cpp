// runtime/host/host_limits.cpp -- control groups, versions 1 and 2, and cores.
#include "runtime/host/host_limits.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace shoal::runtime {

namespace fs = std::filesystem;

namespace {

/// Groups deeper than this are ignored.
constexpr int depth_max = 64;
/// Processors of one host; a higher number is implausible.
constexpr int processors_max = 1 << 16;
/// Version 1 expresses "no limit" by a number near 2^63.
constexpr std::uint64_t memory_no_limit = std::uint64_t{1} << 60;

void tighten(std::uint64_t& limit, std::uint64_t found) {
  if (found > 0)
    limit = limit == 0 ? found : std::min(limit, found);
}

/// Converts the two numbers of a quota; -1 or "max" means no limit.
std::uint64_t milli(long long quota_us, long long period_us) {
  if (quota_us <= 0 || period_us <= 0
      || quota_us > std::numeric_limits<long long>::max() / 1000)
    return 0;
  return std::max<std::uint64_t>(1, std::uint64_t(quota_us * 1000 / period_us));
}

long long number_in(const fs::path& file) {
  std::ifstream in(file);
  long long value = 0;
  return in >> value ? value : 0;
}

/// cpu.max: "MAX PERIOD", where MAX may be "max".
std::uint64_t cpu_max(const fs::path& group) {
  std::ifstream in(group / "cpu.max");
  long long quota = 0;
  long long period = 0;
  return in >> quota >> period ? milli(quota, period) : 0;
}

std::uint64_t cfs_quota(const fs::path& group) {
  return milli(number_in(group / "cpu.cfs_quota_us"),
               number_in(group / "cpu.cfs_period_us"));
}

std::uint64_t bytes_in(const fs::path& file) {
  const long long value = number_in(file);
  return value > 0 && std::uint64_t(value) < memory_no_limit
           ? std::uint64_t(value)
           : 0;
}

/// A line of /proc/meminfo in bytes, within the limit; 0 if there is none.
std::uint64_t memory_of(const fs::path& meminfo, std::string_view line,
                        const host_limits& limits) {
  std::ifstream in(meminfo);
  std::string key, unit;
  for (std::uint64_t kib = 0; in >> key >> kib; std::getline(in, unit))
    if (key == line) {
      const std::uint64_t bytes = std::min(kib, memory_no_limit / 1024) * 1024;
      return limits.memory_bytes == 0 ? bytes
                                      : std::min(bytes, limits.memory_bytes);
    }
  return limits.memory_bytes;
}

/// Parses a list of processors such as "0-3,8,10-11"; empty if it is no such
/// list.
std::set<int> processors_in(const fs::path& file) {
  std::ifstream in(file);
  std::set<int> out;
  for (std::string range; std::getline(in, range, ',');) {
    const char* next = range.data();
    const char* const end = next + range.size();
    const auto number = [&] {
      int value = -1;
      next = std::from_chars(next, end, value).ptr;
      return value;
    };
    const int first = number();
    const int last = next != end && *next == '-' ? (++next, number()) : first;
    if (first < 0 || last < first || last >= processors_max
        || (next != end && *next != '\n'))
      return {};
    for (int processor = first; processor <= last; ++processor)
      out.insert(processor);
  }
  return out;
}

/// The first processor of the core of `processor`, or `processor` itself.
int core_of(int processor, const fs::path& topology) {
  const fs::path folder =
    topology / ("cpu" + std::to_string(processor)) / "topology";
  // Linux before 5.3 used the second name.
  for (const char* name : {"core_cpus_list", "thread_siblings_list"})
    if (const auto core = processors_in(folder / name);
        core.contains(processor))
      return *core.begin();
  return processor;
}

/// Calls `visit` for base/group, its parent, and so on up to base.
template <class Visit>
void upwards(const fs::path& base, const std::string& group, Visit visit) {
  fs::path relative = fs::path(group).relative_path().lexically_normal();
  if (*relative.begin() == "..") // a group outside of our group namespace
    relative.clear();
  for (int depth = 0; depth < depth_max; ++depth) {
    visit(base / relative);
    if (!relative.has_relative_path() || relative == ".")
      return;
    relative = relative.parent_path();
  }
}

} // namespace

host_limits read_host_limits(const fs::path& self, const fs::path& mount) {
  host_limits out;
  std::ifstream in(self);
  for (std::string line; std::getline(in, line);) {
    // hierarchy:controllers:group; version 2 names no controllers
    const std::size_t first = line.find(':');
    const std::size_t second =
      first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string kinds =
      "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (kinds == ",,")
      upwards(mount, group, [&](const fs::path& folder) {
        tighten(out.processors_milli, cpu_max(folder));
        tighten(out.memory_bytes, bytes_in(folder / "memory.max"));
      });
    if (kinds.find(",cpu,") != std::string::npos)
      upwards(mount / "cpu", group, [&](const fs::path& folder) {
        tighten(out.processors_milli, cfs_quota(folder));
      });
    if (kinds.find(",memory,") != std::string::npos)
      upwards(mount / "memory", group, [&](const fs::path& folder) {
        tighten(out.memory_bytes, bytes_in(folder / "memory.limit_in_bytes"));
      });
  }
  return out;
}

std::uint64_t host_memory(const host_limits& limits, const fs::path& meminfo) {
  return memory_of(meminfo, "MemTotal:", limits);
}

std::uint64_t free_memory(const host_limits& limits, const fs::path& meminfo) {
  return memory_of(meminfo, "MemAvailable:", limits);
}

int count_cores(const std::set<int>& processors, const fs::path& topology) {
  std::set<int> cores;
  for (const int processor : processors)
    cores.insert(core_of(processor, topology));
  return int(cores.size());
}

int usable_threads(const host_limits& limits) {
  cpu_set_t set;
  std::set<int> processors;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set))
        processors.insert(i);
  int count = count_cores(processors);
  if (limits.processors_milli > 0) {
    const std::uint64_t whole = (limits.processors_milli + 999) / 1000;
    count = int(std::min<std::uint64_t>(std::uint64_t(count), whole));
  }
  return std::max(1, count);
}

int host_cores(const fs::path& topology) {
  const auto online = processors_in(topology / "online");
  return online.empty() ? int(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)))
                        : count_cores(online, topology);
}

std::uint64_t
within_quota(std::uint64_t rate, int threads, const host_limits& limits) {
  const std::uint64_t wanted = std::uint64_t(std::max(1, threads)) * 1000;
  if (limits.processors_milli == 0 || limits.processors_milli >= wanted)
    return rate;
  return std::max<std::uint64_t>(1, rate / wanted * limits.processors_milli
                                      + rate % wanted * limits.processors_milli
                                          / wanted);
}

} // namespace shoal::runtime
