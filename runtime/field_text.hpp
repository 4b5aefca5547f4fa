// runtime/field_text.hpp -- a field of a JSON object, as people read of it.
//
// Made from the tables that write JSON (json_table.hpp), for `shoal reference`.
#pragma once

#include <string>
#include <vector>

namespace shoal::runtime {

struct field_text {
  std::string name;
  std::string type; ///< json_table.hpp says which there are
  std::string unit; ///< empty: none
  std::string meaning;
  /// Of the object, or of each object of the list.
  std::vector<field_text> inside;
};

} // namespace shoal::runtime
