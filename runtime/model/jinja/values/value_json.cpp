// runtime/model/jinja/values/value_json.cpp -- JSON as Python writes it.
#include "runtime/model/jinja/values/value_json.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/model/jinja/values/python_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace shoal::jinja {

value from_json(const nlohmann::ordered_json& json, bool foreign,
                const choice& chosen) {
  const auto text = [&](const std::string& t) {
    return foreign ? value(marked_text::from_client(t)) : value(t);
  };
  using type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
  case type::boolean:
    return json.get<bool>();
  case type::number_integer:
    return json.get<std::int64_t>();
  case type::number_unsigned:
    if (json.get<std::uint64_t>() <= std::uint64_t(INT64_MAX))
      return std::int64_t(json.get<std::uint64_t>());
    return json.get<double>();
  case type::number_float:
    return json.get<double>();
  case type::string:
    return text(json.get_ref<const std::string&>());
  case type::array: {
    std::vector<value> items;
    for (const auto& item : json)
      items.push_back(from_json(item, foreign, chosen));
    return std::make_shared<sequence>(sequence_kind::list, std::move(items));
  }
  case type::object: {
    map out;
    for (const auto& [key, item] : json.items()) {
      const bool known =
        key == chosen.key && item.is_string()
        && std::ranges::find(chosen.texts, item.get_ref<const std::string&>())
             != chosen.texts.end();
      out.put(text(key), from_json(item, foreign && !known, chosen));
    }
    return std::make_shared<const map>(std::move(out));
  }
  default:
    return value::none{};
  }
}

namespace {

std::string quoted(const std::string& text, bool ascii) {
  std::string out = "\"";
  const auto escape = [&](unsigned unit) {
    char hex[16];
    std::snprintf(hex, sizeof hex, "\\u%04x", unit);
    out += hex;
  };
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = core::next_code(text, at);
    switch (c) {
    case '"':
      out += "\\\"";
      continue;
    case '\\':
      out += "\\\\";
      continue;
    case '\n':
      out += "\\n";
      continue;
    case '\r':
      out += "\\r";
      continue;
    case '\t':
      out += "\\t";
      continue;
    case '\f':
      out += "\\f";
      continue;
    case '\b':
      out += "\\b";
      continue;
    default:
      break;
    }
    if (c < 0x20 || (ascii && c >= 0x7f && c < 0x10000))
      escape(unsigned(c));
    else if (ascii && c >= 0x10000) {
      escape(unsigned(0xd800 + ((c - 0x10000) >> 10)));
      escape(unsigned(0xdc00 + ((c - 0x10000) & 0x3ff)));
    } else
      core::append_code(out, c);
  }
  return out + '"';
}

class json_writer {
public:
  json_writer(budget& from, const json_style& style)
    : from_(from), style_(style) {}

  void write(const value& v, std::size_t level) {
    from_.step();
    const std::size_t before = out.bytes.size();
    if (const marked_text* t = v.text())
      out.append(marked_text::made_of(quoted(t->bytes, style_.ascii), *t));
    else if (const sequence* s = v.as_sequence();
             s && s->kind() <= sequence_kind::tuple)
      write_list(*s, level);
    else if (const map* m = v.as_map())
      write_map(*m, level);
    else
      out.append(scalar(v));
    from_.bytes(out.bytes.size() - before);
  }

  marked_text out;

private:
  static std::string scalar(const value& v) {
    if (v.is_none())
      return "null";
    if (v.is_bool())
      return v.truth() ? "true" : "false";
    if (v.is_integer())
      return std::to_string(v.integer());
    if (!v.is_float())
      fail("Object of type " + v.type_name() + " is not JSON serializable");
    const double d = v.number();
    return std::isnan(d)   ? "NaN"
           : std::isinf(d) ? d < 0 ? "-Infinity" : "Infinity"
                           : repr(d);
  }

  void line(std::size_t level) {
    if (!style_.lines)
      return;
    out.append("\n");
    for (std::size_t i = 0; i < level; ++i)
      out.append(style_.indent);
  }
  void begin_item(bool first, std::size_t level) {
    from_.bytes(style_.item_separator.size()
                + (level + 1) * style_.indent.size()); // before it is written
    if (!first)
      out.append(style_.item_separator);
    line(level + 1);
  }

  void write_list(const sequence& s, std::size_t level) {
    if (s.items().empty())
      return out.append("[]");
    out.append("[");
    bool first = true;
    for (const value& item : s.items()) {
      begin_item(std::exchange(first, false), level);
      write(item, level + 1);
    }
    line(level);
    out.append("]");
  }

  void write_map(const map& m, std::size_t level) {
    if (m.entries().empty())
      return out.append("{}");
    std::vector<map::entry> entries = m.entries();
    if (style_.sorted)
      std::ranges::stable_sort(entries, [&](const auto& a, const auto& b) {
        return compare(from_, a.first, b.first) < 0;
      });
    out.append("{");
    bool first = true;
    for (const auto& [key, what] : entries) {
      begin_item(std::exchange(first, false), level);
      if (const marked_text* t = key.text())
        out.append(marked_text::made_of(quoted(t->bytes, style_.ascii), *t));
      else
        out.append("\"" + scalar(key) + "\"");
      out.append(style_.key_separator);
      write(what, level + 1);
    }
    line(level);
    out.append("}");
  }

  budget& from_;
  const json_style& style_;
};

} // namespace

marked_text to_json(budget& from, const value& v, const json_style& style) {
  json_writer writer(from, style);
  writer.write(v, 0);
  return std::move(writer.out);
}

} // namespace shoal::jinja
