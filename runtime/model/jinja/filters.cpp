// runtime/model/jinja/filters.cpp -- filters of texts, numbers and values.
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/jinja/interpreter.hpp"
#include "runtime/model/jinja/values/python_text.hpp"
#include "runtime/model/jinja/values/value_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace shoal::jinja {

namespace {

/// The value as a text, whatever it is.
marked_text soft(interpreter& by, const value& in) {
  return to_text(by.meter(), in);
}

template <class Change>
value changed(interpreter& by, const value& in, Change change) {
  const marked_text t = soft(by, in);
  by.meter().bytes(t.bytes.size());
  return marked_text::made_of(change(t.bytes), t);
}

value do_abs(interpreter&, const value& in, call_arguments& args) {
  bound_arguments("abs", args, {});
  in.defined();
  if (!in.is_number())
    fail("bad operand type for abs(): '" + in.type_name() + "'");
  return in.number() < 0 ? negative(in)
         : in.is_bool()  ? value(in.integer())
                         : in;
}

value do_attr(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("attr", args, {"name"}, 1);
  const std::string name = soft(by, a.at(0)).bytes;
  in.defined();
  object* const o = in.as_object();
  if (auto found = o ? o->attribute(name) : method_of(in, name))
    return *std::move(found);
  return value::missing("'" + in.type_name() + " object' has no attribute '"
                        + name + "'");
}

value do_capitalize(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("capitalize", args, {});
  return changed(by, in, capitalize);
}

value do_upper(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("upper", args, {});
  return changed(by, in, upper);
}

value do_lower(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("lower", args, {});
  return changed(by, in, lower);
}

/// Jinja's own: words begin after white space, '-' and brackets.
value do_title(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("title", args, {});
  return changed(by, in, [](const std::string& text) {
    std::string out;
    std::string word;
    const auto end_word = [&] {
      std::size_t at = 0;
      if (!word.empty())
        core::next_code(word, at);
      out += upper(word.substr(0, at)) + lower(word.substr(at));
      word.clear();
    };
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t first = at;
      const char32_t c = core::next_code(text, at);
      if (is_python_space(c)
          || std::u32string_view(U"-({[<").find(c)
               != std::u32string_view::npos) {
        end_word();
        out += text.substr(first, at - first);
      } else
        word += text.substr(first, at - first);
    }
    end_word();
    return out;
  });
}

value do_center(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("center", args, {"width"});
  call_arguments inner;
  inner.positional.push_back(a.whole(0, 80));
  return by.call(*method_of(value(soft(by, in)), "center"), std::move(inner));
}

value do_default(interpreter&, const value& in, call_arguments& args) {
  const bound_arguments a("default", args, {"default_value", "boolean"});
  if (in.is_undefined() || (a.flag(1, false) && !in.truth()))
    return a.get(0, value(""));
  return in;
}

value do_escape(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("escape", args, {});
  return changed(by, in, [&](const std::string& text) {
    std::string out;
    for (const char c : text)
      switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
      }
    by.meter().bytes(out.size());
    return out;
  });
}

value do_float(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("float", args, {"default"});
  if (in.is_number())
    return in.number();
  in.defined();
  if (const marked_text* t = in.text()) {
    by.meter().steps(1 + t->bytes.size() / 64);
    const text_range r = strip(t->bytes, strip_side::both);
    std::string text = t->bytes.substr(r.first, r.last - r.first);
    std::erase(text, '_');
    const bool decimal =
      !text.empty() && text.find_first_of("xXpP(") == text.npos
      && !is_python_space(char32_t(static_cast<unsigned char>(text[0])));
    char* end = nullptr;
    const double d = std::strtod(text.c_str(), &end);
    if (decimal && end == text.c_str() + text.size())
      return d;
  }
  return a.get(0, 0.0);
}

