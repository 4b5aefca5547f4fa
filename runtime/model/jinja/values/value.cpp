// runtime/model/jinja/values/value.cpp -- truth, equality, order and text of values.
#include "runtime/model/jinja/values/value.hpp"

#include "runtime/model/jinja/values/python_text.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::jinja {

namespace {

template <class... Cases>
struct overload : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
overload(Cases...) -> overload<Cases...>; // clang 14 does not know it

/// Equal keys have equal texts, others do not: 1, 1.0 and True are one key.
std::string key_text(const value& key) {
  if (const marked_text* t = key.text())
    return "s" + t->bytes;
  if (key.is_none())
    return "n";
  if (key.is_integer())
    return "i" + std::to_string(key.integer());
  if (key.is_float()) {
    const double d = key.number();
    if (d == std::trunc(d) && std::abs(d) < 9e15)
      return "i" + std::to_string(std::int64_t(d));
    return "f" + repr(d);
  }
  if (const sequence* s = key.as_sequence();
      s && s->kind() == sequence_kind::tuple) {
    std::string out = "t";
    for (const value& item : s->items()) {
      const std::string one = key_text(item);
      out += std::to_string(one.size()) + ":" + one;
    }
    return out;
  }
  fail("unhashable type: '" + key.type_name() + "'");
}

std::size_t deeper(std::size_t depth, const value& what) {
  const std::size_t own = what.depth() + 1;
  if (own > value_depth_max)
    fail("lists and maps are nested more than "
         + std::to_string(value_depth_max) + " levels deep");
  return std::max(depth, own);
}

} // namespace

void fail(std::string what) {
  throw template_error(std::move(what));
}

std::optional<value> object::attribute(std::string_view) {
  return std::nullopt;
}

value object::call(interpreter&, call_arguments) {
  fail("'" + std::string(kind()) + "' object is not callable");
}

bool value::truth() const {
  return std::visit(
    overload{
      [](const undefined&) { return false; }, [](none) { return false; },
      [](bool b) { return b; }, [](std::int64_t i) { return i != 0; },
      [](double d) { return d != 0; },
      [](const text_pointer& t) { return !t->bytes.empty(); },
      [](const std::shared_ptr<sequence>& s) {
        return !s->has_length() || !s->items().empty();
      },
      [](const std::shared_ptr<const map>& m) { return !m->entries().empty(); },
      [](const std::shared_ptr<object>&) { return true; }},
    data_);
}

std::string value::type_name() const {
  return std::visit(
    overload{
      [](const undefined&) { return std::string("Undefined"); },
      [](none) { return std::string("NoneType"); },
      [](bool) { return std::string("bool"); },
      [](std::int64_t) { return std::string("int"); },
      [](double) { return std::string("float"); },
      [](const text_pointer&) { return std::string("str"); },
      [](const std::shared_ptr<sequence>& s) {
        static constexpr const char* names[] = {
          "list",        "tuple",      "range",    "dict_keys",
          "dict_values", "dict_items", "generator"};
        return std::string(names[std::size_t(s->kind())]);
      },
      [](const std::shared_ptr<const map>&) { return std::string("dict"); },
      [](const std::shared_ptr<object>& o) { return std::string(o->kind()); }},
    data_);
}

std::size_t value::depth() const {
  if (const sequence* s = as_sequence())
    return s->depth();
  if (const map* m = as_map())
    return m->depth();
  if (const object* o = as_object())
    return o->depth();
  return 0;
}

bool value::same_as(const value& other) const {
  if (data_.index() != other.data_.index())
    return false;
  return std::visit(
    [&](const auto& own) {
      using kind = std::decay_t<decltype(own)>;
      const auto& theirs = std::get<kind>(other.data_);
      if constexpr (std::is_same_v<kind, undefined>)
        return own.reason == theirs.reason;
      else if constexpr (std::is_same_v<kind, none>)
        return true;
      else if constexpr (std::is_same_v<kind, text_pointer>)
        return own->bytes == theirs->bytes;
      else
        return own == theirs;
    },
    data_);
}

