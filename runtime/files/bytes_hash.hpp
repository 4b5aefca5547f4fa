// runtime/files/bytes_hash.hpp -- a 64-bit hash of memory, at memory speed.
//
// XXH3: it finds accidental damage, not forgery. The same on every machine of
// one byte order. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct XXH3_state_s;

namespace shoal::runtime {

/// The hash of `bytes` that follow the data with the hash `before`.
[[nodiscard]] std::uint64_t
hash_of(std::span<const std::byte> bytes, std::uint64_t before = 0) noexcept;

/// The hash of bytes that come in pieces: that of all of them at once, as
/// `xxhsum -H3` prints it.
class bytes_hasher {
public:
  bytes_hasher(); ///< throws std::bad_alloc
  void add(std::span<const std::byte> bytes) noexcept;
  /// Of all that was added so far.
  [[nodiscard]] std::uint64_t hash() const noexcept;

private:
  struct release {
    void operator()(XXH3_state_s* state) const noexcept;
  };
  std::unique_ptr<XXH3_state_s, release> state_;
};

} // namespace shoal::runtime
