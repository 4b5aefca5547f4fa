// kernels/memory/memory_space.hpp -- where memory lies: what may follow a
// pointer into it.
//
// A memory resource says where its memory lies by deriving from
// spaced_resource; all others have host memory, as every resource of the CPU
// backend has. Buffers pass it on (aligned_buffer.hpp).
#pragma once

#include <cstdint>
#include <memory_resource>

namespace shoal::model {

enum class memory_space : std::uint8_t {
  host,   ///< the process may read and write it, a device only by copy
  pinned, ///< the same, and a device may read and write it directly
  device, ///< only operations of a backend may read or write it
};

/// A resource of memory that lies in `space`.
class spaced_resource : public std::pmr::memory_resource {
public:
  explicit spaced_resource(memory_space space) noexcept : space_(space) {}
  memory_space space() const noexcept { return space_; }

private:
  memory_space space_;
};

/// Where the memory of a resource lies.
inline memory_space space_of(const std::pmr::memory_resource& from) noexcept {
  const auto* spaced = dynamic_cast<const spaced_resource*>(&from);
  return spaced != nullptr ? spaced->space() : memory_space::host;
}

} // namespace shoal::model
