// transport/shm/exposed.cpp -- slots, and the place that a frame names.

#include "transport/shm/exposed.hpp"

namespace shoal::transport::shm {

exposure::exposure(channel_head& head) : head_(&head) {
  free_.reserve(exposed_max);
  for (std::size_t slot = exposed_max; slot-- != 0;)
    free_.push_back(slot);
}

std::optional<std::size_t> exposure::expose(std::uint64_t transfer) {
  if (free_.empty())
    return {};
  const std::size_t slot = free_.back();
  free_.pop_back();
  head_->exposed[slot].store(transfer, std::memory_order_release);
  return slot;
}

void exposure::withdraw(std::size_t slot) {
  head_->exposed[slot].store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  free_.push_back(slot);
}

void exposure::withdraw_all() {
  for (counter& slot : head_->exposed)
    slot.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

std::optional<std::span<const std::byte>>
place_of(const frame& f, std::span<const std::byte> memory) {
  if (f.slot >= exposed_max || f.offset > memory.size()
      || f.total > memory.size() - f.offset)
    return {};
  return memory.subspan(f.offset, f.total);
}

bool is_exposed(const channel_head& theirs, std::size_t slot,
                std::uint64_t transfer) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return theirs.exposed[slot].load(std::memory_order_relaxed) == transfer;
}

} // namespace shoal::transport::shm
