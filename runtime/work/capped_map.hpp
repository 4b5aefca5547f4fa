// runtime/work/capped_map.hpp -- a map that others fill, and so has a limit.
//
// Threads: as std::map.
#pragma once

#include <cstddef>
#include <map>

namespace shoal::runtime {

/// At most `Max` keys: of more, the first ones stay.
template <class Key, class Value, std::size_t Max>
class capped_map {
public:
  /// @returns whether there is room for the key, or it was there.
  bool put(const Key& key, Value value) {
    if (of_.size() >= Max && !of_.contains(key))
      return false;
    of_.insert_or_assign(key, std::move(value));
    return true;
  }
  void erase(const Key& key) { of_.erase(key); }
  const std::map<Key, Value>& all() const noexcept { return of_; }

private:
  std::map<Key, Value> of_;
};

} // namespace shoal::runtime
