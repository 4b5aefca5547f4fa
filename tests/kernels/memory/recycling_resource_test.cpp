// tests/kernels/memory/recycling_resource_test.cpp -- freed arrays are used again,
// and no more are kept than are in use.
#include "kernels/memory/recycling_resource.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <memory_resource>
#include <vector>

BOOST_AUTO_TEST_SUITE(kept_arrays)

using shoal::model::recycling_resource;

namespace {

/// Counts the arrays that are allocated from it.
class counted final : public std::pmr::memory_resource {
public:
  std::size_t taken = 0, bytes = 0;

private:
  void* do_allocate(std::size_t n, std::size_t alignment) override {
    ++taken;
    bytes += n;
    return std::pmr::new_delete_resource()->allocate(n, alignment);
  }
  void do_deallocate(void* p, std::size_t n, std::size_t alignment) override {
    bytes -= n;
    std::pmr::new_delete_resource()->deallocate(p, n, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(an_array_of_the_same_size_is_used_again) {
  const auto below = std::make_shared<counted>();
  recycling_resource m(below);
  void* const stays = m.allocate(4096, 64);
  void* const first = m.allocate(4096, 64);
  m.deallocate(first, 4096, 64);
  BOOST_TEST(m.kept_bytes() == 4096u);
  BOOST_TEST(m.allocate(4096, 64) == first);
  BOOST_TEST(m.kept_bytes() == 0u);
  BOOST_TEST(below->taken == 2u);
  void* const other = m.allocate(4096, 128); // aligned otherwise
  BOOST_TEST(below->taken == 3u);
  m.deallocate(other, 4096, 128);
  m.deallocate(first, 4096, 64);
  m.deallocate(stays, 4096, 64);
  BOOST_TEST(below->bytes == 0u);
}

BOOST_AUTO_TEST_CASE(as_much_is_kept_as_is_in_use) {
  const auto below = std::make_shared<counted>();
  recycling_resource m(below);
  std::vector<void*> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(m.allocate(1000, 64));
  for (int left = 7; left >= 0; --left) {
    m.deallocate(all[std::size_t(left)], 1000, 64);
    BOOST_TEST(m.kept_bytes() <= std::size_t(left) * 1000);
    BOOST_TEST(below->bytes == std::size_t(left) * 1000 + m.kept_bytes());
  }
  BOOST_TEST(below->bytes == 0u);
}

BOOST_AUTO_TEST_CASE(an_owner_may_want_more_kept_than_is_in_use) {
  const auto below = std::make_shared<counted>();
  recycling_resource m(below, 1500);
  void* const a = m.allocate(1000, 64);
  void* const b = m.allocate(600, 64);
  m.deallocate(b, 600, 64);
  BOOST_TEST(m.kept_bytes() == 600u);
  m.deallocate(a, 1000, 64); // the largest goes
  BOOST_TEST(m.kept_bytes() == 600u);
  BOOST_TEST(below->bytes == 600u);
}

BOOST_AUTO_TEST_CASE(all_goes_back_at_the_end) {
  const auto below = std::make_shared<counted>();
  auto m = std::make_unique<recycling_resource>(below);
  void* const a = m->allocate(100, 64);
  void* const b = m->allocate(100, 64);
  m->deallocate(a, 100, 64);
  BOOST_TEST(m->kept_bytes() == 100u);
  m->deallocate(b, 100, 64);
  m.reset();
  BOOST_TEST(below->bytes == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
