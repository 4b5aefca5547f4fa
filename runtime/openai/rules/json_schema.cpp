// runtime/openai/rules/json_schema.cpp -- schemas, keyword by keyword.
#include "runtime/openai/rules/json_schema.hpp"

#include "runtime/core/grammar/gbnf.hpp"
#include "runtime/core/grammar/grammar.hpp"
#include "runtime/core/grammar/regex.hpp"
#include "runtime/core/grammar/stacks.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_scan.hpp"
#include "runtime/openai/rules/json_numbers.hpp"
#include "runtime/openai/rules/json_parts.hpp"
#include "runtime/openai/rules/schema_keywords.hpp"
#include "runtime/openai/rules/string_formats.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shoal::openai {

namespace {

namespace g = core::grammar;
using g::expression;

/// Properties that may all come next, also by several branches of anyOf: each is a node
/// that takes a byte, and other values may come there, too.
constexpr std::size_t next_properties_max = g::stacks_max - 96;

/// Properties of an object, with those that are only required.
constexpr std::size_t properties_max = model::ordered_keys_max;

class schema_compiler {
public:
  schema_compiler(const schema& root, schema_work& work)
    : root_(root), work_(work) {}

  g::rule_set compile() {
    out_.add("root");
    expression body = of(root_, "", 0);
    out_.bodies.front() = std::move(body);
    return std::move(out_);
  }

  g::rule_set any_object() {
    out_.add("root");
    out_.bodies.front() = g::of_rule(any_object_rule());
    return std::move(out_);
  }

private:
  expression of(const schema& s, const std::string& path, std::size_t depth) {
    if (depth > model::json_depth_max)
      throw bad_schema{path, "its references go in a circle"};
    work_.spend(2, path);
    if (s.is_boolean())
      return s.get<bool>() ? any_value() : g::choice({});
    check_keywords(s, path);
    if (s.contains("$ref"))
      return referred(s, path, depth);
    if (s.contains("allOf"))
      return of(merged_all_of(root_, s, path, work_), path, depth + 1);
    if (s.contains("anyOf") || s.contains("oneOf"))
      return branches(s, path, depth);
    if (s.contains("const"))
      return values(s, schema::array({s["const"]}), path);
    if (s.contains("enum")) {
      if (!s["enum"].is_array() || s["enum"].empty())
        throw bad_schema{below(path, "enum"), "must be a list with values"};
      return values(s, s["enum"], path);
    }
    const std::vector<std::string> types = types_of(s, path);
    if (types.empty())
      return any_value();
    std::vector<expression> ways;
    for (const std::string& type : types)
      ways.push_back(of_type(s, type, path, depth));
    return g::choice(std::move(ways));
  }

  expression of_type(const schema& s, const std::string& type,
                     const std::string& path, std::size_t depth) {
    if (type == "null")
      return g::literal("null");
    if (type == "boolean")
      return g::choice({g::literal("true"), g::literal("false")});
    if (type == "integer" || type == "number")
      return number(s, type == "integer", path);
    if (type == "string")
      return string(s, path);
    if (type == "array")
      return array(s, path, depth);
    return object(s, path, depth);
  }

  /// What a reference and the keywords beside it say.
  expression
  referred(const schema& s, const std::string& path, std::size_t depth) {
    schema rest = s;
    rest.erase("$ref");
    const auto says = [](const auto& item) {
      return !is_annotation(item.key());
    };
    if (std::ranges::none_of(rest.items(), says))
      return reference(s, path, depth);
    const schema alone{{"$ref", s["$ref"]}};
    return of(merged(root_, rest, alone, path, work_), path, depth + 1);
  }

  /// A schema within this one; a rule of its own, so that it may refer to itself.
  expression
  reference(const schema& s, const std::string& path, std::size_t depth) {
    const std::string to = reference_of(s, path);
    const auto known = references_.find(to);
    if (known != references_.end()) {
      wide_ = std::max(wide_, wide_references_[to]);
      return g::of_rule(known->second);
    }
    const schema& target = resolve(root_, to, path);
    const g::rule_id rule = out_.add(to);
    references_.emplace(to, rule);
    const std::size_t wide_before = std::exchange(wide_, 0);
    const std::string at = to.size() > 2 ? below("", to.substr(2)) : "";
    expression body = of(target, at, depth + 1);
    out_.bodies[rule] = std::move(body);
    wide_references_[to] = wide_;
    wide_ = std::max(wide_, wide_before);
    return g::of_rule(rule);
  }

  void check_wide(const std::string& path) const {
    if (wide_ > next_properties_max)
      throw bad_schema{
        path, "more than " + std::to_string(next_properties_max)
                + " properties that may all come next are not understood: "
                  "require some, or give anyOf fewer branches"};
  }

