// actors/buffers.cpp -- a shelf of free memory by size.
#include "actors/buffers.hpp"

#include "runtime/model/large_pages.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace shoal::actors {
namespace {

constexpr std::size_t alignment = 64;

} // namespace

struct buffer_pool::shelf {
  const runtime::shared_memory_resource memory; ///< null: large_pages()
  std::mutex mutex;
  std::map<std::size_t, std::vector<std::byte*>> free; ///< by size
  std::size_t free_bytes = 0;

  explicit shelf(runtime::shared_memory_resource from)
    : memory(std::move(from)) {}
  ~shelf() {
    for (auto& [size, list] : free)
      for (std::byte* p : list)
        from()->deallocate(p, size, alignment);
  }
  std::pmr::memory_resource* from() const {
    return memory ? memory.get() : model::large_pages();
  }
  /// What was put there last, which is the likeliest to be in a cache.
  std::byte* take(std::size_t size) {
    std::lock_guard lock{mutex};
    const auto at = free.find(size);
    if (at == free.end())
      return nullptr;
    std::byte* const p = at->second.back();
    at->second.pop_back();
    if (at->second.empty())
      free.erase(at);
    free_bytes -= size;
    return p;
  }
  void put(std::size_t size, std::byte* p) {
    {
      std::lock_guard lock{mutex};
      if (free_bytes + size <= free_bytes_max) {
        free_bytes += size;
        free[size].push_back(p);
        return;
      }
    }
    from()->deallocate(p, size, alignment);
  }
};

buffer_pool::buffer_pool(runtime::shared_memory_resource memory)
  : shelf_(std::make_shared<shelf>(std::move(memory))) {
}

buffer buffer_pool::get(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  std::byte* memory = shelf_->take(size);
  if (memory == nullptr)
    memory = static_cast<std::byte*>(shelf_->from()->allocate(size, alignment));
  auto give_back = [shelf = shelf_, size](std::byte* p) {
    shelf->put(size, p);
  };
  return {std::shared_ptr<std::byte>(memory, give_back), bytes};
}

} // namespace shoal::actors
