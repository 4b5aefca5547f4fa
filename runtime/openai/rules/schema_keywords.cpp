// runtime/openai/rules/schema_keywords.cpp -- reads, merges and compares schemas.
#include "runtime/openai/rules/schema_keywords.hpp"

#include "runtime/core/grammar/gbnf.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>

namespace shoal::openai {

namespace {

constexpr std::array<std::string_view, 12> annotations{
  "title",     "description", "default",     "examples",
  "$schema",   "$comment",    "deprecated",  "readOnly",
  "writeOnly", "$defs",       "definitions", "$id"};

/// Keywords of values, with the type that they are about.
struct keyword {
  std::string_view name;
  std::string_view type; ///< "": any
};
constexpr keyword keywords[] = {{"type", ""},
                                {"enum", ""},
                                {"const", ""},
                                {"anyOf", ""},
                                {"oneOf", ""},
                                {"allOf", ""},
                                {"$ref", ""},
                                {"properties", "object"},
                                {"required", "object"},
                                {"additionalProperties", "object"},
                                {"items", "array"},
                                {"prefixItems", "array"},
                                {"minItems", "array"},
                                {"maxItems", "array"},
                                {"minLength", "string"},
                                {"maxLength", "string"},
                                {"pattern", "string"},
                                {"format", "string"},
                                {"minimum", "number"},
                                {"maximum", "number"},
                                {"exclusiveMinimum", "number"},
                                {"exclusiveMaximum", "number"}};
constexpr std::array<std::string_view, 7> type_names{
  "null", "boolean", "integer", "number", "string", "array", "object"};
constexpr int references_max = 64;

bool is_type(const schema& value, std::string_view type) {
  if (type == "null")
    return value.is_null();
  if (type == "boolean")
    return value.is_boolean();
  if (type == "integer")
    return value.is_number_integer()
           || (value.is_number_float()
               && value.get<double>() == std::trunc(value.get<double>()));
  if (type == "number")
    return value.is_number();
  if (type == "string")
    return value.is_string();
  if (type == "array")
    return value.is_array();
  return value.is_object();
}

/// What a schema with $ref alone refers to, through all such.
const schema&
followed(const schema& root, const schema& s, const std::string& path) {
  const schema* at = &s;
  for (int k = 0; at->is_object() && at->contains("$ref"); ++k) {
    if (k == references_max)
      throw bad_schema{path, "its references go in a circle"};
    for (const auto& [key, value] : at->items())
      if (key != "$ref" && !is_annotation(key))
        throw bad_schema{below(path, key),
                         "is not understood beside $ref within allOf, anyOf "
                         "and oneOf"};
    at = &resolve(root, reference_of(*at, path), path);
  }
  return *at;
}

void merge_types(schema& to, const schema& value, const std::string& path) {
  const auto names = [&](const schema& s) {
    return types_of(schema{{"type", s}}, path);
  };
  schema both = schema::array();
  for (const std::string& a : names(to))
    for (const std::string& b : names(value))
      if (a == b || (a == "number" && b == "integer"))
        both.push_back(b);
      else if (a == "integer" && b == "number")
        both.push_back(a);
  if (both.empty())
    throw bad_schema{path + "/type", "no type is allowed by all parts"};
  to = std::move(both);
}

/// The only values that `s` allows by const or enum; nothing if it has neither.
std::optional<std::span<const schema>> values_of(const schema& s) {
  if (const auto one = s.find("const"); one != s.end())
    return std::span(&*one, 1);
  if (const auto all = s.find("enum"); all != s.end() && all->is_array())
    return std::span(all->get_ref<const schema::array_t&>());
  return std::nullopt;
}

/// Types of the values that are written by `s`, which stands within `around`.
std::vector<std::string>
written_types(const schema& s, const schema& around, const std::string& path) {
  std::vector<std::string> out;
  if (const auto values = values_of(s)) {
    for (const std::string_view type : type_names)
      if (std::ranges::any_of(
            *values, [&](const schema& v) { return is_type(v, type); }))
        out.emplace_back(type);
  } else if (!s.contains("type") && around.contains("type")) {
    out = types_of(around, path);
  } else if (s.contains("type")
             || std::ranges::none_of(
               std::array{"anyOf", "oneOf", "allOf"},
               [&](const char* parts) { return s.contains(parts); })) {
    out = types_of(s, path); // else its parts say more
  }
  if (out.empty())
    out.assign(type_names.begin(), type_names.end());
  return out;
}

/// Types of the values that `s` allows.
std::vector<std::string>
allowed_types(const schema& s, const std::string& path) {
  const schema none;
  if (s.contains("type") || values_of(s))
    return written_types(s, none, path);
  return {type_names.begin(), type_names.end()};
}

/// Whether no value that is written by `a` is allowed by `b`, as far as that is seen
/// from types, values and properties.
bool apart(const schema& root, const schema& a, const schema& b,
           const schema& around, const std::string& path, schema_work& work,
           int depth) {
  const schema &x = followed(root, a, path), &y = followed(root, b, path);
  if (!x.is_object() || !y.is_object() || depth > 4)
    return x == false || y == false;
  const auto v = values_of(x), w = values_of(y);
  const auto count = [](const auto& of) { return of ? of->size() : 0; };
  work.spend(1 + (count(v) + 1) * (count(w) + 1) / 64, path);
  if (v && w)
    return std::ranges::none_of(*v, [&](const schema& value) {
      return std::ranges::find(*w, value) != w->end();
    });
  const auto allowed = allowed_types(y, path);
  std::vector<std::string> both;
  for (const std::string& p : written_types(x, around, path))
    for (const std::string& q : allowed)
      if (p == q || (p == "integer" && q == "number")
          || (p == "number" && q == "integer"))
        both.push_back(p);
  if (both.empty())
    return true;
  const auto others = [](const std::string& type) { return type != "object"; };
  if (std::ranges::any_of(both, others) || !x.contains("properties")
      || !y.contains("properties"))
    return false;
  const schema nothing;
  return std::ranges::any_of(
    required_of(x, path), [&](const std::string& name) {
      return x["properties"].contains(name) && y["properties"].contains(name)
             && apart(root, x["properties"][name], y["properties"][name],
                      nothing, path, work, depth + 1);
    });
}

/// @pre it nests no deeper than json_depth_max
void add_size(const schema& value, std::size_t& values, std::size_t& bytes) {
  ++values;
  if (value.is_string())
    bytes += value.get_ref<const std::string&>().size();
  if (value.is_object())
    for (const auto& [key, inner] : value.items()) {
      bytes += key.size();
      add_size(inner, values, bytes);
    }
  if (value.is_array())
    for (const schema& inner : value)
      add_size(inner, values, bytes);
}

} // namespace

std::string
below(const std::string& path, std::string_view key, const std::string& name) {
  constexpr std::size_t path_bytes_max = 512;
  if (path.size() > path_bytes_max)
    return path;
  std::string out = path + "/" + core::shown(key, model::json_shown_max);
  if (!name.empty())
    out += "/" + core::shown(name, model::json_shown_max);
  return out.size() > path_bytes_max ? out + "..." : out;
}

std::size_t steps_to_copy(const schema& value) {
  std::size_t values = 0, bytes = 0;
  add_size(value, values, bytes);
  return 1 + values / 8 + bytes / 64;
}

bool is_annotation(const std::string& key) {
  return std::ranges::find(annotations, key) != annotations.end();
}

void check_keywords(const schema& s, const std::string& path) {
  if (!s.is_object())
    throw bad_schema{path, "must be an object, true or false"};
  if (!path.empty() && s.contains("$id"))
    throw bad_schema{path + "/$id", "is understood of the whole schema only"};
  for (const auto& [key, value] : s.items())
    if (!is_annotation(key)
        && std::ranges::find(keywords, key, &keyword::name)
             == std::end(keywords))
      throw bad_schema{below(path, key), "this keyword is not understood"};
}

std::vector<std::string> types_of(const schema& s, const std::string& path) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view type) {
    if (std::ranges::find(out, type) == out.end())
      out.emplace_back(type);
  };
  if (!s.contains("type")) {
    for (const keyword& k : keywords)
      if (!k.type.empty() && s.contains(k.name))
        add(k.type);
    return out;
  }
  const schema& named = s["type"];
  const schema list = named.is_array() ? named : schema::array({named});
  for (const schema& one : list) {
    if (!one.is_string()
        || std::ranges::find(type_names, one.get<std::string>())
             == type_names.end())
      throw bad_schema{path + "/type",
                       "must be null, boolean, integer, number, "
                       "string, array or object, or a list "
                       "of these"};
    add(one.get<std::string>());
  }
  if (out.empty())
    throw bad_schema{path + "/type", "must name a type"};
  if (std::ranges::find(out, "number") != out.end())
    std::erase(out, "integer");
  return out;
}

