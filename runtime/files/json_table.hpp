// runtime/files/json_table.hpp -- JSON objects that are written from tables.
//
// A table has a row for each field: name, type, unit and meaning beside the
// function that returns its value. Objects are written from their table, and
// `shoal reference` prints the same table: so output and documentation cannot
// differ.
//
//   const json_table<point>& point_table() {
//     static const json_table<point> table{
//       {"x", "number", "m", "to the right", [](const point& p) {
//          return json_value(p.x);
//        }}};
//     return table;
//   }
//
// Types: text, number, whole number, true or false, object, list of ...; "or
//        null" if it may be null. A field whose type ends in ", optional" is
//        left out of the object if its function returns left_out().
#pragma once

#include "runtime/files/field_text.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace shoal::runtime {

using json_value = nlohmann::ordered_json;

/// Returned by the function of an optional field that has no value.
inline json_value left_out() {
  return json_value(json_value::value_t::discarded);
}

template <class From>
struct json_field {
  std::string_view name;
  std::string_view type;
  std::string_view unit; ///< empty: none
  std::string_view meaning;
  json_value (*value)(const From&);
  std::vector<field_text> inside = {};
};

template <class From>
using json_table = std::vector<json_field<From>>;

/// The fields of `from` that are not left out, in the order of the table.
template <class From>
json_value written(const json_table<From>& table, const From& from) {
  json_value out = json_value::object();
  for (const json_field<From>& field : table)
    if (json_value value = field.value(from); !value.is_discarded())
      out[std::string(field.name)] = std::move(value);
  return out;
}

/// One object for each element.
template <class From, class List>
json_value written_each(const json_table<From>& table, const List& list) {
  json_value out = json_value::array();
  for (const auto& each : list)
    out.push_back(written<From>(table, each));
  return out;
}

template <class From>
field_text text_of(const json_field<From>& field) {
  return {std::string(field.name), std::string(field.type),
          std::string(field.unit), std::string(field.meaning), field.inside};
}

template <class From>
std::vector<field_text> texts_of(const json_table<From>& table) {
  std::vector<field_text> out;
  for (const json_field<From>& field : table)
    out.push_back(text_of(field));
  return out;
}

} // namespace shoal::runtime