  expression
  branches(const schema& s, const std::string& path, std::size_t depth) {
    const bool any = s.contains("anyOf");
    const std::string key = any ? "anyOf" : "oneOf";
    if (any && s.contains("oneOf"))
      throw bad_schema{path, "anyOf and oneOf together are not understood"};
    if (!s[key].is_array() || s[key].empty())
      throw bad_schema{below(path, key), "must be a list with schemas"};
    if (!any)
      check_exclusive(root_, s[key], s, below(path, key), work_);
    schema around = s;
    around.erase(key);
    std::vector<expression> ways;
    // A text may be of all branches until a property tells them apart.
    const std::size_t wide_before = wide_;
    std::size_t together = 0;
    for (std::size_t k = 0; k != s[key].size(); ++k) {
      const std::string at = below(path, key, std::to_string(k));
      wide_ = 0;
      ways.push_back(
        of(merged(root_, around, s[key][k], at, work_), at, depth + 1));
      together += wide_;
    }
    wide_ = together;
    check_wide(below(path, key));
    wide_ = std::max(wide_, wide_before);
    return g::choice(std::move(ways));
  }

  /// The values of const or enum that have the type.
  expression
  values(const schema& s, const schema& of, const std::string& path) {
    for (const auto& [key, value] : s.items())
      if (key != "const" && key != "enum" && key != "type"
          && !is_annotation(key))
        throw bad_schema{below(path, key),
                         "is not understood beside const and enum"};
    if (s.contains("const") && s.contains("enum"))
      throw bad_schema{path, "const and enum together are not understood"};
    const std::vector<std::string> types =
      s.contains("type") ? types_of(s, path) : std::vector<std::string>{};
    work_.spend(of.size() + steps_to_copy(of), path);
    std::vector<expression> ways;
    for (const schema& value : of)
      if (types.empty() || has_type(value, types))
        ways.push_back(g::literal(model::json_text(value)));
    return g::choice(std::move(ways));
  }

  expression number(const schema& s, bool whole, const std::string& path) {
    const number_bounds bounds = bounds_of(s, path);
    if (!bounds.low && !bounds.high)
      return g::of_rule(whole ? shared("integer", any_integer)
                              : shared("number", any_number));
    work_.spend(16, path);
    auto made = whole ? integers_between(bounds) : numbers_between(bounds);
    if (!made)
      throw bad_schema{path, made.message()};
    return std::move(*made);
  }

  static std::string
  text_in(const schema& s, const char* key, const std::string& path) {
    if (!s.contains(key))
      return {};
    if (!s[key].is_string())
      throw bad_schema{below(path, key), "must be a string"};
    return s[key].get<std::string>();
  }

  expression string(const schema& s, const std::string& path) {
    const auto least = count_of(s, "minLength", path);
    const auto most = count_of(s, "maxLength", path);
    const std::string pattern = text_in(s, "pattern", path);
    const std::string name = text_in(s, "format", path);
    const bool has_pattern = s.contains("pattern");
    if (const auto format = format_named(name)) {
      if (has_pattern || least.value_or(0) > format->least
          || most.value_or(format->most) < format->most)
        throw bad_schema{
          path, has_pattern
                  ? "pattern beside format " + name + " is not understood"
                  : "lengths beside format " + name
                      + " are understood only if all of its texts, of "
                      + std::to_string(format->least)
                      + (format->most == g::unbounded
                           ? " or more"
                           : " to " + std::to_string(format->most))
                      + " characters, have them"};
      return g::of_rule(shared("format " + name, [&] {
        return of_pattern("^(" + format->pattern + ")$", path);
      }));
    }
    if (has_pattern) {
      if (least || most)
        throw bad_schema{path, "lengths beside a pattern are not understood: "
                               "let the pattern say them"};
      return of_pattern(pattern, path);
    }
    if (!least && !most)
      return g::of_rule(shared("string", any_string));
    work_.spend(4, path);
    return quoted(g::repetition(string_character(), least.value_or(0),
                                most.value_or(g::unbounded)));
  }

  expression of_pattern(const std::string& pattern, const std::string& path) {
    work_.spend(pattern.size(), path);
    auto inner = g::parse_regex(pattern, g::regex_use::json_string);
    if (!inner)
      throw bad_schema{below(path, "pattern"), inner.message()};
    return quoted(std::move(*inner));
  }