bool has_type(const schema& value, const std::vector<std::string>& types) {
  return std::ranges::any_of(
    types, [&](const std::string& type) { return is_type(value, type); });
}

std::optional<std::uint32_t>
count_of(const schema& s, const std::string& key, const std::string& path) {
  if (!s.contains(key))
    return std::nullopt;
  const schema& value = s[key];
  if (!is_type(value, "integer") || value.get<double>() < 0
      || value.get<double>() > core::grammar::repetitions_max)
    throw bad_schema{path + "/" + key,
                     "must be a whole number from 0 to "
                       + std::to_string(core::grammar::repetitions_max)};
  return value.get<std::uint32_t>();
}

std::vector<std::string> required_of(const schema& s, const std::string& path) {
  std::vector<std::string> out;
  std::set<std::string_view> seen;
  if (!s.contains("required"))
    return out;
  if (!s["required"].is_array())
    throw bad_schema{path + "/required", "must be a list of names"};
  for (const schema& name : s["required"]) {
    if (!name.is_string())
      throw bad_schema{path + "/required", "must be a list of names"};
    const auto& text = name.get_ref<const std::string&>();
    if (seen.insert(text).second)
      out.push_back(text);
  }
  return out;
}

std::string reference_of(const schema& s, const std::string& path) {
  if (!s["$ref"].is_string() || !s["$ref"].get<std::string>().starts_with("#"))
    throw bad_schema{
      path + "/$ref",
      "only references within the schema (#/...) are understood"};
  return s["$ref"].get<std::string>();
}

