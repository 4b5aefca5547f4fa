// runtime/files/field_text.hpp -- the documentation of a field of a JSON object.
//
// Made from the tables that write JSON (json_table.hpp), for `shoal reference`.
#pragma once

#include <string>
#include <vector>

namespace shoal::runtime {

struct field_text {
  std::string name;
  std::string type; ///< one of the types in json_table.hpp
  std::string unit; ///< empty: none
  std::string meaning;
  /// The fields of the object, or of each object of the list.
  std::vector<field_text> inside;
};

} // namespace shoal::runtime
