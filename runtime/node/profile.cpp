// runtime/node/profile.cpp -- measuring a processor, once per machine.
#include "runtime/node/profile.hpp"

#include "kernels/backend.hpp"
#include "kernels/thread_team.hpp"
#include "runtime/host_limits.hpp"
#include "runtime/node/file.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

namespace shoal::runtime {

namespace fs = std::filesystem;

static constexpr std::uint64_t mib = std::uint64_t{1} << 20;

std::uint64_t quantised(std::uint64_t value) {
  if (value < 16)
    return value;
  int shift = static_cast<int>(std::bit_width(value)) - 4;
  std::uint64_t half = std::uint64_t{1} << (shift - 1);
  return ((value + half) >> shift) << shift;
}

std::string boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  in >> id;
  return id.substr(0, 64);
}

static std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line))
    if (line.rfind("model name", 0) == 0) {
      std::size_t at = line.find(": ");
      std::string name = at == std::string::npos ? "" : line.substr(at + 2);
      for (char& c : name)
        if (static_cast<unsigned char>(c) < 32 || c == 127)
          c = ' ';
      return name.substr(0, 100);
    }
  return "cpu";
}

/// Half of what is free, in whole 256 MiB.
static std::uint64_t half_in_steps(std::uint64_t bytes) {
  return std::max(256 * mib, bytes / 2 / (256 * mib) * (256 * mib));
}

static std::uint64_t usable_memory(const host_limits& limits) {
  std::ifstream in("/proc/meminfo");
  std::string key;
  std::string unit;
  std::uint64_t kib = 0;
  while (in >> key >> kib) {
    if (key == "MemAvailable:")
      return half_in_steps(limits.memory_bytes == 0
                             ? kib * 1024
                             : std::min(kib * 1024, limits.memory_bytes));
    std::getline(in, unit);
  }
  return 256 * mib;
}

/// Matrix products of a size that fits caches, for a tenth of a second; the
/// best rate counts, since others may run.
static std::uint64_t measure_mflops(int threads) {
  using clock = std::chrono::steady_clock;
  constexpr std::size_t n = 384;
  kernels::thread_team team(static_cast<unsigned>(threads));
  auto backend = kernels::make_cpu_backend(team);
  std::vector<float> a(n * n, 0.5F);
  std::vector<float> b(n * n, 0.25F);
  std::vector<float> c(n * n);
  kernels::matrix_view<float> y(c.data(), n, n);
  kernels::matrix_view<const float> x(a.data(), n, n);
  kernels::matrix_view<const float> w(b.data(), n, n);
  backend->matmul(y, x, w); // first use sets things up
  clock::time_point end = clock::now() + std::chrono::milliseconds(80);
  double best = 0;
  while (clock::now() < end) {
    clock::time_point start = clock::now();
    backend->matmul(y, x, w);
    double seconds =
      std::chrono::duration<double>(clock::now() - start).count();
    best = std::max(best, 2.0 * n * n * n / std::max(seconds, 1e-9));
  }
  return static_cast<std::uint64_t>(best / 1e6);
}

static fs::path cache_dir() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache && *cache)
    return fs::path(cache) / "shoal";
  if (home && *home)
    return fs::path(home) / ".cache" / "shoal";
  return {};
}

/// The remembered speed; measured under a lock if there is none. A cache that
/// cannot be used costs a measurement and nothing else.
static std::uint64_t
remembered_mflops(const std::string& processor, int threads) {
  fs::path folder = cache_dir();
  std::error_code error;
  if (folder.empty()
      || (fs::create_directories(folder, error), !fs::is_directory(folder)))
    return measure_mflops(threads);
  fs::path file = folder / ("cpu-" + std::to_string(threads) + ".txt");
  unique_fd lock(::open((folder / "measure.lock").c_str(),
                        O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock && ::flock(lock.get(), LOCK_EX) != 0)
    lock.reset();
  std::vector<std::byte> bytes;
  if (!read_file(file, 4096, bytes)) {
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::size_t end = text.find('\n');
    if (end != std::string::npos && text.substr(0, end) == processor) {
      std::uint64_t known = std::strtoull(text.c_str() + end + 1, nullptr, 10);
      if (known > 0 && known < std::uint64_t{1} << 40)
        return known;
    }
  }
  std::uint64_t value = std::max<std::uint64_t>(1, measure_mflops(threads));
  std::string text = processor + "\n" + std::to_string(value) + "\n";
  (void)replace_file(file, std::as_bytes(std::span(text)));
  return value;
}

core::device_profile
measure_profile(int threads, std::uint64_t memory_bytes, std::uint64_t mflops) {
  core::device_profile out;
  const host_limits limits = read_host_limits();
  int count = threads > 0 ? std::min(threads, 1024) : usable_threads(limits);
  out.name = processor_name();
  out.threads = static_cast<std::uint32_t>(count);
  out.memory_bytes = memory_bytes > 0 ? memory_bytes : usable_memory(limits);
  out.mflops =
    quantised(mflops > 0 ? mflops
                         : within_quota(remembered_mflops(out.name, count),
                                        count, limits));
  return out;
}

} // namespace shoal::runtime
