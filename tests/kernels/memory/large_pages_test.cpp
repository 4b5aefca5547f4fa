// tests/kernels/memory/large_pages_test.cpp -- memory of any size, to its last
// byte.
#include "kernels/memory/large_pages.hpp"
#include "kernels/memory/prefault_resource.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

BOOST_AUTO_TEST_SUITE(large_page_memory)

using shoal::model::large_page_resource;
using shoal::model::large_pages;
namespace bdata = boost::unit_test::data;

namespace {

constexpr std::size_t limit = large_page_resource::large_bytes;
const std::size_t sizes[] = {1, 64, limit - 1, limit, limit + 1, 3 * limit};

/// The flags of the mapping that `address` is in, as the kernel says them.
std::string flags_of(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto at = std::uintptr_t(address);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2)
      inside = first <= at && at < last;
    else if (inside && line.starts_with("VmFlags:"))
      return line;
  }
  return {};
}

} // namespace

BOOST_DATA_TEST_CASE(every_byte_can_be_used, bdata::make(sizes), bytes) {
  for (const std::size_t alignment : {std::size_t{16}, std::size_t{64}}) {
    void* const p = large_pages()->allocate(bytes, alignment);
    BOOST_TEST(std::uintptr_t(p) % alignment == 0u);
    std::memset(p, 0x5a, bytes);
    BOOST_TEST(static_cast<unsigned char*>(p)[bytes - 1] == 0x5a);
    large_pages()->deallocate(p, bytes, alignment);
  }
}

/// "hg": the kernel has been asked for large pages there.
BOOST_AUTO_TEST_CASE(large_pages_are_asked_for_large_arrays_alone) {
  void* const large = large_pages()->allocate(limit, 64);
  const std::string flags = flags_of(large);
  if (flags.empty())
    BOOST_TEST_MESSAGE("the kernel does not say");
  else
    BOOST_TEST(flags.find(" hg") != std::string::npos);
  large_pages()->deallocate(large, limit, 64);
}

BOOST_AUTO_TEST_CASE(an_end_that_fills_no_large_page_takes_none) {
  const std::size_t bytes = limit + 1000;
  for (auto* from : {static_cast<std::pmr::memory_resource*>(large_pages()),
                     shoal::model::prefaulted_pages()}) {
    auto* const p = static_cast<char*>(from->allocate(bytes, 64));
    const std::string end = flags_of(p + bytes - 1);
    if (end.empty())
      BOOST_TEST_MESSAGE("the kernel does not say");
    else
      BOOST_TEST(end.find(" hg") == std::string::npos);
    from->deallocate(p, bytes, 64);
  }
}

BOOST_AUTO_TEST_SUITE_END()
