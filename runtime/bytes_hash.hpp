// runtime/bytes_hash.hpp -- a 64-bit hash of memory, as fast as memory is.
//
// XXH3: it finds what has rotted or gone astray, not what somebody has forged.
// The same on every machine of one byte order. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::runtime {

/// Of `bytes` after what has led to `before`.
[[nodiscard]] std::uint64_t
hash_of(std::span<const std::byte> bytes, std::uint64_t before = 0) noexcept;

} // namespace shoal::runtime
