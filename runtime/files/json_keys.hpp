// runtime/files/json_keys.hpp -- objects of foreign JSON that keep their order.
//
// The library's ordered objects are lists: adding a key compares it with all that
// are there. So foreign text that is read into them may have only so many keys in
// an object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace shoal::model {

/// Keys of an object in foreign text that keeps its order.
inline constexpr std::size_t ordered_keys_max = 4096;

/// Whether an object in the text has more keys. @pre the text nests no deeper than
/// json_depth_max
inline bool has_too_many_keys(std::string_view text) {
  std::vector<std::size_t> keys; // of the objects and lists around
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (quoted)
      continue;
    else if (c == '{' || c == '[')
      keys.push_back(0);
    else if ((c == '}' || c == ']') && !keys.empty())
      keys.pop_back();
    else if (c == ':' && !keys.empty() && ++keys.back() > ordered_keys_max)
      return true;
  }
  return false;
}

} // namespace shoal::model
