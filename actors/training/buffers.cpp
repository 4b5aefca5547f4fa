// actors/training/buffers.cpp -- shared arrays in reused memory.
#include "actors/training/buffers.hpp"

#include "kernels/memory/recycling_resource.hpp"

#include <algorithm>

namespace shoal::actors {
namespace {

constexpr std::size_t alignment = 64;

} // namespace

buffer_pool::buffer_pool(runtime::shared_memory_resource memory)
  : memory_(std::make_shared<model::recycling_resource>(std::move(memory),
                                                        free_bytes_max)) {
}

buffer buffer_pool::get(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  auto* const array =
    static_cast<std::byte*>(memory_->allocate(size, alignment));
  auto give_back = [memory = memory_, size](std::byte* p) {
    memory->deallocate(p, size, alignment);
  };
  return {std::shared_ptr<std::byte>(array, give_back), bytes};
}

} // namespace shoal::actors
