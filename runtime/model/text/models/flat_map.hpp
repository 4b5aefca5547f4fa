// runtime/model/text/models/flat_map.hpp -- a hash table from 64-bit keys, filled
// once.
//
// Open addressing in one array, at most half full; for look-ups for every
// character. No erase. The key ~0 is not allowed.
#pragma once

#include "runtime/core/assert.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shoal::model::text {

template <class Value>
class flat_map {
public:
  /// Makes room for `count` keys; existing keys are lost.
  explicit flat_map(std::size_t count = 0)
    : slots_(std::bit_ceil(count * 2 + 2)), room_(count) {}

  /// Adds the key, or replaces its value. @pre there is room
  void set(std::uint64_t key, const Value& value) {
    SHOAL_ASSERT(key != none);
    slot& s = slots_[place(key)];
    if (s.key == none) {
      SHOAL_ASSERT(room_ > 0);
      --room_;
    }
    s = {key, value};
  }

  /// @returns null if there is no such key.
  const Value* find(std::uint64_t key) const noexcept {
    const slot& s = slots_[place(key)];
    return s.key == none ? nullptr : &s.value;
  }

private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  struct slot {
    std::uint64_t key = none;
    Value value{};
  };

  /// The place where the key is, or would be inserted.
  std::size_t place(std::uint64_t key) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t h = key * 0x9e3779b97f4a7c15ull;
    std::size_t at = (h ^ h >> 32) & mask;
    while (slots_[at].key != none && slots_[at].key != key)
      at = (at + 1) & mask;
    return at;
  }

  std::vector<slot> slots_;
  std::size_t room_;
};

} // namespace shoal::model::text