  expression
  array(const schema& s, const std::string& path, std::size_t depth) {
    std::vector<expression> first;
    if (s.contains("prefixItems")) {
      if (!s["prefixItems"].is_array())
        throw bad_schema{below(path, "prefixItems"),
                         "must be a list of schemas"};
      for (std::size_t k = 0; k != s["prefixItems"].size(); ++k)
        first.push_back(of(s["prefixItems"][k],
                           below(path, "prefixItems", std::to_string(k)),
                           depth + 1));
    }
    const auto least = count_of(s, "minItems", path).value_or(0);
    const auto most = count_of(s, "maxItems", path).value_or(g::unbounded);
    if (first.size() > most)
      first.resize(most);
    const auto count = static_cast<std::uint32_t>(first.size());
    const bool more = s.contains("items") ? s["items"] != false : count == 0;
    const std::uint32_t least_more = least > count ? least - count : 0;
    const std::uint32_t most_more = !more                  ? 0
                                    : most == g::unbounded ? most
                                                           : most - count;
    if (least_more > most_more)
      return g::choice({});
    const auto separated = [](expression item) {
      return g::sequence({g::literal(","), gap(), std::move(item)});
    };
    std::vector<expression> inside;
    for (std::uint32_t k = 0; k != count; ++k)
      inside.push_back(k == 0 ? std::move(first[k])
                              : separated(std::move(first[k])));
    if (most_more != 0) {
      const g::rule_id item = out_.add(below(path, "items"));
      expression body = s.contains("items")
                          ? of(s["items"], below(path, "items"), depth + 1)
                          : any_value();
      out_.bodies[item] = std::move(body);
      const auto less = [](std::uint32_t n) {
        return n == g::unbounded || n == 0 ? n : n - 1;
      };
      if (count != 0)
        inside.push_back(
          g::repetition(separated(g::of_rule(item)), least_more, most_more));
      else
        inside.push_back(g::repetition(
          g::sequence({g::of_rule(item),
                       g::repetition(separated(g::of_rule(item)),
                                     less(least_more), less(most_more))}),
          least_more == 0 ? 0 : 1, 1));
    }
    return g::sequence({g::literal("["), gap(), g::sequence(std::move(inside)),
                        gap(), g::literal("]")});
  }

  static void check_count(const schema& properties,
                          const std::vector<std::string>& required,
                          const std::string& path) {
    std::set<std::string> names(required.begin(), required.end());
    for (const auto& [name, value] : properties.items())
      names.insert(name);
    if (names.size() > properties_max)
      throw bad_schema{path, "an object may have at most "
                               + std::to_string(properties_max)
                               + " properties, with those that are required"};
  }

  expression
  object(const schema& s, const std::string& path, std::size_t depth) {
    static const schema none = schema::object();
    const schema& properties =
      s.contains("properties") ? s["properties"] : none;
    if (!properties.is_object())
      throw bad_schema{below(path, "properties"), "must be an object"};
    const std::vector<std::string> required = required_of(s, path);
    const std::set<std::string> needed(required.begin(), required.end());
    std::set<std::string> own;
    const bool named = !properties.empty() || !required.empty();
    if (properties.size() + required.size() > properties_max)
      check_count(properties, required, path);
    const schema others = s.contains("additionalProperties")
                            ? s["additionalProperties"]
                            : schema(!named);
    if (!named && others == true)
      return g::of_rule(any_object_rule());

    struct property {
      std::string name;
      expression value;
      bool needed;
    };
    std::vector<property> all;
    for (const auto& [name, value] : properties.items()) {
      work_.spend(2, path);
      own.insert(name);
      all.push_back({name,
                     of(value, below(path, "properties", name), depth + 1),
                     needed.contains(name)});
    }
    const bool closed = s.contains("additionalProperties") && others == false;
    for (const std::string& name : required)
      if (own.contains(name))
        continue;
      else if (closed)
        return g::choice({}); // it must be there, and must not
      else
        all.push_back({name,
                       others.is_object() ? of(
                         others, below(path, "additionalProperties"), depth + 1)
                                          : any_value(),
                       true});

