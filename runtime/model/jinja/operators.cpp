// runtime/model/jinja/operators.cpp -- arithmetic, slices and the % of texts.
#include "runtime/model/jinja/builtins.hpp"
#include "runtime/model/jinja/values/python_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace shoal::jinja {

namespace {

[[noreturn]] void
no_operator(std::string_view sign, const value& a, const value& b) {
  a.defined();
  b.defined();
  fail("unsupported operand type(s) for " + std::string(sign) + ": '"
       + a.type_name() + "' and '" + b.type_name() + "'");
}

[[noreturn]] void too_large() {
  fail("a whole number has more than 64 bits");
}

std::int64_t whole_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t out = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(out, base, &out))
      too_large();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base))
      too_large();
  }
  return out;
}

value whole(std::string_view sign, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  bool over = false;
  if (sign == "+")
    over = __builtin_add_overflow(a, b, &out);
  else if (sign == "-")
    over = __builtin_sub_overflow(a, b, &out);
  else if (sign == "*")
    over = __builtin_mul_overflow(a, b, &out);
  else if (sign == "**")
    return b < 0 ? value(std::pow(double(a), double(b)))
                 : value(whole_power(a, b));
  else if (b == 0)
    fail("division by zero");
  else if (sign == "/")
    return double(a) / double(b);
  else if (b == -1) {
    if (sign == "%")
      return std::int64_t(0);
    over = __builtin_sub_overflow(std::int64_t(0), a, &out);
  } else {
    const bool down = a % b != 0 && (a < 0) != (b < 0);
    out = sign == "//" ? a / b - (down ? 1 : 0) : a % b + (down ? b : 0);
  }
  if (over)
    too_large();
  return out;
}

value real(std::string_view sign, double a, double b) {
  if (sign == "+")
    return a + b;
  if (sign == "-")
    return a - b;
  if (sign == "*")
    return a * b;
  if (sign == "**")
    return std::pow(a, b);
  if (b == 0)
    fail("float division by zero");
  if (sign == "/")
    return a / b;
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0))
    rest += b;
  if (sign == "%")
    return rest == 0 ? std::copysign(0.0, b) : rest;
  return std::floor((a - rest) / b + 0.5);
}

value repeat(budget& from, const value& what, std::int64_t times) {
  const std::uint64_t count = std::uint64_t(std::max<std::int64_t>(times, 0));
  if (const marked_text* t = what.text()) {
    if (t->bytes.empty() || count == 0)
      return marked_text();
    from.steps(count);
    from.bytes(count > (std::uint64_t(1) << 40) ? count
                                                : count * t->bytes.size());
    marked_text out;
    for (std::uint64_t i = 0; i < count; ++i)
      out.append(*t);
    return out;
  }
  const sequence& s = *what.as_sequence();
  std::vector<value> items;
  if (!s.items().empty()) {
    from.steps(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      from.bytes(s.items().size() * sizeof(value));
      items.insert(items.end(), s.items().begin(), s.items().end());
    }
  }
  return sequence::make(from, s.kind(), std::move(items));
}

bool can_repeat(const value& v) {
  return v.text()
         || (v.as_sequence()
             && v.as_sequence()->kind() <= sequence_kind::tuple);
}

} // namespace

value arithmetic(budget& from, std::string_view sign, const value& a,
                 const value& b) {
  if (a.is_integer() && b.is_integer())
    return whole(sign, a.integer(), b.integer());
  if (a.is_number() && b.is_number())
    return real(sign, a.number(), b.number());
  if (sign == "+" && a.text() && b.text()) {
    from.bytes(a.text()->bytes.size() + b.text()->bytes.size());
    marked_text out = *a.text();
    out.append(*b.text());
    return out;
  }
  const sequence *s = a.as_sequence(), *t = b.as_sequence();
  if (sign == "+" && s && t && s->kind() == t->kind()
      && s->kind() <= sequence_kind::tuple) {
    std::vector<value> items = s->items();
    items.insert(items.end(), t->items().begin(), t->items().end());
    return sequence::make(from, s->kind(), std::move(items));
  }
  if (sign == "*" && can_repeat(a) && b.is_integer())
    return repeat(from, a, b.integer());
  if (sign == "*" && can_repeat(b) && a.is_integer())
    return repeat(from, b, a.integer());
  if (sign == "%" && a.text())
    return format(from, *a.text(), b);
  no_operator(sign, a, b);
}

value negative(const value& v) {
  if (v.is_integer())
    return whole("-", 0, v.integer());
  if (v.is_float())
    return -v.number();
  v.defined();
  fail("bad operand type for unary -: '" + v.type_name() + "'");
}