std::optional<std::int64_t> whole_of(std::string text, std::int64_t base) {
  const text_range r = strip(text, strip_side::both);
  text = text.substr(r.first, r.last - r.first);
  std::erase(text, '_');
  const std::size_t sign = text.starts_with('-') || text.starts_with('+');
  if (base == 16
      && (text.substr(sign, 2) == "0x" || text.substr(sign, 2) == "0X"))
    text.erase(sign, 2);
  if (text.size() <= sign
      || is_python_space(char32_t(static_cast<unsigned char>(text[sign])))
      || text[sign] == '-' || text[sign] == '+')
    return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long out = std::strtoll(text.c_str(), &end, int(base));
  if (errno == ERANGE)
    fail("a whole number has more than 64 bits");
  if (end != text.c_str() + text.size())
    return std::nullopt;
  return out;
}

value do_int(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("int", args, {"default", "base"});
  const value usual = a.get(0, std::int64_t(0));
  const std::int64_t base = a.whole(1, 10);
  if (base < 2 || base > 36)
    fail("int() base must be >= 2 and <= 36");
  if (in.is_integer())
    return in.integer();
  in.defined();
  const marked_text* const t = in.text();
  if (t)
    if (const auto whole = whole_of(t->bytes, base))
      return *whole;
  call_arguments none;
  const value real = in.is_float() ? in
                     : t           ? do_float(by, in, none)
                                   : value(0.0);
  if (!in.is_float() && !t)
    return usual;
  const double d = std::trunc(real.number());
  if (!std::isfinite(d)) {
    if (std::isinf(d))
      fail("cannot convert float infinity to integer");
    return usual;
  }
  if (std::abs(d) >= 9.2e18)
    fail("a whole number has more than 64 bits");
  if (t && d == 0) { // no number at all, or zero
    call_arguments probe;
    probe.positional.push_back(value::none{});
    if (do_float(by, in, probe).is_none())
      return usual;
  }
  return std::int64_t(d);
}

value do_format(interpreter& by, const value& in, call_arguments& args) {
  if (!args.named.empty() && !args.positional.empty())
    fail("can't handle positional and keyword arguments at the same time");
  const marked_text t = soft(by, in);
  if (args.named.empty())
    return format(by.meter(), t,
                  sequence::make(by.meter(), sequence_kind::tuple,
                                 std::move(args.positional)));
  map named;
  for (auto& [name, what] : args.named)
    named.put(value(name), std::move(what));
  return format(by.meter(), t, map::make(by.meter(), std::move(named)));
}

value do_indent(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("indent", args, {"width", "first", "blank"});
  marked_text by_text;
  if (a.has(0) && a.at(0).text())
    by_text = *a.at(0).text();
  else {
    const std::int64_t width = a.whole(0, 4);
    by.meter().bytes(std::uint64_t(std::max<std::int64_t>(width, 0)));
    by_text.bytes.assign(std::size_t(std::max<std::int64_t>(width, 0)), ' ');
  }
  const marked_text t = soft(by, in);
  // Jinja adds a line end first, so that a last empty line counts.
  std::vector<text_range> lines = split_lines(t.bytes + "\n");
  marked_text out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool empty = lines[i].first == lines[i].last;
    if (i > 0)
      out.append("\n");
    if (i == 0 ? a.flag(1, false) : !empty || a.flag(2, false)) {
      by.meter().bytes(by_text.bytes.size());
      out.append(by_text);
    }
    out.append(t.part(lines[i].first, lines[i].last));
  }
  by.meter().bytes(t.bytes.size());
  return out;
}

value do_length(interpreter&, const value& in, call_arguments& args) {
  bound_arguments("length", args, {});
  return std::int64_t(length_of(in));
}

value do_replace(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("replace", args, {"old", "new", "count"}, 2);
  return replace(by.meter(), soft(by, in), soft(by, a.at(0)), soft(by, a.at(1)),
                 a.is_set(2) ? std::optional(a.whole(2, -1)) : std::nullopt);
}

/// Half to even, of the exact binary value: as Python and printf do it.
double round_to(double d, std::int64_t digits) {
  if (digits < 0) {
    const double unit = std::pow(10.0, double(-digits));
    return std::nearbyint(d / unit) * unit;
  }
  char text[512];
  std::snprintf(text, sizeof text, "%.*f",
                int(std::min<std::int64_t>(digits, 100)), d);
  return std::strtod(text, nullptr);
}