const value& value::defined() const {
  if (is_undefined())
    fail(undefined_reason() ? *undefined_reason() : "a value is undefined");
  return *this;
}

sequence::sequence(sequence_kind kind, std::vector<value> items)
  : kind_(kind), items_(std::move(items)) {
  for (const value& item : items_)
    depth_ = deeper(depth_, item);
}

value sequence::make(budget& from, sequence_kind kind,
                     std::vector<value> items) {
  from.bytes(sizeof(sequence) + items.size() * sizeof(value));
  return std::make_shared<sequence>(kind, std::move(items));
}

void map::put(value key, value what) {
  depth_ = deeper(deeper(depth_, what), key);
  const auto [at, fresh] = index_.emplace(key_text(key), entries_.size());
  if (fresh)
    entries_.emplace_back(std::move(key), std::move(what));
  else
    entries_[at->second].second = std::move(what);
}

const value* map::find(const value& key) const {
  const auto at = index_.find(key_text(key));
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

const value* map::find_text(std::string_view key) const {
  const auto at = index_.find("s" + std::string(key));
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

value map::make(budget& from, map m) {
  std::size_t bytes = sizeof(map);
  for (const auto& [text, at] : m.index_)
    bytes += 2 * sizeof(entry) + text.size();
  from.bytes(bytes);
  return std::make_shared<const map>(std::move(m));
}

bool equal(budget& from, const value& a, const value& b) {
  from.step();
  if (a.is_number() && b.is_number())
    return a.is_integer() && b.is_integer() ? a.integer() == b.integer()
                                            : a.number() == b.number();
  if (a.is_undefined() || b.is_undefined())
    return a.is_undefined() && b.is_undefined();
  if (const sequence* s = a.as_sequence(), *t = b.as_sequence(); s && t) {
    if (s == t)
      return true;
    if (s->kind() != t->kind() || s->kind() == sequence_kind::generator
        || s->kind() == sequence_kind::values
        || s->items().size() != t->items().size())
      return false;
    for (std::size_t i = 0; i < s->items().size(); ++i)
      if (!equal(from, s->items()[i], t->items()[i]))
        return false;
    return true;
  }
  if (const map* m = a.as_map(), *n = b.as_map(); m && n) {
    if (m->entries().size() != n->entries().size())
      return false;
    for (const auto& [key, what] : m->entries()) {
      const value* const other = n->find(key);
      if (!other || !equal(from, what, *other))
        return false;
    }
    return true;
  }
  return a.same_as(b);
}

int compare(budget& from, const value& a, const value& b) {
  from.step();
  const auto order = [](const auto& x, const auto& y) {
    return x < y ? -1 : y < x ? 1 : 0;
  };
  if (a.is_integer() && b.is_integer())
    return order(a.integer(), b.integer());
  if (a.is_number() && b.is_number())
    return order(a.number(), b.number());
  if (a.text() && b.text())
    return order(a.text()->bytes, b.text()->bytes);
  const sequence *s = a.as_sequence(), *t = b.as_sequence();
  if (s && t && s->kind() == t->kind() && s->kind() <= sequence_kind::tuple) {
    for (std::size_t i = 0; i < s->items().size() && i < t->items().size(); ++i)
      if (!equal(from, s->items()[i], t->items()[i]))
        return compare(from, s->items()[i], t->items()[i]);
    return order(s->items().size(), t->items().size());
  }
  a.defined();
  b.defined();
  fail("'<' not supported between instances of '" + a.type_name() + "' and '"
       + b.type_name() + "'");
}

bool contains(budget& from, const value& a, const value& b) {
  if (b.is_undefined())
    return false;
  if (const map* m = b.as_map())
    return m->find(a) != nullptr;
  if (const marked_text* t = b.text()) {
    from.steps(1 + t->bytes.size() / 64);
    if (const marked_text* part = a.text())
      return t->bytes.find(part->bytes) != std::string::npos;
    fail("'in <string>' requires string as left operand, not " + a.type_name());
  }
  if (!b.as_sequence())
    fail("argument of type '" + b.type_name() + "' is not iterable");
  for (const value& item : items_of(from, b))
    if (equal(from, a, item))
      return true;
  return false;
}

namespace {

void append_repr(budget& from, marked_text& to, const value& v);

void append_all(budget& from, marked_text& to, const std::vector<value>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0)
      to.append(", ");
    append_repr(from, to, all[i]);
  }
}

void append_repr(budget& from, marked_text& to, const sequence& s) {
  switch (s.kind()) {
  case sequence_kind::list:
    to.append("[");
    append_all(from, to, s.items());
    return to.append("]");
  case sequence_kind::tuple:
    to.append("(");
    append_all(from, to, s.items());
    return to.append(s.items().size() == 1 ? ",)" : ")");
  case sequence_kind::keys:
  case sequence_kind::values:
  case sequence_kind::items:
    to.append(value(std::make_shared<sequence>(s)).type_name() + "([");
    append_all(from, to, s.items());
    return to.append("])");
  case sequence_kind::range:
  case sequence_kind::generator:
    fail("a range or a generator has no text: use the filter list");
  }
}

void append_repr(budget& from, marked_text& to, const value& v) {
  from.step();
  const std::size_t before = to.bytes.size();
  if (const marked_text* t = v.text())
    to.append(marked_text::made_of(repr(t->bytes), *t));
  else if (const sequence* s = v.as_sequence())
    append_repr(from, to, *s);
  else if (const map* m = v.as_map()) {
    to.append("{");
    bool first = true;
    for (const auto& [key, what] : m->entries()) {
      if (!std::exchange(first, false))
        to.append(", ");
      append_repr(from, to, key);
      to.append(": ");
      append_repr(from, to, what);
    }
    to.append("}");
  } else if (v.is_undefined())
    to.append("Undefined");
  else
    to.append(to_text(from, v));
  // Inner values have been counted with it: at most as often as it is deep.
  from.bytes(to.bytes.size() - before);
}

} // namespace

