// actors/buffers.cpp -- a shelf of free memory by size.
#include "actors/buffers.hpp"

#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace shoal::actors {
namespace {

constexpr std::align_val_t alignment{64};

} // namespace

struct buffer_pool::shelf {
  std::mutex mutex;
  std::multimap<std::size_t, std::byte*> free;
  std::size_t free_bytes = 0;

  ~shelf() {
    for (auto& [size, memory] : free)
      ::operator delete(memory, alignment);
  }
  void put(std::size_t size, std::byte* memory) {
    std::lock_guard lock{mutex};
    if (free_bytes + size > free_bytes_max) {
      ::operator delete(memory, alignment);
      return;
    }
    free_bytes += size;
    free.emplace(size, memory);
  }
};

buffer_pool::buffer_pool() : shelf_(std::make_shared<shelf>()) {
}

buffer buffer_pool::get(std::size_t bytes) {
  std::byte* memory = nullptr;
  {
    std::lock_guard lock{shelf_->mutex};
    auto at = shelf_->free.find(bytes);
    if (at != shelf_->free.end()) {
      memory = at->second;
      shelf_->free_bytes -= bytes;
      shelf_->free.erase(at);
    }
  }
  if (memory == nullptr)
    memory = static_cast<std::byte*>(
      ::operator new(std::max<std::size_t>(bytes, 1), alignment));
  auto give_back = [shelf = shelf_, bytes](std::byte* p) {
    shelf->put(bytes, p);
  };
  return {std::shared_ptr<std::byte>(memory, give_back), bytes};
}

} // namespace shoal::actors