const schema&
resolve(const schema& root, const std::string& to, const std::string& path) {
  const std::string pointer = to.substr(1);
  try {
    const schema::json_pointer where(pointer);
    if (root.contains(where))
      return root.at(where);
  } catch (const schema::exception&) { // no pointer
  }
  throw bad_schema{path + "/$ref", "there is no "
                                     + core::shown(to, model::json_shown_max)
                                     + " in the schema"};
}

namespace {

std::set<std::string> names_in(const schema& properties) {
  std::set<std::string> out;
  if (properties.is_object())
    for (const auto& [name, s] : properties.items())
      out.insert(name);
  return out;
}

void merge_properties(const schema& root, schema& to, const schema& from,
                      const std::string& path, schema_work& work,
                      std::size_t depth) {
  // A look-up by name would compare all of them.
  auto& all = to.get_ref<schema::object_t&>();
  using pairs = schema::object_t::Container;
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i != all.size(); ++i)
    known.emplace(static_cast<pairs&>(all)[i].first, i);
  for (const auto& [name, s] : from.items())
    if (const auto at = known.find(name); at != known.end()) {
      schema& own = static_cast<pairs&>(all)[at->second].second;
      own =
        merged(root, own, s, below(path, "properties", name), work, depth + 1);
    } else {
      static_cast<pairs&>(all).emplace_back(name, s);
    }
}

} // namespace

