// runtime/node/status/node_resources.cpp -- asks the system.
#include "runtime/node/status/node_resources.hpp"

#include "runtime/store/store.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace shoal::runtime {
namespace {

double process_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return double(t.tv_sec) + double(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::uint64_t process_memory() {
  std::uint64_t all = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> all >> pages;
  return pages * std::uint64_t(::sysconf(_SC_PAGESIZE));
}

} // namespace

node_resources resources_now(const store& files) {
  return {process_seconds(), process_memory(), files.used_bytes(),
          files.room().to_fill()};
}

} // namespace shoal::runtime
