// runtime/openai/request_fields.hpp -- reads the fields of a request's body. For
// this folder's sources.
//
// Errors: the first mistake is kept, as an api_error with the field's name.
#pragma once

#include "runtime/files/json.hpp"
#include "runtime/openai/field_log.hpp"
#include "runtime/openai/generation_options.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace shoal::openai {

using json = nlohmann::ordered_json;
using model::shown;

/// Parses a body that must be an object with at most this many values.
std::variant<json, api_error>
parse_body(std::string_view body, std::size_t values_max);

/// A number without fraction; 16.0 is one, too.
std::optional<std::int64_t> whole(const json& value);

/// Reads fields of an object and keeps the first mistake. A field that is
/// absent or null leaves its target as it is.
class fields {
public:
  /// @param told is told which fields are read; may be null
  explicit fields(const json& object, field_log* told = nullptr)
    : object_(object), told_(told) {}

  bool ok() const { return !mistake_; }
  api_error& mistake() { return *mistake_; }

  void wrong(const std::string& name, const std::string& what,
             const char* code = "invalid_value") {
    if (!mistake_)
      mistake_ = invalid_request(name + " " + what, name, code);
  }
  void not_a(const std::string& name, const json& value, const char* type) {
    wrong(name, "is " + shown(value) + ", must be " + type, "invalid_type");
  }

  /// nullptr if the field is absent or null, or there is a mistake already.
  const json* find(const char* name) const { return find(name, {}); }

  /// As find(), of an object.
  const json* object(const char* name) {
    const json* const value = find(name);
    if (!value || value->is_object())
      return value;
    not_a(name, *value, "an object");
    return nullptr;
  }

  /// As find(), of a list that must be there and have elements, which are called
  /// `noun`. @param type  what the field may be
  const json* filled_list(const char* name, const char* type, const char* noun,
                          std::size_t elements_max) {
    const json* const value = find(name);
    if (!value)
      wrong(name, std::string("is missing: give ") + type,
            "missing_required_parameter");
    else if (!value->is_array())
      not_a(name, *value, type);
    else if (value->empty())
      wrong(name, "is an empty list");
    else if (value->size() > elements_max)
      wrong(name, "has more than " + std::to_string(elements_max) + " " + noun);
    return ok() ? value : nullptr;
  }

  /// The text of a member that an object inside of the body must have.
  /// @param where  the object is
  std::string
  text_in(const json& object, const char* name, const std::string& where) {
    const auto found = object.find(name);
    if (found == object.end())
      wrong(where + "." + name, "is missing", "missing_required_parameter");
    else if (!found->is_string())
      not_a(where + "." + name, *found, "a string");
    else
      return found->get<std::string>();
    return {};
  }

  void flag(const char* name, bool& into) {
    const json* const value = find(name, {kind::flag});
    if (value && !value->is_boolean())
      return not_a(name, *value, "true or false");
    if (value)
      into = value->get<bool>();
  }

  void text(const char* name, std::size_t bytes_max, std::string& into) {
    const json* const value =
      find(name, {kind::text, 0, std::int64_t(bytes_max)});
    if (!value)
      return;
    if (!value->is_string())
      return not_a(name, *value, "a string");
    into = value->get<std::string>();
    if (into.size() > bytes_max)
      wrong(name, "is longer than " + std::to_string(bytes_max) + " bytes");
  }

  /// @returns whether the field is there and right
  bool integer(const char* name, std::int64_t low, std::int64_t high,
               std::int64_t& into) {
    const json* const value = find(name, {kind::integer, low, high});
    if (!value)
      return false;
    if (!value->is_number())
      not_a(name, *value, "a whole number");
    else if (const auto number = whole(*value);
             !number || *number < low || *number > high)
      wrong(name, "is " + shown(*value) + ", must be a whole number between "
                    + std::to_string(low) + " and " + std::to_string(high));
    else
      into = *number;
    return ok();
  }
  void integer(const char* name, std::int64_t low, std::int64_t high,
               std::uint32_t& into) {
    if (std::int64_t number = 0; integer(name, low, high, number))
      into = static_cast<std::uint32_t>(number);
  }
  void integer(const char* name, std::int64_t low, std::int64_t high,
               std::optional<std::uint32_t>& into) {
    if (std::int64_t number = 0; integer(name, low, high, number))
      into = static_cast<std::uint32_t>(number);
  }

  /// @param above  whether `low` itself is refused
  void number(const char* name, int low, int high, bool above,
              std::optional<float>& into) {
    const json* const value = find(name, {kind::number, low, high, above});
    if (!value)
      return;
    if (!value->is_number())
      return not_a(name, *value, "a number");
    const auto number = value->get<double>();
    const auto rounded = static_cast<float>(number);
    // A tiny number may be 0 as a float.
    if (number < low || number > high || (above && !(rounded > float(low))))
      return wrong(name,
                   "is " + shown(*value) + ", must be "
                     + (above ? "above " + std::to_string(low) + " and at most "
                              : "between " + std::to_string(low) + " and ")
                     + std::to_string(high));
    into = rounded;
  }

private:
  using kind = read_field::kind;

  const json* find(const char* name, const read_field& as) const {
    if (told_)
      told_->add(name, as);
    if (mistake_)
      return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  const json& object_;
  field_log* const told_;
  std::optional<api_error> mistake_;
};

/// The tools of another API, as chats have them; null if there are none.
/// @param type     of a tool
/// @param typeless whether that may be left out
/// @param as_chat  makes one of a tool with a name; is told its place for errors
json read_tools_of(
  fields& in, std::size_t tools_max, std::string_view type, bool typeless,
  const std::function<json(const json& tool, const std::string& place)>&
    as_chat);

/// Reads what requests of all kinds have in common, but max_tokens and logprobs.
void read_options(fields& in, const request_limits& limits,
                  generation_options& into);

} // namespace shoal::openai
