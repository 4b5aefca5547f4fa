// runtime/openai/output_rule.cpp -- each field in its form.
#include "runtime/openai/output_rule.hpp"

#include "runtime/openai/rules/rule_compiler.hpp"

#include <utility>

namespace shoal::openai {
namespace {

using core::rule_kind;

class rule_reader {
public:
  rule_reader(fields& in, generation_options& into) : in_(in), into_(into) {}

  void read() {
    if (const json* const format = in_.find("response_format"))
      read_format(*format);
    each("guided_json", &rule_reader::schema);
    each("guided_regex", &rule_reader::regex);
    each("guided_choice", &rule_reader::choice);
    each("guided_grammar", &rule_reader::grammar);
    each("json_schema", &rule_reader::schema);
    each("grammar", &rule_reader::grammar);
    if (const json* const all = in_.find("structured_outputs"))
      read_structured(*all);
  }

private:
  using reader = void (rule_reader::*)(const std::string&, const json&);

  void each(const char* name, reader read) {
    if (const json* const value = in_.find(name))
      (this->*read)(name, *value);
  }

  void read_format(const json& format) {
    const std::string field = "response_format";
    if (!format.is_object())
      return in_.not_a(field, format, "an object");
    const auto type = format.find("type");
    if (type == format.end() || !type->is_string())
      return in_.wrong(field + ".type", "is missing or no string",
                       "invalid_type");
    const auto schema_of = [&](const json& from) {
      const auto at = from.find("schema");
      return at == from.end() || at->is_null() ? nullptr : &*at;
    };
    if (*type == "text")
      return;
    if (*type == "json_object") {
      if (const json* const given = schema_of(format))
        return schema(field + ".schema", *given);
      return set(field, rule_kind::json_object, {});
    }
    if (*type != "json_schema")
      return in_.wrong(field + ".type",
                       "is " + shown(*type)
                         + ": \"text\", \"json_object\" and \"json_schema\" "
                           "are supported",
                       "unsupported_parameter");
    const auto named = format.find("json_schema");
    if (named == format.end() || !named->is_object())
      return in_.wrong(field + ".json_schema", "is missing or no object",
                       "invalid_type");
    if (const json* const given = schema_of(*named))
      return schema(field + ".json_schema.schema", *given);
    in_.wrong(field + ".json_schema.schema", "is missing",
              "missing_required_parameter");
  }

  void read_structured(const json& all) {
    const std::string field = "structured_outputs";
    if (!all.is_object())
      return in_.not_a(field, all, "an object");
    const std::pair<const char*, reader> known[] = {
      {"json", &rule_reader::schema},
      {"json_object", &rule_reader::any_object},
      {"regex", &rule_reader::regex},
      {"choice", &rule_reader::choice},
      {"grammar", &rule_reader::grammar}};
    for (const auto& [name, read] : known)
      if (const auto at = all.find(name); at != all.end() && !at->is_null())
        (this->*read)(field + "." + name, *at);
    if (const auto at = all.find("structural_tag");
        at != all.end() && !at->is_null())
      in_.wrong(field + ".structural_tag", "is not supported",
                "unsupported_parameter");
  }

  void schema(const std::string& field, const json& value) {
    if (!value.is_object() && !value.is_boolean() && !value.is_string())
      return in_.not_a(field, value, "a JSON schema");
    set(field, rule_kind::json_schema,
        value.is_string() ? value.get<std::string>() : model::json_text(value));
  }

  void any_object(const std::string& field, const json& value) {
    if (!value.is_boolean())
      return in_.not_a(field, value, "true or false");
    if (value.get<bool>())
      set(field, rule_kind::json_object, {});
  }

  void regex(const std::string& field, const json& value) {
    text(field, value, rule_kind::regex);
  }
  void grammar(const std::string& field, const json& value) {
    text(field, value, rule_kind::grammar);
  }
  void text(const std::string& field, const json& value, rule_kind kind) {
    if (!value.is_string())
      return in_.not_a(field, value, "a string");
    set(field, kind, value.get<std::string>());
  }

  /// As a grammar whose only rule is a choice of texts.
  void choice(const std::string& field, const json& value) {
    if (!value.is_array())
      return in_.not_a(field, value, "a list of strings");
    if (value.empty())
      return in_.wrong(field, "is an empty list");
    if (value.size() > choice_texts_max)
      return in_.wrong(field, "has more than "
                                + std::to_string(choice_texts_max)
                                + " strings");
    std::string out = "root ::= ";
    for (const json& item : value) {
      if (!item.is_string())
        return in_.not_a(field, item, "a list of strings");
      out += out.back() == '"' ? " | \"" : "\"";
      for (const char c : item.get_ref<const std::string&>())
        add_escaped(out, c);
      out += '"';
      if (out.size() > core::rule_bytes_max)
        break;
    }
    set(field, rule_kind::grammar, out);
  }

  static void add_escaped(std::string& to, char c) {
    constexpr char digits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && c != '"' && c != '\\') {
      to += c;
      return;
    }
    to += "\\x";
    to += digits[byte >> 4];
    to += digits[byte & 15];
  }

  void set(const std::string& field, rule_kind kind, const std::string& text) {
    if (into_.rule)
      return in_.wrong(field,
                       "cannot be given together with " + into_.rule_field);
    if (text.size() > core::rule_bytes_max)
      return in_.wrong(field, "is longer than "
                                + std::to_string(core::rule_bytes_max)
                                + " bytes");
    into_.rule = rule_of(kind, text);
    into_.rule_field = field;
  }

  fields& in_;
  generation_options& into_;
};

} // namespace

void read_output_rule(fields& in, generation_options& into) {
  rule_reader(in, into).read();
}

} // namespace shoal::openai
