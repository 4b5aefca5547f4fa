// runtime/model/text/models/json_view.hpp -- a JSON value and the path to it.
//
// For reading a deep file with a check at every key. The views of one file
// share one fault, and keep the first; values read after it have no meaning. A
// caller checks for a fault at the end, and before it allocates or loops.
//
// Errors: the fault names the file, the path and the error. Private to this
//         folder's sources (nlohmann/json).
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/text/shown.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::model::text {

/// Nested "Sequence" components and the components of one file.
inline constexpr int nesting_max = 8;
inline constexpr std::size_t components_max = 256;
/// The bytes of a fault after the path: a sentence with two or three quoted
/// texts.
inline constexpr std::size_t fault_bytes_max = 1024;

class json_view {
public:
  json_view(const nlohmann::json& value, std::string path, std::string& fault)
    : value_(&value), path_(std::move(path)), fault_(&fault) {}

  /// The member of an object; a view of null if there is none, or no object.
  json_view operator[](std::string_view key) const {
    static const nlohmann::json null;
    const std::string path = path_ + "." + std::string(key);
    if (value_->is_object()) {
      if (auto it = value_->find(key); it != value_->end())
        return {*it, path, *fault_};
    }
    return {null, path, *fault_};
  }
  json_view operator[](std::size_t index) const {
    return {(*value_)[index], path_ + "[" + std::to_string(index) + "]",
            *fault_};
  }

  bool ok() const { return fault_->empty(); }
  failure why() const { return {*fault_}; }
  /// @param what may hold texts of the file
  void fail(std::string_view what) const {
    if (fault_->empty())
      *fault_ = path_ + ": " + core::shown(what, fault_bytes_max);
  }

  bool is_null() const { return value_->is_null(); }
  const nlohmann::json& raw() const { return *value_; }
  const std::string& path() const { return path_; }

  /// The number of elements of an array, at most `max`; 0 if it is no array.
  std::size_t array(std::size_t max) const {
    if (!value_->is_array()) {
      fail("is not an array");
      return 0;
    }
    if (value_->size() > max) {
      fail("has more than " + std::to_string(max) + " elements");
      return 0;
    }
    return value_->size();
  }
  /// Calls add(element) for each element of an array, until there is a fault.
  template <class Add>
  void each(std::size_t max, const Add& add) const {
    const std::size_t count = array(max);
    for (std::size_t i = 0; i < count && ok(); ++i)
      add((*this)[i]);
  }
  std::string_view string() const {
    if (const auto* text = value_->get_ptr<const std::string*>())
      return *text;
    fail("is not a text");
    return {};
  }
  bool boolean() const {
    if (!value_->is_boolean())
      fail("is neither true nor false");
    return value_->is_boolean() && value_->get<bool>();
  }
  /// Like boolean(), with a default if it is missing or null.
  bool boolean(bool usual) const { return is_null() ? usual : boolean(); }
  std::uint64_t number(std::uint64_t max) const {
    if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > max) {
      fail("is not a whole number up to " + std::to_string(max));
      return 0;
    }
    return value_->get<std::uint64_t>();
  }

private:
  const nlohmann::json* value_;
  std::string path_;
  std::string* fault_;
};

/// The type of a component, which may be a "Sequence" of others.
/// @param depth  of such sequences around it
/// @param before how many components of the file have been read
/// @returns "" with a fault, if it has none or there are too many
inline std::string_view
component_type(const json_view& from, int depth, std::size_t before) {
  const std::string_view type = from["type"].string();
  if (depth > nesting_max || before >= components_max)
    from.fail("too many components, or nested too deep");
  return from.ok() ? type : std::string_view();
}

} // namespace shoal::model::text