value slice(budget& from, const value& v, const value& first, const value& last,
            const value& step) {
  v.defined();
  const sequence* const s = v.as_sequence();
  const marked_text* const t = v.text();
  const auto is_bound = [](const value& b) {
    return b.is_none() || b.is_integer();
  };
  if (!t && !(s && s->indexed()))
    fail("'" + v.type_name() + "' object cannot be sliced");
  if (!is_bound(first) || !is_bound(last) || !is_bound(step))
    fail("slice indices must be integers or None");
  const auto bound = [](const value& b, std::int64_t usual) {
    return b.is_none() ? usual : b.integer();
  };
  const std::int64_t by = bound(step, 1);
  if (by == 0)
    fail("slice step cannot be zero");
  const std::int64_t size = std::int64_t(length_of(v));
  const std::int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
  const auto clip = [&](const value& b, std::int64_t usual) {
    if (b.is_none())
      return usual;
    const std::int64_t at = bound(b, 0);
    return std::clamp(at < 0 ? std::max(at, -size - 1) + size : at, low, high);
  };
  const std::int64_t begin = clip(first, by > 0 ? low : high);
  const std::int64_t end = clip(last, by > 0 ? high : low);
  if (t && by == 1) {
    const std::size_t a = offset_of(t->bytes, std::size_t(begin));
    const std::size_t b =
      begin < end ? a
                      + offset_of(std::string_view(t->bytes).substr(a),
                                  std::size_t(end - begin))
                  : a;
    from.steps(1 + t->bytes.size() / 64);
    from.bytes(b - a);
    return t->part(a, b);
  }
  const std::vector<value> all = s ? s->items() : items_of(from, v);
  std::vector<value> out;
  for (std::int64_t i = begin; by > 0 ? i < end : i > end;) {
    out.push_back(all[std::size_t(i)]);
    if (__builtin_add_overflow(i, by, &i))
      break;
  }
  from.steps(out.size());
  if (!t)
    return sequence::make(
      from, s->kind() == sequence_kind::range ? sequence_kind::list : s->kind(),
      std::move(out));
  return join(from, {}, out, false);
}

namespace {

/// One conversion of a format: %[flags][width][.precision]kind
struct conversion {
  std::string flags;
  int width = 0;
  int precision = -1;
  char kind = 0;
};

std::string padded(std::string text, const conversion& c) {
  const std::size_t size = code_points(text);
  if (size >= std::size_t(c.width))
    return text;
  const std::string fill(std::size_t(c.width) - size, ' ');
  return c.flags.find('-') != std::string::npos ? text + fill : fill + text;
}

std::string number_text(const conversion& c, const value& v) {
  char buffer[512];
  const std::string begin =
    "%" + c.flags + (c.width ? std::to_string(c.width) : "")
    + (c.precision >= 0 ? "." + std::to_string(c.precision) : "");
  if (!v.is_number())
    fail(std::string("%") + c.kind + " format: a real number is required, not "
         + v.type_name());
  if (std::string_view("dixXo").find(c.kind) != std::string_view::npos) {
    if (v.is_float()
        && std::string_view("di").find(c.kind) == std::string_view::npos)
      fail(std::string("%") + c.kind + " format: an integer is required");
    if (v.is_float() && !(std::abs(v.number()) < 9e18))
      fail("a whole number has more than 64 bits");
    const long long whole =
      v.is_float() ? (long long)(v.number()) : (long long)(v.integer());
    std::snprintf(buffer, sizeof buffer,
                  (begin + "ll" + (c.kind == 'i' ? 'd' : c.kind)).c_str(),
                  whole);
  } else
    std::snprintf(buffer, sizeof buffer, (begin + c.kind).c_str(), v.number());
  return buffer;
}

} // namespace

value format(budget& from, const marked_text& text, const value& values) {
  const sequence* const s = values.as_sequence();
  const bool tuple = s && s->kind() == sequence_kind::tuple;
  const std::vector<value> all =
    tuple ? s->items() : std::vector<value>{values};
  std::size_t used = 0;
  marked_text out;
  const std::string& f = text.bytes;
  for (std::size_t i = 0; i < f.size(); ++i) {
    if (f[i] != '%') {
      out.append(text.part(i, i + 1));
      continue;
    }
    conversion c;
    const auto next = [&] { return ++i < f.size() ? f[i] : '\0'; };
    char ch = next();
    value what;
    bool named = false;
    if (ch == '(' && values.as_map()) {
      const std::size_t end = f.find(')', i);
      if (end == f.npos)
        fail("incomplete format key");
      const value* const found =
        values.as_map()->find_text(f.substr(i + 1, end - i - 1));
      if (!found)
        fail("a key of the format is missing");
      what = *found;
      named = true;
      i = end;
      ch = next();
    }
    for (; ch && std::string_view("-+ 0#").find(ch) != std::string_view::npos;
         ch = next())
      c.flags += ch;
    const auto number = [&](int& into) {
      for (into = 0; ch >= '0' && ch <= '9'; ch = next())
        if ((into = into * 10 + (ch - '0')) > 400)
          fail("a width of the format is above 400");
    };
    if (ch >= '1' && ch <= '9')
      number(c.width);
    if (ch == '.') {
      ch = next();
      number(c.precision);
    }
    c.kind = ch;
    if (ch == '%') {
      out.append("%");
      continue;
    }
    if (!ch
        || std::string_view("srdixXofFeEgG").find(ch) == std::string_view::npos)
      fail("unsupported format character");
    if (!named) {
      if (used >= all.size())
        fail("not enough arguments for format string");
      what = all[used++];
    }
    if (c.kind != 's' && c.kind != 'r') {
      out.append(number_text(c, what));
      continue;
    }
    marked_text t = c.kind == 's' ? to_text(from, what) : to_repr(from, what);
    if (c.precision >= 0)
      t = t.part(0, offset_of(t.bytes, std::size_t(c.precision)));
    out.append(c.width ? marked_text::made_of(padded(t.bytes, c), t) : t);
  }
  const bool mapped =
    values.as_map() || (s && !tuple); // Python takes these too
  if (used < all.size() && !mapped)
    fail("not all arguments converted during string formatting");
  from.bytes(out.bytes.size());
  return out;
}

} // namespace shoal::jinja
