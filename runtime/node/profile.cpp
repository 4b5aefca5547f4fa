// runtime/node/profile.cpp -- measures a processor, once per machine.
#include "runtime/node/profile.hpp"

#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"
#include "runtime/core/view.hpp"
#include "runtime/files/file.hpp"
#include "runtime/files/home_folder.hpp"
#include "runtime/host/host_limits.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

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

/// Half of the free memory, in whole multiples of 256 MiB.
static std::uint64_t half_in_steps(std::uint64_t bytes) {
  return std::max(256 * mib, bytes / 2 / (256 * mib) * (256 * mib));
}

namespace {

/// Measured rates: products in MFLOP/s, memory in MB/s.
struct rates {
  std::uint64_t mflops = 0;
  std::uint64_t mbps = 0;
};

/// The median time of `work`, repeated for `budget`, in seconds: jobs run in
/// the machine's usual state, not in its best.
template <class Work>
double usual_time(std::chrono::milliseconds budget, Work work) {
  using clock = std::chrono::steady_clock;
  const clock::time_point end = clock::now() + budget;
  std::vector<double> times;
  do {
    const clock::time_point start = clock::now();
    work();
    times.push_back(
      std::chrono::duration<double>(clock::now() - start).count());
  } while (clock::now() < end);
  const auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return std::max(*middle, 1e-9);
}

/// Products of activations and weights in the sizes of small models, each kind
/// once in a round; the weights of all rounds do not fit in the caches.
std::uint64_t measure_mflops(kernels::backend& device) {
  constexpr std::size_t tokens = 256, inputs = 384, outputs = 1024, sets = 6;
  std::vector<float> x(tokens * inputs, 0.5F), dx(tokens * inputs);
  std::vector<float> y(tokens * outputs, 0.25F), dy(tokens * outputs, 0.5F);
  std::vector<float> w(sets * outputs * inputs, 0.125F);
  const kernels::matrix_view<float> y_TO(y.data(), tokens, outputs);
  const kernels::matrix_view<float> dx_TI(dx.data(), tokens, inputs);
  const kernels::matrix_view<const float> x_TI(x.data(), tokens, inputs);
  const kernels::matrix_view<const float> dy_TO(dy.data(), tokens, outputs);
  std::size_t set = 0;
  auto round = [&] {
    float* at = w.data() + set++ % sets * outputs * inputs;
    const kernels::matrix_view<float> w_OI(at, outputs, inputs);
    device.matmul(y_TO, x_TI, w_OI);
    device.matmul_input_gradient(dx_TI, dy_TO, w_OI);
    device.matmul_weight_gradient(w_OI, dy_TO, x_TI);
  };
  round(); // first use sets things up
  const double seconds = usual_time(std::chrono::milliseconds(120), round);
  return static_cast<std::uint64_t>(6.0 * tokens * inputs * outputs / seconds
                                    / 1e6);
}

std::uint64_t measure_mbps(kernels::backend& device) {
  constexpr std::size_t rows = 64, columns = std::size_t{1} << 17; // 32 MiB
  std::vector<float> a(rows * columns, 0.5F), b(rows * columns, 0.25F);
  const kernels::matrix_view<float> a_TD(a.data(), rows, columns);
  const kernels::matrix_view<const float> b_TD(b.data(), rows, columns);
  const double seconds = usual_time(std::chrono::milliseconds(60),
                                    [&] { device.add(a_TD, a_TD, b_TD); });
  return static_cast<std::uint64_t>(3.0 * sizeof(float) * rows * columns
                                    / seconds / 1e6);
}

rates measure(int threads) {
  kernels::thread_team team(static_cast<unsigned>(threads));
  auto device = kernels::make_cpu_backend(team);
  return {std::max<std::uint64_t>(1, measure_mflops(*device)),
          std::max<std::uint64_t>(1, measure_mbps(*device))};
}

} // namespace

static fs::path cache_dir() {
  const fs::path cache = xdg_folder("XDG_CACHE_HOME", ".cache");
  return cache.empty() ? cache : cache / "shoal";
}

/// The stored rates; measured under a lock if there are none. An unusable cache
/// only costs a measurement.
static rates remembered(const std::string& processor, int threads) {
  fs::path folder = cache_dir();
  std::error_code error;
  if (folder.empty()
      || (fs::create_directories(folder, error), !fs::is_directory(folder)))
    return measure(threads);
  fs::path file = folder / ("rates-" + std::to_string(threads) + ".txt");
  unique_fd lock =
    posix::open_regular(folder / "measure.lock", O_RDWR | O_CREAT, error);
  if (lock && ::flock(lock.get(), LOCK_EX) != 0)
    lock.reset();
  std::vector<std::byte> bytes;
  if (!read_file(file, 4096, bytes)) {
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::size_t end = text.find('\n');
    if (end != std::string::npos && text.substr(0, end) == processor) {
      char* rest = nullptr;
      rates known;
      known.mflops = std::strtoull(text.c_str() + end + 1, &rest, 10);
      known.mbps = std::strtoull(rest, nullptr, 10);
      constexpr std::uint64_t most = std::uint64_t{1} << 40;
      if (known.mflops > 0 && known.mflops < most && known.mbps > 0
          && known.mbps < most)
        return known;
    }
  }
  const rates value = measure(threads);
  std::string text = processor + "\n" + std::to_string(value.mflops) + "\n"
                     + std::to_string(value.mbps) + "\n";
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
  out.host_memory_bytes = host_memory(limits);
  out.memory_is_share = memory_bytes == 0;
  out.memory_bytes =
    memory_bytes > 0 ? memory_bytes : half_in_steps(free_memory(limits));
  out.host_threads = static_cast<std::uint32_t>(host_cores());
  const rates found =
    mflops > 0 ? rates{mflops, 0} : remembered(out.name, count);
  out.mflops =
    quantised(mflops > 0 ? mflops : within_quota(found.mflops, count, limits));
  out.stream_mbps = quantised(within_quota(found.mbps, count, limits));
  return out;
}

} // namespace shoal::runtime
