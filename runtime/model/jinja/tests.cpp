// runtime/model/jinja/tests.cpp -- what follows "is", and comparisons.
#include "runtime/model/jinja/interpreter.hpp"
#include "runtime/model/jinja/values/python_text.hpp"

#include <algorithm>
#include <array>

namespace shoal::jinja {

bool compare_by(budget& from, std::string_view sign, const value& a,
                const value& b) {
  if (sign == "==" || sign == "!=")
    return equal(from, a, b) == (sign == "==");
  if (sign == "in" || sign == "not in")
    return contains(from, a, b) == (sign == "in");
  const bool unordered = (a.is_float() && a.number() != a.number())
                         || (b.is_float() && b.number() != b.number());
  const int order = compare(from, a, b);
  if (unordered)
    return false;
  if (sign == "<")
    return order < 0;
  if (sign == "<=")
    return order <= 0;
  return sign == ">" ? order > 0 : order >= 0;
}

namespace {

template <auto Property>
bool is(interpreter&, const value& in, call_arguments& args) {
  bound_arguments("test", args, {});
  return Property(in);
}

constexpr auto is_boolean = [](const value& v) { return v.is_bool(); };
constexpr auto is_true = [](const value& v) {
  return v.is_bool() && v.truth();
};
constexpr auto is_false = [](const value& v) {
  return v.is_bool() && !v.truth();
};
constexpr auto is_callable = [](const value& v) {
  return v.is_undefined() || (v.as_object() && v.as_object()->callable());
};
constexpr auto is_defined = [](const value& v) { return !v.is_undefined(); };
constexpr auto is_not_defined = [](const value& v) { return v.is_undefined(); };
constexpr auto is_float = [](const value& v) { return v.is_float(); };
constexpr auto is_integer = [](const value& v) {
  return v.is_integer() && !v.is_bool();
};
constexpr auto is_iterable = [](const value& v) {
  return v.is_undefined() || v.text() || v.as_map() || v.as_sequence();
};
constexpr auto is_mapping = [](const value& v) {
  return v.as_map() != nullptr;
};
constexpr auto is_none = [](const value& v) { return v.is_none(); };
constexpr auto is_number = [](const value& v) { return v.is_number(); };
/// Has a length and can be indexed: maps, too.
constexpr auto is_sequence = [](const value& v) {
  return v.is_undefined() || v.text() || v.as_map()
         || (v.as_sequence() && v.as_sequence()->indexed());
};
constexpr auto is_string = [](const value& v) { return v.is_string(); };

bool is_even(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("even", args, {});
  return !arithmetic(by.meter(), "%", in, std::int64_t(2)).truth();
}
bool is_odd(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("odd", args, {});
  return equal(by.meter(), arithmetic(by.meter(), "%", in, std::int64_t(2)),
               std::int64_t(1));
}
bool is_divisible(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("divisibleby", args, {"num"}, 1);
  return !arithmetic(by.meter(), "%", in, a.at(0)).truth();
}

bool is_case(interpreter& by, const value& in, call_arguments& args,
             const char* method) {
  bound_arguments("test", args, {});
  return by.call(*method_of(value(to_text(by.meter(), in)), method), {})
    .truth();
}
bool is_upper(interpreter& by, const value& in, call_arguments& args) {
  return is_case(by, in, args, "isupper");
}
bool is_lower(interpreter& by, const value& in, call_arguments& args) {
  return is_case(by, in, args, "islower");
}

bool is_same(interpreter&, const value& in, call_arguments& args) {
  const bound_arguments a("sameas", args, {"other"}, 1);
  return in.same_as(a.at(0));
}

bool is_filter(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("filter", args, {});
  const std::string name = to_text(by.meter(), in).bytes;
  return find_filter(name) || find_list_filter(name);
}
bool is_test(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("test", args, {});
  return find_test(to_text(by.meter(), in).bytes) != nullptr;
}

/// Position of a sign in the table of comparisons below.
template <std::size_t Sign>
bool is_order(interpreter& by, const value& in, call_arguments& args) {
  static constexpr std::array signs = {"==", "!=", "<", "<=", ">", ">=", "in"};
  const bound_arguments a(signs[Sign], args, {"other"}, 1);
  return compare_by(by.meter(), signs[Sign], in, a.at(0));
}

struct test_entry {
  std::string_view name;
  test_function run;
};

constexpr std::array tests = {
  test_entry{"!=", is_order<1>},
  test_entry{"<", is_order<2>},
  test_entry{"<=", is_order<3>},
  test_entry{"==", is_order<0>},
  test_entry{">", is_order<4>},
  test_entry{">=", is_order<5>},
  test_entry{"boolean", is<is_boolean>},
  test_entry{"callable", is<is_callable>},
  test_entry{"defined", is<is_defined>},
  test_entry{"divisibleby", is_divisible},
  test_entry{"eq", is_order<0>},
  test_entry{"equalto", is_order<0>},
  test_entry{"even", is_even},
  test_entry{"false", is<is_false>},
  test_entry{"filter", is_filter},
  test_entry{"float", is<is_float>},
  test_entry{"ge", is_order<5>},
  test_entry{"greaterthan", is_order<4>},
  test_entry{"gt", is_order<4>},
  test_entry{"in", is_order<6>},
  test_entry{"integer", is<is_integer>},
  test_entry{"iterable", is<is_iterable>},
  test_entry{"le", is_order<3>},
  test_entry{"lessthan", is_order<2>},
  test_entry{"lower", is_lower},
  test_entry{"lt", is_order<2>},
  test_entry{"mapping", is<is_mapping>},
  test_entry{"ne", is_order<1>},
  test_entry{"none", is<is_none>},
  test_entry{"number", is<is_number>},
  test_entry{"odd", is_odd},
  test_entry{"sameas", is_same},
  test_entry{"sequence", is<is_sequence>},
  test_entry{"string", is<is_string>},
  test_entry{"test", is_test},
  test_entry{"true", is<is_true>},
  test_entry{"undefined", is<is_not_defined>},
  test_entry{"upper", is_upper},
};

} // namespace

test_function find_test(std::string_view name) {
  const auto at = std::ranges::find(tests, name, &test_entry::name);
  return at == tests.end() ? nullptr : at->run;
}

} // namespace shoal::jinja
