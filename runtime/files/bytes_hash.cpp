// runtime/files/bytes_hash.cpp -- XXH3-64.
#include "runtime/files/bytes_hash.hpp"

// The library chooses the widest vectors that the processor has.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace shoal::runtime {

std::uint64_t
hash_of(std::span<const std::byte> bytes, std::uint64_t before) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), before);
}

} // namespace shoal::runtime
