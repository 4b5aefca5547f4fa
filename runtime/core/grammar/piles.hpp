// runtime/core/grammar/piles.hpp -- sets of numbers, one for each key that has some.
//
// Threads: one at a time.
// Cost:    add() in order is constant; clear() takes the keys that were used, and
//          their memory is kept for the next sets.
// Private to runtime/core/grammar.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shoal::core::grammar {

class piles {
public:
  /// @param keys are below this number
  explicit piles(std::size_t keys) : slots_(keys) {}

  /// Keys that have numbers, in the order in which they got their first one.
  std::size_t size() const noexcept { return keys_.size(); }
  std::uint32_t key(std::size_t k) const { return keys_[k]; }
  /// The numbers of the k-th key, ascending.
  const std::vector<std::uint32_t>& operator[](std::size_t k) const {
    return sets_[k];
  }

  bool has(std::uint32_t key) const { return slots_[key] != 0; }
  /// @pre has(key)
  std::size_t place_of(std::uint32_t key) const { return slots_[key] - 1; }
  /// @returns whether the key did not have it
  bool add(std::uint32_t key, std::uint32_t number) {
    if (slots_[key] == 0) {
      keys_.push_back(key);
      slots_[key] = static_cast<std::uint32_t>(keys_.size());
      if (keys_.size() > sets_.size())
        sets_.emplace_back();
      sets_[keys_.size() - 1].assign(1, number);
      return true;
    }
    std::vector<std::uint32_t>& set = sets_[slots_[key] - 1];
    if (set.back() < number) {
      set.push_back(number);
      return true;
    }
    const auto at = std::ranges::lower_bound(set, number);
    if (*at == number)
      return false;
    set.insert(at, number);
    return true;
  }

  void clear() {
    for (const std::uint32_t key : keys_)
      slots_[key] = 0;
    keys_.clear();
  }

private:
  std::vector<std::uint32_t>
    slots_; ///< of each key: its place, from 1; 0: none
  std::vector<std::uint32_t> keys_;
  std::vector<std::vector<std::uint32_t>> sets_; ///< of keys_, and some unused
};

} // namespace shoal::core::grammar
