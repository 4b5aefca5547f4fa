// kernels/cpu/product/memory.hpp -- how products keep and read memory.
//
// Private to kernels/cpu.
#pragma once

#include "kernels/inference/packed_layout.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>

namespace shoal::kernels::cpu {

/// Distance of the software prefetch: the processor's own prefetcher stops at
/// the end of a page. Some 120 ns at the 16 GB/s of one thread without AVX-512,
/// and at the 37 GB/s of one with it (two EPYC).
inline constexpr std::size_t prefetch_bytes = 2048;
inline constexpr std::size_t prefetch_bytes_wide = 4096;

/// Memory on a cache-line boundary, in large pages if there are any. Pages of
/// 4 KiB have random places in the second-level cache, and evict each other
/// before it is full.
class scratch_memory {
public:
  /// At least `bytes`; the contents are lost if it grows.
  std::byte* need(std::size_t bytes) {
    // Smaller memory does not get large pages.
    constexpr std::size_t least = std::size_t{4} << 20;
    if (size_ < bytes) {
      size_ = std::max(bytes, least);
      memory_ = allocate_packed(size_);
    }
    return memory_.get();
  }

private:
  std::shared_ptr<std::byte> memory_;
  std::size_t size_ = 0;
};

} // namespace shoal::kernels::cpu
