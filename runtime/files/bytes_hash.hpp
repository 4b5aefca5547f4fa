// runtime/files/bytes_hash.hpp -- a 64-bit hash of memory, at memory speed.
//
// XXH3: it finds accidental damage, not forgery. The same on every machine of
// one byte order. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::runtime {

/// The hash of `bytes` that follow the data with the hash `before`.
[[nodiscard]] std::uint64_t
hash_of(std::span<const std::byte> bytes, std::uint64_t before = 0) noexcept;

} // namespace shoal::runtime
