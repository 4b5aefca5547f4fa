// runtime/files/bytes_hash.cpp -- XXH3-64.
#include "runtime/files/bytes_hash.hpp"

// The library chooses the widest vectors that the processor has.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <new>

namespace shoal::runtime {

std::uint64_t
hash_of(std::span<const std::byte> bytes, std::uint64_t before) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), before);
}

void bytes_hasher::release::operator()(XXH3_state_s* state) const noexcept {
  XXH3_freeState(state);
}

bytes_hasher::bytes_hasher() : state_(XXH3_createState()) {
  if (!state_)
    throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void bytes_hasher::add(std::span<const std::byte> bytes) noexcept {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}

std::uint64_t bytes_hasher::hash() const noexcept {
  return XXH3_64bits_digest(state_.get());
}

} // namespace shoal::runtime
