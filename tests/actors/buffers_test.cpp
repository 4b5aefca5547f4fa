// tests/actors/buffers_test.cpp -- buffers that are used again.
#include "actors/training/buffers.hpp"

#include <boost/test/unit_test.hpp>

#include <map>

BOOST_AUTO_TEST_SUITE(buffers)

using namespace shoal;
using actors::buffer;
using actors::buffer_pool;

namespace {

/// Knows what it has given away.
class watched_memory final : public std::pmr::memory_resource {
public:
  std::map<void*, std::size_t> held;

private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    void* const p = std::pmr::new_delete_resource()->allocate(size, alignment);
    held[p] = size;
    return p;
  }
  void do_deallocate(void* p, std::size_t size, std::size_t align) override {
    BOOST_TEST(held.at(p) == size);
    held.erase(p);
    std::pmr::new_delete_resource()->deallocate(p, size, align);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(the_last_returned_buffer_is_reused_first) {
  buffer_pool pool;
  buffer a = pool.get(100), b = pool.get(100), other = pool.get(200);
  auto* const first = a.as<std::byte>().data();
  auto* const second = b.as<std::byte>().data();
  a = {};
  b = {};
  BOOST_TEST(pool.get(200).as<std::byte>().data() != first);
  const buffer c = pool.get(100), d = pool.get(100);
  BOOST_TEST(c.as<std::byte>().data() == second);
  BOOST_TEST(d.as<std::byte>().data() == first);
  BOOST_TEST(c.as<std::byte>().size() == 100u);
}

// Its memory lives as long as a buffer of it, though the pool is gone.
BOOST_AUTO_TEST_CASE(buffers_come_from_the_memory_that_is_given) {
  const auto memory = std::make_shared<watched_memory>();
  buffer last;
  {
    buffer_pool pool(memory);
    last = pool.get(1000);
    BOOST_TEST(memory->held.contains(last.as<std::byte>().data()));
    { const buffer shelved = pool.get(500); }
    BOOST_TEST(memory->held.size() == 2u); // one of them on the shelf
  }
  BOOST_TEST(memory.use_count() == 2);
  last = {};
  BOOST_TEST(memory.use_count() == 1);
  BOOST_TEST(memory->held.empty());
}

BOOST_AUTO_TEST_CASE(an_empty_buffer_is_one_too) {
  buffer_pool pool;
  const buffer none = pool.get(0);
  BOOST_TEST(static_cast<bool>(none));
  BOOST_TEST(none.as<std::byte>().empty());
}

BOOST_AUTO_TEST_SUITE_END()
