// runtime/openai/rules/json_schema.cpp -- schemas, keyword by keyword.
#include "runtime/openai/rules/json_schema.hpp"

#include "runtime/core/grammar/gbnf.hpp"
#include "runtime/core/grammar/grammar.hpp"
#include "runtime/core/grammar/regex.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_scan.hpp"
#include "runtime/openai/rules/json_numbers.hpp"
#include "runtime/openai/rules/schema_keywords.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shoal::openai {

namespace {

namespace g = core::grammar;
using g::expression;

// --- What JSON consists of -------------------------------------------------

const std::vector<g::code_range> plain_in_string{
  {0x20, 0x21}, {0x23, 0x5b}, {0x5d, g::code_point_max}};

expression hex_digit() {
  return g::characters({{U'0', U'9'}, {U'A', U'F'}, {U'a', U'f'}});
}

/// A character of a string: as it is, or escaped. Surrogates are not.
expression string_character() {
  const expression low = g::sequence(
    {g::characters(
       {{U'0', U'9'}, {U'A', U'C'}, {U'E', U'F'}, {U'a', U'c'}, {U'e', U'f'}}),
     hex_digit(), hex_digit(), hex_digit()});
  const expression below_surrogates =
    g::sequence({g::characters({{U'D', U'D'}, {U'd', U'd'}}),
                 g::characters({{U'0', U'7'}}), hex_digit(), hex_digit()});
  return g::choice(
    {g::characters(plain_in_string),
     g::sequence(
       {g::literal("\\"),
        g::choice({g::characters({{U'"', U'"'},
                                  {U'\\', U'\\'},
                                  {U'/', U'/'},
                                  {U'b', U'b'},
                                  {U'f', U'f'},
                                  {U'n', U'n'},
                                  {U'r', U'r'},
                                  {U't', U't'}}),
                   g::sequence({g::literal("u"),
                                g::choice({low, below_surrogates})})})})});
}

expression quoted(expression inner) {
  return g::sequence({g::literal("\""), std::move(inner), g::literal("\"")});
}

expression any_string() {
  return quoted(g::repetition(string_character(), 0));
}

constexpr std::uint32_t indent_max = 20;

/// White space where it may be.
expression gap() {
  return g::optional(g::choice(
    {g::literal(" "),
     g::sequence({g::literal("\n"),
                  g::repetition(g::characters({{U' ', U' '}, {U'\t', U'\t'}}),
                                0, indent_max)})}));
}

/// Characters of names beside which others are allowed: each makes an expression
/// within the one before.
constexpr std::size_t other_names_max = 100;

/// A string without escapes that is none of these.
expression no_string_of(const std::set<std::u32string>& names) {
  const std::vector<g::code_range> any = plain_in_string;
  std::vector<expression> ways;
  std::vector<g::code_range> taken;
  if (!names.contains(U""))
    ways.push_back(g::literal(""));
  for (auto at = names.begin(); at != names.end(); ++at) {
    if (at->empty())
      continue;
    const char32_t first = at->front();
    if (!taken.empty() && taken.back().first == first)
      continue;
    taken.push_back({first, first});
    std::set<std::u32string> rest;
    for (const std::u32string& name : names)
      if (!name.empty() && name.front() == first)
        rest.insert(name.substr(1));
    if (!g::without({{first, first}}, any).empty())
      continue; // such a name needs an escape
    ways.push_back(
      g::sequence({g::characters({{first, first}}), no_string_of(rest)}));
  }
  ways.push_back(g::sequence({g::characters(g::without(any, taken)),
                              g::repetition(g::characters(any), 0)}));
  return g::choice(std::move(ways));
}

// --- Schemas -----------------------------------------------------------------

/// The rest of `format`: those whose texts a regular expression describes.
#define SHOAL_DATE                                                             \
  "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|"                       \
  "(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
#define SHOAL_TIME                                                             \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?"                   \
  "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
const std::map<std::string_view, std::string_view> formats{
  {"date", SHOAL_DATE},
  {"time", SHOAL_TIME},
  {"date-time", SHOAL_DATE "T" SHOAL_TIME},
  {"uuid", "[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"},
  {"ipv4", "((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}"
           "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"},
};
#undef SHOAL_DATE
#undef SHOAL_TIME

class schema_compiler {
public:
  explicit schema_compiler(const schema& root) : root_(root) {}

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
    work_.spend(1, path);
    if (s.is_boolean())
      return s.get<bool>() ? any_value() : g::choice({});
    check_keywords(s, path);
    if (s.contains("$ref"))
      return reference(s, path, depth);
    if (s.contains("allOf"))
      return of(merged_all_of(root_, s, path, work_), path, depth + 1);
    if (s.contains("anyOf") || s.contains("oneOf"))
      return branches(s, path, depth);
    if (s.contains("const"))
      return values(s, schema::array({s["const"]}), path);
    if (s.contains("enum")) {
      if (!s["enum"].is_array() || s["enum"].empty())
        throw bad_schema{path + "/enum", "must be a list with values"};
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

  /// A schema within this one; a rule of its own, so that it may refer to itself.
  expression
  reference(const schema& s, const std::string& path, std::size_t depth) {
    for (const auto& [key, value] : s.items())
      if (key != "$ref" && !is_annotation(key))
        throw bad_schema{path + "/" + key, "is not understood beside $ref"};
    const std::string to = reference_of(s, path);
    const auto known = references_.find(to);
    if (known != references_.end())
      return g::of_rule(known->second);
    const schema& target = resolve(root_, to, path);
    const g::rule_id rule = out_.add(to);
    references_.emplace(to, rule);
    expression body = of(target, to.substr(1), depth + 1);
    out_.bodies[rule] = std::move(body);
    return g::of_rule(rule);
  }

  expression
  branches(const schema& s, const std::string& path, std::size_t depth) {
    const bool any = s.contains("anyOf");
    const std::string key = any ? "anyOf" : "oneOf";
    if (any && s.contains("oneOf"))
      throw bad_schema{path, "anyOf and oneOf together are not understood"};
    if (!s[key].is_array() || s[key].empty())
      throw bad_schema{path + "/" + key, "must be a list with schemas"};
    if (!any)
      check_exclusive(root_, s[key], path + "/oneOf", work_);
    schema around = s;
    around.erase(key);
    std::vector<expression> ways;
    for (std::size_t k = 0; k != s[key].size(); ++k) {
      const std::string at = path + "/" + key + "/" + std::to_string(k);
      ways.push_back(
        of(merged(root_, around, s[key][k], at, work_), at, depth + 1));
    }
    return g::choice(std::move(ways));
  }

  /// The values of const or enum that have the type.
  expression
  values(const schema& s, const schema& of, const std::string& path) {
    for (const auto& [key, value] : s.items())
      if (key != "const" && key != "enum" && key != "type"
          && !is_annotation(key))
        throw bad_schema{path + "/" + key,
                         "is not understood beside const and enum"};
    if (s.contains("const") && s.contains("enum"))
      throw bad_schema{path, "const and enum together are not understood"};
    const std::vector<std::string> types =
      s.contains("type") ? types_of(s, path) : std::vector<std::string>{};
    std::vector<expression> ways;
    for (const schema& value : of)
      if (types.empty() || has_type(value, types))
        ways.push_back(g::literal(model::json_text(value)));
    return g::choice(std::move(ways));
  }

  expression number(const schema& s, bool whole, const std::string& path) {
    const number_bounds bounds = bounds_of(s, path);
    if (!bounds.low && !bounds.high)
      return whole ? any_integer() : any_number();
    auto made = whole ? integers_between(bounds) : numbers_between(bounds);
    if (!made)
      throw bad_schema{path, made.message()};
    return std::move(*made);
  }

  expression string(const schema& s, const std::string& path) {
    const auto least = count_of(s, "minLength", path);
    const auto most = count_of(s, "maxLength", path);
    const bool lengths = least || most;
    if (s.contains("format") && !s["format"].is_string())
      throw bad_schema{path + "/format", "must be a string"};
    const std::string format = s.value("format", std::string());
    const auto known = formats.find(format);
    const bool formed = known != formats.end();
    if (s.contains("pattern") && !s["pattern"].is_string())
      throw bad_schema{path + "/pattern", "must be a string"};
    if (int(lengths) + int(s.contains("pattern")) + int(formed) > 1)
      throw bad_schema{path, "of pattern, format " + (formed ? format : "")
                               + (formed ? " " : "")
                               + "and lengths only one is understood"};
    if (s.contains("pattern") || formed) {
      const std::string pattern = formed
                                    ? "^(" + std::string(known->second) + ")$"
                                    : s["pattern"].get<std::string>();
      auto inner = g::parse_regex(pattern, g::regex_use::json_string);
      if (!inner)
        throw bad_schema{path + "/pattern", inner.message()};
      return quoted(std::move(*inner));
    }
    if (!lengths)
      return g::of_rule(string_rule());
    return quoted(g::repetition(string_character(), least.value_or(0),
                                most.value_or(g::unbounded)));
  }

  expression
  array(const schema& s, const std::string& path, std::size_t depth) {
    std::vector<expression> first;
    if (s.contains("prefixItems")) {
      if (!s["prefixItems"].is_array())
        throw bad_schema{path + "/prefixItems", "must be a list of schemas"};
      for (std::size_t k = 0; k != s["prefixItems"].size(); ++k)
        first.push_back(of(s["prefixItems"][k],
                           path + "/prefixItems/" + std::to_string(k),
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
      const g::rule_id item = out_.add(path + "/items");
      expression body = s.contains("items")
                          ? of(s["items"], path + "/items", depth + 1)
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

  expression
  object(const schema& s, const std::string& path, std::size_t depth) {
    static const schema none = schema::object();
    const schema& properties =
      s.contains("properties") ? s["properties"] : none;
    if (!properties.is_object())
      throw bad_schema{path + "/properties", "must be an object"};
    const std::vector<std::string> required = required_of(s, path);
    const bool named = !properties.empty() || !required.empty();
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
    for (const auto& [name, value] : properties.items())
      all.push_back({name, of(value, path + "/properties/" + name, depth + 1),
                     std::ranges::find(required, name) != required.end()});
    const bool closed = s.contains("additionalProperties") && others == false;
    for (const std::string& name : required)
      if (!properties.contains(name) && closed)
        return g::choice({}); // it must be there, and must not
      else if (!properties.contains(name))
        all.push_back({name,
                       others.is_object()
                         ? of(others, path + "/additionalProperties", depth + 1)
                         : any_value(),
                       true});

    std::set<std::u32string> names;
    for (const property& p : all)
      names.insert(code_points(p.name));
    // From the last property to the first: what may follow when none has been
    // written yet, and when some has.
    expression end = g::literal(""), rest = g::literal("");
    if (others != false) {
      for (const std::u32string& name : names)
        if (name.size() > other_names_max)
          throw bad_schema{path + "/properties",
                           "a name of more than "
                             + std::to_string(other_names_max)
                             + " characters is understood only with "
                               "additionalProperties: false"};
      const g::rule_id pair = out_.add(path + "/additionalProperties");
      expression value = of(others, path + "/additionalProperties", depth + 1);
      out_.bodies[pair] =
        g::sequence({quoted(no_string_of(names)), g::literal(":"), gap(),
                     std::move(value)});
      rest = g::repetition(
        g::sequence({g::literal(","), gap(), g::of_rule(pair)}), 0);
      end = g::optional(g::sequence({g::of_rule(pair), rest}));
    }
    g::rule_id none_yet = out_.add(path, std::move(end));
    g::rule_id some_yet = out_.add(path, std::move(rest));
    for (std::size_t k = all.size(); k-- > 0;) {
      const g::rule_id pair = out_.add(
        path + "/properties/" + all[k].name,
        g::sequence({g::literal(model::json_text(schema(all[k].name)) + ":"),
                     gap(), std::move(all[k].value)}));
      std::vector<expression> first{
        g::sequence({g::of_rule(pair), g::of_rule(some_yet)})};
      std::vector<expression> later{g::sequence(
        {g::literal(","), gap(), g::of_rule(pair), g::of_rule(some_yet)})};
      if (!all[k].needed) {
        first.push_back(g::of_rule(none_yet));
        later.push_back(g::of_rule(some_yet));
      }
      none_yet = out_.add(path, g::choice(std::move(first)));
      some_yet = out_.add(path, g::choice(std::move(later)));
    }
    return g::sequence(
      {g::literal("{"), gap(), g::of_rule(none_yet), gap(), g::literal("}")});
  }

  g::rule_id string_rule() {
    if (!string_)
      string_ = out_.add("string", any_string());
    return *string_;
  }

  g::rule_id any_object_rule() {
    any_value();
    return *object_;
  }

  expression any_value() {
    if (!value_) {
      const g::rule_id value = out_.add("value"), object = out_.add("object"),
                       array = out_.add("array"), text = string_rule();
      value_ = value;
      object_ = object;
      const auto list = [](expression item) {
        return g::optional(g::sequence(
          {item,
           g::repetition(g::sequence({g::literal(","), gap(), item}), 0)}));
      };
      out_.bodies[value] = g::choice(
        {g::of_rule(object), g::of_rule(array), g::of_rule(text), any_number(),
         g::literal("true"), g::literal("false"), g::literal("null")});
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
  schema_work work_;
  g::rule_set out_;
  std::map<std::string, g::rule_id> references_;
  std::optional<g::rule_id> string_, value_, object_;
};

} // namespace

model::result<g::rule_set> json_schema_rules(std::string_view text) {
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
    return schema_compiler(parsed).compile();
  } catch (const bad_schema& bad) {
    return model::failure{"schema" + (bad.path.empty() ? "" : " " + bad.path)
                          + ": " + bad.why};
  } catch (const schema::exception& e) { // a value of a kind nobody looked at
    return model::failure{std::string("the schema is not understood: ")
                          + e.what()};
  }
}

g::rule_set json_object_rules() {
  const schema any = true;
  return schema_compiler(any).any_object();
}

} // namespace shoal::openai
