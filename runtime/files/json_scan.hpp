// runtime/files/json_scan.hpp -- looks at foreign JSON before it is parsed.
//
// Cost: one pass over the text, for each function.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace shoal::model {

/// Calls `f` with each of { } [ ] : , that stands outside of strings, until it
/// returns false. Whether the text is JSON does not matter.
template <class Function>
void for_each_mark(std::string_view text, Function f) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted
             && std::string_view("{}[]:,").find(c) != std::string_view::npos
             && !f(c))
      return;
  }
}

/// Keys of an object in foreign text that is parsed into the library's ordered
/// objects. These are lists: a new key is compared with all that are there.
inline constexpr std::size_t ordered_keys_max = 4096;

/// Whether an object in the text has more keys. @pre the text does not nest
/// deeper than json_depth_max
inline bool has_too_many_keys(std::string_view text) {
  std::vector<std::size_t> keys; // of the objects and lists around
  bool too_many = false;
  for_each_mark(text, [&](char c) {
    if (c == '{' || c == '[')
      keys.push_back(0);
    else if ((c == '}' || c == ']') && !keys.empty())
      keys.pop_back();
    else if (c == ':' && !keys.empty())
      too_many = ++keys.back() > ordered_keys_max;
    return !too_many;
  });
  return too_many;
}

/// At least the number of values in the text, up to `stop`: each but the first
/// follows a comma or a bracket.
inline std::size_t count_values(std::string_view text, std::size_t stop) {
  std::size_t count = 1;
  for_each_mark(text, [&](char c) {
    count += c == ',' || c == '[' || c == '{';
    return count < stop;
  });
  return count;
}

} // namespace shoal::model
