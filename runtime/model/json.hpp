// runtime/model/json.hpp -- JSON with foreign text in it, read and written.
//
// The library parses and frees values of any depth, but recurses where it
// copies, compares or prints one: a few hundred thousand brackets would use up
// the stack. So foreign text is parsed by what is here and nowhere else: what
// nests deeper than json_depth_max is refused before it is parsed.
//
// It throws where it prints a text that is not UTF-8, such as the name of a
// file. So JSON is written by json_text() and nothing else.
//
// Errors: parse_json() gives a discarded value, parse_json_object() a failure
//         that begins with `where`.
// Cost:   one more pass over the text.
#pragma once

#include "runtime/core/shown.hpp"
#include "runtime/model/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal::model {

/// Objects and lists in each other. The files and messages that are read here
/// have fewer than ten.
inline constexpr std::size_t json_depth_max = 64;
/// Bytes of a foreign text that an error shows.
inline constexpr std::size_t json_shown_max = 80;

/// Whether objects and lists nest deeper than that in the part of the text
/// that a parser would read: all, or up to the first fault.
inline bool nests_too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (quoted)
      continue;
    else if ((c == '[' || c == '{') && ++depth > json_depth_max)
      return true;
    else if ((c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return false;
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
  const std::string at(where);
  if (nests_too_deep(text))
    return failure{at + ": is nested deeper than "
                   + std::to_string(json_depth_max) + " levels"};
  try {
    Json object = Json::parse(text);
    if (object.is_object())
      return object;
    return failure{at + ": is not a JSON object"};
  } catch (const typename Json::parse_error& error) {
    return failure{at + ": is not valid JSON (byte "
                   + std::to_string(error.byte) + ")"};
  } catch (const typename Json::exception&) { // a number out of range
    return failure{at + ": is not valid JSON"};
  }
}

/// A value as JSON, for a file, a line or a peer: UTF-8 without raw controls,
/// whatever its texts hold. What is not UTF-8 in them is replaced by U+FFFD.
/// @param indent  spaces for each level; -1: all on one line
template <class Json>
std::string json_text(const Json& value, int indent = -1) {
  return core::escape_controls(
    value.dump(indent, ' ', false, Json::error_handler_t::replace));
}

/// A value for an error: a scalar as it is written, long texts cut, others by
/// their kind.
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