    std::set<std::u32string> names;
    std::size_t next_count = 0;
    for (const property& p : all) {
      names.insert(code_points(p.name));
      wide_ = std::max(wide_, ++next_count);
      if (p.needed)
        next_count = 0;
    }
    check_wide(below(path, "properties"));
    // From the last property to the first: what may come next, and what may follow
    // when some has been written.
    expression next = g::choice({}), rest = g::literal("");
    if (others != false) {
      for (const std::u32string& name : names)
        if (name.size() > other_names_max)
          throw bad_schema{below(path, "properties"),
                           "a name of more than "
                             + std::to_string(other_names_max)
                             + " characters is understood only with "
                               "additionalProperties: false"};
      const g::rule_id pair = out_.add(below(path, "additionalProperties"));
      expression value =
        of(others, below(path, "additionalProperties"), depth + 1);
      out_.bodies[pair] =
        g::sequence({quoted(no_string_of(names)), g::literal(":"), gap(),
                     std::move(value)});
      rest = g::repetition(
        g::sequence({g::literal(","), gap(), g::of_rule(pair)}), 0);
      next = g::sequence({g::of_rule(pair), rest});
    }
    g::rule_id next_rule = out_.add(path, std::move(next));
    g::rule_id rest_rule = out_.add(path, std::move(rest));
    bool ends = true; // what follows may be nothing
    for (std::size_t k = all.size(); k-- > 0;) {
      const g::rule_id pair = out_.add(
        below(path, "properties", all[k].name),
        g::sequence({g::literal(model::json_text(schema(all[k].name)) + ":"),
                     gap(), std::move(all[k].value)}));
      std::vector<expression> ways{
        g::sequence({g::of_rule(pair), g::of_rule(rest_rule)})};
      if (!all[k].needed)
        ways.push_back(g::of_rule(next_rule));
      ends = ends && !all[k].needed;
      next_rule = out_.add(path, g::choice(std::move(ways)));
      expression more =
        g::sequence({g::literal(","), gap(), g::of_rule(next_rule)});
      rest_rule =
        out_.add(path, ends ? g::optional(std::move(more)) : std::move(more));
    }
    expression inside = g::of_rule(next_rule);
    if (ends)
      inside = g::optional(std::move(inside));
    return g::sequence(
      {g::literal("{"), gap(), std::move(inside), gap(), g::literal("}")});
  }

  /// A rule that is the same wherever it is needed.
  template <class Make>
  g::rule_id shared(const std::string& name, Make make) {
    if (const auto known = shared_.find(name); known != shared_.end())
      return known->second;
    expression body = make();
    return shared_[name] = out_.add(name, std::move(body));
  }

  g::rule_id any_object_rule() {
    any_value();
    return *object_;
  }

  expression any_value() {
    if (!value_) {
      const g::rule_id value = out_.add("value"), object = out_.add("object"),
                       array = out_.add("array"),
                       text = shared("string", any_string),
                       numeral = shared("number", any_number);
      value_ = value;
      object_ = object;
      const auto list = [](expression item) {
        return g::optional(g::sequence(
          {item,
           g::repetition(g::sequence({g::literal(","), gap(), item}), 0)}));
      };
      out_.bodies[value] =
        g::choice({g::of_rule(object), g::of_rule(array), g::of_rule(text),
                   g::of_rule(numeral), g::literal("true"), g::literal("false"),
                   g::literal("null")});
      out_.bodies[array] =
        g::sequence({g::literal("["), gap(), list(g::of_rule(value)), gap(),
                     g::literal("]")});
      out_.bodies[object] =
        g::sequence({g::literal("{"), gap(),
                     list(g::sequence({g::of_rule(text), g::literal(":"), gap(),
                                       g::of_rule(value)})),
                     gap(), g::literal("}")});
    }
    return g::of_rule(*value_);
  }

  const schema& root_;
  schema_work& work_;
  g::rule_set out_;
  std::map<std::string, g::rule_id> references_;
  std::map<std::string, std::size_t> wide_references_;
  /// Properties that may all come next somewhere in the values that were compiled.
  std::size_t wide_ = 0;
  std::map<std::string, g::rule_id> shared_;
  std::optional<g::rule_id> value_, object_;
};

} // namespace

model::result<g::rule_set>
json_schema_rules(std::string_view text, schema_work& work) {
  if (text.size() > g::pattern_bytes_max)
    return model::failure{"the schema is longer than "
                          + std::to_string(g::pattern_bytes_max) + " bytes"};
  if (!model::nests_too_deep(text) && model::has_too_many_keys(text))
    return model::failure{"the schema has an object with more than "
                          + std::to_string(model::ordered_keys_max) + " keys"};
  const schema parsed = model::parse_json<schema>(text);
  if (parsed.is_discarded())
    return model::failure{"the schema is not JSON, or nests too deeply"};
  try {
    return schema_compiler(parsed, work).compile();
  } catch (const bad_schema& bad) {
    return model::failure{"schema" + (bad.path.empty() ? "" : " " + bad.path)
                          + ": " + bad.why};
  } catch (const schema::exception& e) { // a value of a kind nobody looked at
    return model::failure{std::string("the schema is not understood: ")
                          + e.what()};
  }
}

model::result<g::rule_set> json_schema_rules(std::string_view text) {
  schema_work work;
  return json_schema_rules(text, work);
}

g::rule_set json_object_rules() {
  const schema any = true;
  schema_work work;
  return schema_compiler(any, work).any_object();
}

} // namespace shoal::openai
