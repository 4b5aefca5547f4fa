// tests/kernels/memory/prefault_resource_test.cpp -- memory of any size, to its last
// byte.
#include "kernels/memory/prefault_resource.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>
#include <span>

BOOST_AUTO_TEST_SUITE(prefaulted_memory)

using shoal::model::prefault_resource;
using shoal::model::prefaulted_pages;
namespace bdata = boost::unit_test::data;

namespace {

constexpr std::size_t limit = prefault_resource::large_bytes;
const std::size_t sizes[] = {1, 64, limit - 1, limit, limit + 1, 9 * limit + 5};

} // namespace

BOOST_DATA_TEST_CASE(all_of_an_array_can_be_used, bdata::make(sizes), bytes) {
  void* held[3];
  for (std::size_t i = 0; i < std::size(held); ++i) {
    held[i] = prefaulted_pages()->allocate(bytes, 64);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(held[i]) % 64 == 0u);
    std::memset(held[i], int(i + 1), bytes);
  }
  for (std::size_t i = 0; i < std::size(held); ++i) {
    const std::span all{static_cast<const char*>(held[i]), bytes};
    BOOST_TEST(
      std::ranges::all_of(all, [&](char c) { return c == char(i + 1); }));
    prefaulted_pages()->deallocate(held[i], bytes, 64);
  }
}

BOOST_AUTO_TEST_CASE(a_stricter_alignment_is_kept) {
  constexpr std::size_t alignment = 2 * prefault_resource::page_bytes;
  void* const p = prefaulted_pages()->allocate(limit, alignment);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(p) % alignment == 0u);
  prefaulted_pages()->deallocate(p, limit, alignment);
}

BOOST_AUTO_TEST_CASE(an_impossible_size_is_refused) {
  BOOST_CHECK_THROW(
    static_cast<void>(prefaulted_pages()->allocate(std::size_t{1} << 60, 64)),
    std::bad_alloc);
}

BOOST_AUTO_TEST_SUITE_END()
