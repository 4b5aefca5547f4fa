// tests/kernels/memory/memory_space_test.cpp -- memory says where it lies.
#include "kernels/memory/aligned_buffer.hpp"
#include "kernels/memory/memory_space.hpp"
#include "kernels/memory/recycling_resource.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <memory>

BOOST_AUTO_TEST_SUITE(memory_spaces)

using namespace shoal::model;

namespace {

/// Memory that says that it lies in a space, and was used before.
class used_memory final : public spaced_resource {
public:
  using spaced_resource::spaced_resource;

private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const p = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    std::memset(p, 0xff, bytes);
    return p;
  }
  void
  do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(p, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

bool was_written(const aligned_buffer& buffer) {
  return buffer.data()[0] == 0.0f; // 0xffffffff is no number
}

} // namespace

BOOST_AUTO_TEST_CASE(memory_is_the_hosts_unless_its_resource_says_more) {
  BOOST_TEST((aligned_buffer().space() == memory_space::host));
  BOOST_TEST((aligned_buffer(16).space() == memory_space::host));
  const auto plain = std::make_shared<recycling_resource>(nullptr);
  BOOST_TEST((aligned_buffer(16, plain).space() == memory_space::host));
  const auto pinned = std::make_shared<used_memory>(memory_space::pinned);
  const aligned_buffer buffer(16, pinned);
  BOOST_TEST((buffer.space() == memory_space::pinned));
  BOOST_TEST(was_written(buffer));
}

BOOST_AUTO_TEST_CASE(a_recycled_array_lies_where_it_came_from) {
  const auto below = std::make_shared<used_memory>(memory_space::device);
  const auto recycled = std::make_shared<recycling_resource>(below);
  BOOST_TEST((space_of(*recycled) == memory_space::device));
  BOOST_TEST((aligned_buffer(16, recycled).space() == memory_space::device));
}

BOOST_AUTO_TEST_CASE(a_host_pointer_never_touches_a_devices_memory) {
  const auto memory = std::make_shared<used_memory>(memory_space::device);
  const aligned_buffer buffer(16, memory);
  BOOST_TEST(!was_written(buffer));
}

BOOST_AUTO_TEST_SUITE_END()