marked_text to_text(budget& from, const value& v) {
  if (const marked_text* t = v.text()) {
    from.bytes(t->bytes.size());
    return *t;
  }
  if (v.is_undefined())
    return {};
  if (v.is_none())
    return marked_text::own("None");
  if (v.is_bool())
    return marked_text::own(v.truth() ? "True" : "False");
  if (v.is_integer())
    return marked_text::own(std::to_string(v.integer()));
  if (v.is_float())
    return marked_text::own(repr(v.number()));
  if (v.as_object())
    return marked_text::own("<" + v.type_name() + ">");
  return to_repr(from, v);
}

marked_text to_repr(budget& from, const value& v) {
  marked_text out;
  append_repr(from, out, v);
  return out;
}

std::vector<value> items_of(budget& from, const value& v) {
  if (v.is_undefined())
    return {};
  if (const sequence* s = v.as_sequence()) {
    from.steps(s->items().size());
    if (s->kind() == sequence_kind::generator && std::exchange(s->taken, true))
      return {};
    return s->items();
  }
  std::vector<value> out;
  if (const map* m = v.as_map()) {
    from.steps(m->entries().size());
    for (const auto& [key, what] : m->entries())
      out.push_back(key);
    return out;
  }
  if (const marked_text* t = v.text()) {
    from.steps(t->bytes.size());
    from.bytes(t->bytes.size() * sizeof(marked_text));
    for (std::size_t at = 0; at < t->bytes.size();) {
      const std::size_t end = at + offset_of(t->bytes.substr(at, 8), 1);
      out.emplace_back(t->part(at, end));
      at = end;
    }
    return out;
  }
  fail("'" + v.type_name() + "' object is not iterable");
}

std::size_t length_of(const value& v) {
  if (v.is_undefined())
    return 0;
  if (const marked_text* t = v.text())
    return code_points(t->bytes);
  if (const map* m = v.as_map())
    return m->entries().size();
  if (const sequence* s = v.as_sequence(); s && s->has_length())
    return s->items().size();
  fail("object of type '" + v.type_name() + "' has no len()");
}

} // namespace shoal::jinja
