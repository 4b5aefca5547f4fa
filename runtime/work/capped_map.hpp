// runtime/work/capped_map.hpp -- a map with a limit, for keys that others
// choose.
//
// Threads: as std::map.
#pragma once

#include <cstddef>
#include <map>

namespace shoal::runtime {

/// At most `Max` keys; keys beyond that are refused.
template <class Key, class Value, std::size_t Max>
class capped_map {
public:
  /// @returns whether the key was there or there was room for it.
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
