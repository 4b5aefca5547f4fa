// tests/runtime/services/host_limits_test.cpp -- control groups in a folder.
#include "runtime/host_limits.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <fstream>
#include <string>

using namespace shoal::runtime;
namespace fs = std::filesystem;

namespace {

struct groups {
  fs::path root;
  groups() {
    std::string name = (fs::temp_directory_path() / "shoal-groups-XXXXXX");
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    root = name;
  }
  ~groups() { fs::remove_all(root); }

  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  host_limits read(const std::string& self) const {
    put("self", self);
    return read_host_limits(root / "self", root / "fs");
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(limits_of_the_host, groups)

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

BOOST_AUTO_TEST_CASE(version_1_has_a_hierarchy_for_each) {
  put("fs/cpu/x/cpu.cfs_quota_us", "25000\n");
  put("fs/cpu/x/cpu.cfs_period_us", "50000\n");
  put("fs/memory/y/memory.limit_in_bytes", "9223372036854771712\n");
  const host_limits l = read("4:memory:/y\n1:cpu,cpuacct:/x\n0::/\n");
  BOOST_TEST(l.processors_milli == 500u);
  BOOST_TEST(l.memory_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_does_not_limit) {
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

BOOST_AUTO_TEST_SUITE_END()