value do_round(interpreter&, const value& in, call_arguments& args) {
  const bound_arguments a("round", args, {"precision", "method"});
  in.defined();
  if (!in.is_number())
    fail("round() needs a number, not " + in.type_name());
  const std::int64_t digits = a.whole(0, 0);
  const std::string how = a.has(1) ? a.text(1).bytes : "common";
  if (how == "common")
    return in.is_integer() && digits >= 0 ? value(in.integer())
           : in.is_integer()
             ? value(std::int64_t(round_to(in.number(), digits)))
             : value(round_to(in.number(), digits));
  if (how != "ceil" && how != "floor")
    fail("method must be common, ceil or floor");
  const double unit = std::pow(10.0, double(digits));
  const double scaled = in.number() * unit;
  return (how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit;
}

value do_safe(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("safe", args, {});
  return soft(by, in);
}

value do_tojson(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a(
    "tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  json_style style;
  style.ascii = a.flag(0, false);
  style.sorted = a.flag(3, false);
  if (a.is_set(1)) {
    style.lines = true;
    style.item_separator = ",";
    if (const marked_text* t = a.at(1).text())
      style.indent = t->bytes;
    else
      style.indent.assign(
        std::size_t(std::clamp<std::int64_t>(a.whole(1, 0), 0, 64)), ' ');
  }
  if (a.is_set(2)) {
    const std::vector<value> two = items_of(by.meter(), a.at(2));
    if (two.size() != 2 || !two[0].text() || !two[1].text())
      fail("separators must be two strings");
    style.item_separator = two[0].text()->bytes;
    style.key_separator = two[1].text()->bytes;
  }
  return to_json(by.meter(), in, style);
}

value do_trim(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("trim", args, {"chars"});
  const marked_text t = soft(by, in);
  std::string_view characters;
  if (a.is_set(0)) {
    characters = a.text(0).bytes;
    by.meter().steps(characters.size() * t.bytes.size() / 64);
  }
  const text_range r =
    strip(t.bytes, strip_side::both, a.is_set(0) ? &characters : nullptr);
  return t.part(r.first, r.last);
}

value do_wordcount(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("wordcount", args, {});
  const marked_text t = soft(by, in);
  std::int64_t count = 0;
  bool inside = false;
  for (std::size_t at = 0; at < t.bytes.size();) {
    const char32_t c = core::next_code(t.bytes, at);
    const bool word =
      c == '_' || c >= 0x80 ? !is_python_space(c) : std::isalnum(int(c)) != 0;
    count += word && !inside ? 1 : 0;
    inside = word;
  }
  return count;
}

struct filter_entry {
  std::string_view name;
  filter_function run;
};

constexpr std::array filters = {
  filter_entry{"abs", do_abs},
  filter_entry{"attr", do_attr},
  filter_entry{"capitalize", do_capitalize},
  filter_entry{"center", do_center},
  filter_entry{"count", do_length},
  filter_entry{"d", do_default},
  filter_entry{"default", do_default},
  filter_entry{"e", do_escape},
  filter_entry{"escape", do_escape},
  filter_entry{"float", do_float},
  filter_entry{"format", do_format},
  filter_entry{"indent", do_indent},
  filter_entry{"int", do_int},
  filter_entry{"length", do_length},
  filter_entry{"lower", do_lower},
  filter_entry{"replace", do_replace},
  filter_entry{"round", do_round},
  filter_entry{"safe", do_safe},
  filter_entry{"string", do_safe},
  filter_entry{"title", do_title},
  filter_entry{"tojson", do_tojson},
  filter_entry{"trim", do_trim},
  filter_entry{"upper", do_upper},
  filter_entry{"wordcount", do_wordcount},
};

} // namespace

filter_function find_filter(std::string_view name) {
  const auto at = std::ranges::find(filters, name, &filter_entry::name);
  return at == filters.end() ? nullptr : at->run;
}

} // namespace shoal::jinja
