// runtime/core/result.hpp -- a value, or a sentence that says why there is
// none.
//
// Model directories, data and run files come from users and other machines, so
// their faults are values, and the sentence names file, key or tensor.
#pragma once

#include "runtime/core/assert.hpp"

#include <optional>
#include <string>
#include <utility>

namespace shoal::model {

/// The reason why an operation failed, as one line of text.
struct failure {
  std::string message;
};

/// A value or a failure.
template <class Value>
class [[nodiscard]] result {
public:
  result(Value value) : value_(std::move(value)) {}
  result(failure why) : failure_(std::move(why)) {}

  explicit operator bool() const noexcept { return value_.has_value(); }
  Value& operator*() & {
    SHOAL_ASSERT(value_);
    return *value_;
  }
  const Value& operator*() const& {
    SHOAL_ASSERT(value_);
    return *value_;
  }
  Value&& operator*() && {
    SHOAL_ASSERT(value_);
    return std::move(*value_);
  }
  Value* operator->() { return &**this; }
  const Value* operator->() const { return &**this; }
  /// @pre there is no value
  const failure& why() const {
    SHOAL_ASSERT(!value_);
    return failure_;
  }
  const std::string& message() const { return why().message; }

private:
  std::optional<Value> value_;
  failure failure_;
};

/// Success, or a failure.
struct done {};
using status = result<done>;

} // namespace shoal::model
