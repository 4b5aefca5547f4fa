// runtime/openai/rules/json_numbers.hpp -- numbers of JSON between bounds, as grammars.
//
// Errors: bounds that are no numbers or have too many digits.
// Private to runtime/openai/rules.
#pragma once

#include "runtime/core/grammar/expression.hpp"
#include "runtime/core/result.hpp"
#include "runtime/openai/rules/schema_keywords.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace shoal::openai {

/// value / 10^decimals
struct number_bound {
  std::int64_t value = 0;
  int decimals = 0;
  bool excluded = false;
};
struct number_bounds {
  std::optional<number_bound> low, high;
};

/// @throws bad_schema
number_bounds bounds_of(const schema& s, const std::string& path);

core::grammar::expression any_integer();
core::grammar::expression any_number();
model::result<core::grammar::expression>
integers_between(const number_bounds& bounds);
model::result<core::grammar::expression>
numbers_between(const number_bounds& bounds);

} // namespace shoal::openai
