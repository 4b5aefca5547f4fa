// actors/gateway/description/field_schema.cpp -- types by their words.
#include "actors/gateway/description/field_schema.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace shoal::actors {

using json = nlohmann::ordered_json;

namespace {

/// Takes the end of a text off. @returns whether it was there
bool take_end(std::string_view& text, std::string_view end) {
  const bool there = text.ends_with(end);
  if (there)
    text.remove_suffix(end.size());
  return there;
}

/// Of "text", "list of objects" and the like (runtime/files/json_table.hpp).
json typed(std::string_view type, const runtime::field_text& field) {
  constexpr std::string_view list = "list of ";
  if (type.starts_with(list)) {
    type.remove_prefix(list.size());
    if (!type.starts_with("list"))
      take_end(type, "s");
    else if (const auto of = type.find("lists of "); of == 0)
      return {
        {"type", "array"},
        {"items", typed("list of " + std::string(type.substr(9)), field)}};
    return {{"type", "array"}, {"items", typed(type, field)}};
  }
  if (type == "text")
    return {{"type", "string"}};
  if (type == "number")
    return {{"type", "number"}};
  if (type == "whole number")
    return {{"type", "integer"}};
  if (type == "true or false" || type == "true")
    return {{"type", "boolean"}};
  if (type == "object" && !field.inside.empty())
    return schema_of(field.inside);
  if (type == "object")
    return {{"type", "object"}};
  return json::object(); // of several types: any
}

} // namespace

json schema_of(const openai::read_field& field) {
  using kind = openai::read_field::kind;
  switch (field.is) {
  case kind::flag:
    return {{"type", {"boolean", "null"}}};
  case kind::text:
    return {{"type", {"string", "null"}}, {"maxLength", field.high}};
  case kind::integer:
    return {{"type", {"integer", "null"}},
            {"minimum", field.low},
            {"maximum", field.high}};
  case kind::number:
    return {{"type", {"number", "null"}},
            {field.above ? "exclusiveMinimum" : "minimum", field.low},
            {"maximum", field.high}};
  case kind::any:
    break;
  }
  return json::object();
}

json schema_of(const std::vector<runtime::field_text>& fields) {
  json properties = json::object(), required = json::array();
  for (const runtime::field_text& f : fields) {
    std::string_view type = f.type;
    const bool optional = take_end(type, ", optional");
    const bool or_null = take_end(type, " or null");
    json one = typed(type, f);
    if (or_null && one.contains("type"))
      one["type"] = {one["type"], "null"};
    one["description"] =
      f.unit.empty() ? f.meaning : f.meaning + " (" + f.unit + ")";
    properties[f.name] = std::move(one);
    if (!optional)
      required.push_back(f.name);
  }
  json out{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty())
    out["required"] = std::move(required);
  return out;
}

} // namespace shoal::actors
