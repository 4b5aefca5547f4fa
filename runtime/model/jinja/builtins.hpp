// runtime/model/jinja/builtins.hpp -- operators, filters, tests and methods.
//
// Filters: abs attr capitalize center count d default dictsort e escape first
// float format indent int items join last length list lower map max min reject
// rejectattr replace reverse round safe select selectattr sort string sum title
// tojson trim unique upper wordcount.
// Tests: boolean callable defined divisibleby eq equalto even false filter float
// ge greaterthan gt in integer iterable le lessthan lower lt mapping ne none
// number odd sameas sequence string test true undefined upper, and == != < <= >
// >=.
// Globals: cycler dict joiner namespace raise_exception range strftime_now.
//
// Differences from Jinja: escape and safe give plain texts, nothing is escaped
// twice.
//
// Errors: template_error.
#pragma once

#include "runtime/model/jinja/values/value.hpp"

#include <initializer_list>
#include <optional>
#include <string_view>

namespace shoal::jinja {

class interpreter;

/// Arguments in the order of the parameters of a Python function.
class bound_arguments {
public:
  /// @param required  as many of the names must be given
  bound_arguments(std::string_view function, call_arguments& from,
                  std::initializer_list<const char*> names,
                  std::size_t required = 0);

  bool has(std::size_t i) const { return given_[i].has_value(); }
  /// @pre has(i)
  const value& at(std::size_t i) const { return *given_[i]; }
  value get(std::size_t i, value usual) const {
    return has(i) ? at(i) : std::move(usual);
  }
  bool flag(std::size_t i, bool usual) const {
    return has(i) ? at(i).truth() : usual;
  }
  /// @throws template_error if it is no whole number
  std::int64_t whole(std::size_t i, std::int64_t usual) const;
  /// @throws template_error if it is no string
  const marked_text& text(std::size_t i) const;
  /// Neither left out nor none.
  bool is_set(std::size_t i) const { return has(i) && !at(i).is_none(); }

private:
  std::string function_;
  std::vector<std::optional<value>> given_;
};

// operators.cpp
value arithmetic(budget& from, std::string_view sign, const value& a,
                 const value& b);
value negative(const value& v);
/// v[first:last:step]; none: left out.
value slice(budget& from, const value& v, const value& first, const value& last,
            const value& step);
/// text % values, as in Python.
value format(budget& from, const marked_text& text, const value& values);

// filters.cpp, list_filters.cpp, tests.cpp
using filter_function = value (*)(interpreter& by, const value& in,
                                  call_arguments& args);
using test_function = bool (*)(interpreter& by, const value& in,
                               call_arguments& args);
/// Null: there is none of that name.
filter_function find_filter(std::string_view name);
filter_function find_list_filter(std::string_view name);
test_function find_test(std::string_view name);
/// @returns false for an unknown comparison
bool compare_by(budget& from, std::string_view sign, const value& a,
                const value& b);

// methods.cpp
/// A method of a string, list or map, bound to it; nothing: it has none of that
/// name.
std::optional<value> method_of(const value& self, std::string_view name);
/// text.replace(old, fresh, most).
marked_text
replace(budget& from, const marked_text& text, const marked_text& old,
        const marked_text& fresh, std::optional<std::int64_t> most);
/// text.join(items) as Python's, or as Jinja's filter, which takes any values.
marked_text join(budget& from, const marked_text& between,
                 const std::vector<value>& items, bool any_value);

} // namespace shoal::jinja
