// tests/runtime/host/host_limits_test.cpp -- control groups and cores
// in a folder.
#include "runtime/host/host_limits.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace limits_of_the_host {

using namespace shoal::runtime;
namespace fs = std::filesystem;

namespace {

struct groups {
  shoal::test::folder home;
  fs::path root = home.path;

  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  host_limits read(const std::string& self) const {
    put("self", self);
    return read_host_limits(root / "self", root / "fs");
  }
  int cores(const std::set<int>& processors) const {
    return count_cores(processors, root / "cpu");
  }
};

} // namespace

} // namespace limits_of_the_host

BOOST_FIXTURE_TEST_SUITE(limits_of_the_host, limits_of_the_host::groups)

BOOST_AUTO_TEST_CASE(the_tightest_group_above_counts) {
  put("fs/a/cpu.max", "max 100000\n");
  put("fs/a/b/cpu.max", "150000 100000\n");
  put("fs/a/b/c/cpu.max", "400000 100000\n");
  put("fs/a/memory.max", "1073741824\n");
  put("fs/a/b/memory.max", "max\n");
  const host_limits l = read("0::/a/b/c\n");
  BOOST_TEST(l.processors_milli == 1500u);
  BOOST_TEST(l.memory_bytes == 1073741824u);
}

BOOST_AUTO_TEST_CASE(memory_of_the_host_is_at_most_the_groups) {
  put("meminfo", "MemTotal:       2097152 kB\nMemFree:        1000 kB\n"
                 "MemAvailable:   1048576 kB\n");
  const fs::path meminfo = root / "meminfo";
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  host_limits l;
  BOOST_TEST(host_memory(l, meminfo) == 2 * gib);
  BOOST_TEST(free_memory(l, meminfo) == gib);
  l.memory_bytes = gib / 2;
  BOOST_TEST(host_memory(l, meminfo) == gib / 2);
  BOOST_TEST(free_memory(l, meminfo) == gib / 2);
  BOOST_TEST(host_memory({}, root / "none") == 0u);
}

BOOST_AUTO_TEST_CASE(version_1_has_a_hierarchy_for_each) {
  put("fs/cpu/x/cpu.cfs_quota_us", "25000\n");
  put("fs/cpu/x/cpu.cfs_period_us", "50000\n");
  put("fs/memory/y/memory.limit_in_bytes", "9223372036854771712\n");
  const host_limits l = read("4:memory:/y\n1:cpu,cpuacct:/x\n0::/\n");
  BOOST_TEST(l.processors_milli == 500u);
  BOOST_TEST(l.memory_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(invalid_limits_do_not_limit) {
  put("fs/cpu.max", "-5 100000");
  put("fs/g/cpu.max", "lots of it");
  for (const char* self :
       {"", "\n::\n", "0::/g", "0::/../../g", "0::", "no colons", "0::/gone"})
    BOOST_TEST(read(self).processors_milli == 0u, self);
  BOOST_TEST(read_host_limits(root / "none", root).processors_milli == 0u);
}

BOOST_AUTO_TEST_CASE(a_quota_scales_what_threads_reach) {
  BOOST_TEST(within_quota(1000, 1, {}) == 1000u);
  BOOST_TEST(within_quota(1000, 1, {500, 0}) == 500u);
  BOOST_TEST(within_quota(1000, 2, {500, 0}) == 250u);
  BOOST_TEST(within_quota(1000, 1, {1500, 0}) == 1000u);
  BOOST_TEST(within_quota(std::uint64_t{1} << 60, 4, {1000, 0})
             == std::uint64_t{1} << 58);
  BOOST_TEST(usable_threads({1, 0}) == 1);
  BOOST_TEST(usable_threads({1000, 0}) == 1);
  BOOST_TEST(usable_threads({}) >= 1);
}

BOOST_AUTO_TEST_CASE(processors_of_one_core_count_once) {
  // Two cores of two: 0 with 4, as Linux usually numbers them, and 1 with 5.
  for (const char* name : {"core_cpus_list", "thread_siblings_list"}) {
    fs::remove_all(root / "cpu");
    for (const auto& [processor, core] : std::map<int, const char*>{
           {0, "0,4\n"}, {4, "0,4\n"}, {1, "1,5\n"}, {5, "1,5\n"}})
      put("cpu/cpu" + std::to_string(processor) + "/topology/" + name, core);
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(cores({0, 1, 4, 5}) == 2);
      BOOST_TEST(cores({0, 4}) == 1);
      BOOST_TEST(cores({0, 1}) == 2);
      BOOST_TEST(cores({4}) == 1); // half of a pair
      BOOST_TEST(cores({1, 4}) == 2);
      BOOST_TEST(cores({0, 1, 4}) == 2);
      BOOST_TEST(cores({}) == 0);
    }
  }
  // Four of one core, side by side, and how a range is written.
  for (int processor = 8; processor != 12; ++processor)
    put("cpu/cpu" + std::to_string(processor) + "/topology/core_cpus_list",
        "8-11");
  BOOST_TEST(cores({8, 9, 10, 11}) == 1);
  BOOST_TEST(cores({0, 9, 11}) == 2);
}

BOOST_AUTO_TEST_CASE(a_processor_of_an_unknown_core_is_a_core) {
  BOOST_TEST(cores({0, 1, 2}) == 3); // there is nothing at all
  for (const char* nonsense :
       {"", "\n", "none", "1", "-1", "0-", "-", "0,", ",0", "0,,1", "1-0",
        "0-99999999999999999999", "0-2000000000", "0x1", "0 1", "0;1"}) {
    for (int processor = 0; processor != 2; ++processor)
      put("cpu/cpu" + std::to_string(processor) + "/topology/core_cpus_list",
          nonsense);
    BOOST_TEST(cores({0, 1}) == 2, nonsense);
  }
  // What only the older name says.
  put("cpu/cpu0/topology/thread_siblings_list", "0-1");
  put("cpu/cpu1/topology/thread_siblings_list", "0-1");
  BOOST_TEST(cores({0, 1}) == 1);
}

BOOST_AUTO_TEST_CASE(a_host_has_the_cores_that_are_on) {
  for (int processor = 0; processor != 4; ++processor)
    put("cpu/cpu" + std::to_string(processor) + "/topology/core_cpus_list",
        processor % 2 == 0 ? "0,2" : "1,3");
  put("cpu/online", "0-3\n");
  BOOST_TEST(host_cores(root / "cpu") == 2);
  put("cpu/online", "0,2\n");
  BOOST_TEST(host_cores(root / "cpu") == 1);
  for (const char* nonsense : {"", "all of them"}) {
    put("cpu/online", nonsense);
    BOOST_TEST(host_cores(root / "cpu") >= 1);
  }
  BOOST_TEST(host_cores() >= usable_threads({}));
}

BOOST_AUTO_TEST_SUITE_END()