schema merged(const schema& root, const schema& a, const schema& b,
              const std::string& path, schema_work& work, std::size_t depth) {
  if (depth > model::json_depth_max)
    throw bad_schema{path, "its references go in a circle"};
  const schema& other = followed(root, b, path);
  work.spend(steps_to_copy(a) + steps_to_copy(other), path);
  if (other == true || a == false)
    return a;
  if (other == false || a == true)
    return b;
  check_keywords(other, path);
  const bool nothing = std::ranges::all_of(
    a.items(), [](const auto& item) { return is_annotation(item.key()); });
  if (nothing)
    return b; // as it is, with its reference
  const auto closed_for = [&](const schema& s, const schema& properties) {
    if (!s.contains("additionalProperties")
        || s["additionalProperties"] == true)
      return false;
    const std::set<std::string> own =
      names_in(s.contains("properties") ? s["properties"] : schema());
    return std::ranges::any_of(properties.items(), [&](const auto& p) {
      return !own.contains(p.key());
    });
  };
  const auto properties = [](const schema& s) {
    return s.contains("properties") ? s["properties"] : schema::object();
  };
  if (closed_for(a, properties(other)) || closed_for(other, properties(a)))
    throw bad_schema{path, "additionalProperties of one part would forbid "
                           "properties of another"};
  // `items` says something of other elements where there are prefixItems.
  const auto elements = [](const schema& s) {
    schema out;
    for (const char* key : {"items", "prefixItems"})
      if (s.contains(key))
        out[key] = s[key];
    return out;
  };
  if (const schema x = elements(a), y = elements(other);
      !x.is_null() && !y.is_null() && x != y)
    throw bad_schema{path, "parts that describe elements of a list "
                           "differently cannot be merged"};
  schema out = a.contains("$ref") ? followed(root, a, path) : a;
  for (const auto& [key, value] : other.items()) {
    if (!out.contains(key)) {
      out[key] = value;
    } else if (out[key] == value || is_annotation(key)) {
      continue;
    } else if (key == "type") {
      merge_types(out[key], value, path);
    } else if (key == "required") {
      schema all = schema::array();
      for (const schema* part : {&std::as_const(out), &other})
        for (const auto& name : required_of(*part, path))
          all.push_back(name);
      out[key] = required_of(schema{{key, std::move(all)}}, path);
    } else if (key == "properties" && value.is_object()
               && out[key].is_object()) {
      merge_properties(root, out[key], value, path, work, depth);
    } else if ((key == "minimum" || key == "minItems" || key == "minLength")
               && value.is_number() && out[key].is_number()) {
      if (value.get<double>() > out[key].get<double>())
        out[key] = value;
    } else if ((key == "maximum" || key == "maxItems" || key == "maxLength")
               && value.is_number() && out[key].is_number()) {
      if (value.get<double>() < out[key].get<double>())
        out[key] = value;
    } else {
      throw bad_schema{path + "/" + key,
                       "parts that say different things cannot be merged"};
    }
  }
  return out;
}

schema merged_all_of(const schema& root, const schema& s,
                     const std::string& path, schema_work& work) {
  if (!s["allOf"].is_array() || s["allOf"].empty())
    throw bad_schema{path + "/allOf", "must be a list with schemas"};
  schema out = s;
  out.erase("allOf");
  for (std::size_t k = 0; k != s["allOf"].size(); ++k) {
    if (!out.is_object())
      return out; // false
    out = merged(root, out, s["allOf"][k], path + "/allOf/" + std::to_string(k),
                 work);
  }
  return out;
}

void check_exclusive(const schema& root, const schema& of, const schema& around,
                     const std::string& path, schema_work& work) {
  for (std::size_t a = 0; a != of.size(); ++a)
    for (std::size_t b = a + 1; b != of.size(); ++b)
      if (!apart(root, of[a], of[b], around, path, work, 0)
          || !apart(root, of[b], of[a], around, path, work, 0))
        throw bad_schema{path, "branches " + std::to_string(a) + " and "
                                 + std::to_string(b)
                                 + " may both allow a value: use anyOf, or "
                                   "give them different types or constants"};
}

std::u32string code_points(const std::string& text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();)
    out += core::next_code(text, at);
  return out;
}

} // namespace shoal::openai
