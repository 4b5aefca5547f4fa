// runtime/files/json.hpp -- reads and writes JSON that contains foreign text.
//
// The library parses and frees values of any depth, but it recurses when it
// copies, compares or prints one: a few hundred thousand brackets would exhaust
// the stack. So foreign text is parsed only by the functions here: text that
// nests deeper than json_depth_max is refused before it is parsed.
//
// The library throws when it prints text that is not UTF-8, such as the name of
// a file. So JSON is written only by json_text().
//
// Errors: parse_json() returns a discarded value, parse_json_object() a failure
//         that begins with `where`.
// Cost:   one additional pass over the text.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/git_lfs.hpp"
#include "runtime/files/json_scan.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace shoal::model {

/// Levels of objects and lists inside each other. The files and messages that
/// are read here have fewer than ten.
inline constexpr std::size_t json_depth_max = 64;
/// Bytes of foreign text that an error shows.
inline constexpr std::size_t json_shown_max = 80;

/// Whether objects and lists nest deeper than json_depth_max in the part of the
/// text that a parser would read: all of it, or up to the first error.
inline bool nests_too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool too_deep = false;
  for_each_mark(text, [&](char c) {
    if (c == '[' || c == '{')
      too_deep = ++depth > json_depth_max;
    else if ((c == ']' || c == '}') && depth > 0)
      --depth;
    return !too_deep;
  });
  return too_deep;
}

/// @returns a discarded value if the text is not JSON or nests too deep.
/// `watch` is the library's callback.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text,
                const typename Json::parser_callback_t& watch = nullptr) {
  if (nests_too_deep(text))
    return Json(Json::value_t::discarded);
  return Json::parse(text, watch, false);
}

/// Parses a text that must be an object.
template <class Json = nlohmann::json>
result<Json> parse_json_object(std::string_view text, std::string_view where) {
  const std::string source(where);
  if (is_lfs_pointer(text))
    return failure{source + ": " + lfs_pointer_text};
  if (nests_too_deep(text))
    return failure{source + ": is nested deeper than "
                   + std::to_string(json_depth_max) + " levels"};
  try {
    Json object = Json::parse(text);
    if (object.is_object())
      return object;
    return failure{source + ": is not a JSON object"};
  } catch (const typename Json::parse_error& error) {
    // The library counts from 1; 1 beyond the end where the text is cut off.
    const std::size_t end = error.byte == 0 ? 0 : error.byte - 1;
    const auto before = text.substr(0, end);
    const auto line = 1 + std::ranges::count(before, '\n');
    // Some programs cut texts between the two.
    const bool half =
      std::string_view(error.what()).find("surrogate") != std::string::npos;
    return failure{
      source + ": is not valid JSON: "
      + (end >= text.size() ? "it is cut off at byte "
         : line > 1         ? "line " + std::to_string(line) + ", byte "
                            : "byte ")
      + std::to_string(error.byte)
      + (half ? ", half of a surrogate pair (\\ud800 to \\udfff)" : "")};
  } catch (const typename Json::exception&) { // a number out of range
    return failure{source + ": is not valid JSON"};
  }
}

/// A value as JSON, for a file, a line or a peer: UTF-8 without raw control
/// characters, whatever its texts contain. Invalid UTF-8 is replaced by U+FFFD.
/// @param indent  spaces for each level; -1: all on one line
template <class Json>
std::string json_text(const Json& value, int indent = -1) {
  return core::escape_controls(
    value.dump(indent, ' ', false, Json::error_handler_t::replace));
}

/// A value as an error shows it: a scalar as it is written, long texts cut,
/// other values by their kind.
template <class Json>
std::string shown(const Json& value) {
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "a list";
  const auto print = [](const Json& v) {
    return v.dump(-1, ' ', true, Json::error_handler_t::replace);
  };
  const auto* const text = value.template get_ptr<const std::string*>();
  if (text == nullptr || text->size() <= json_shown_max)
    return print(value);
  return print(Json(text->substr(0, json_shown_max))) + " ...";
}

} // namespace shoal::model
