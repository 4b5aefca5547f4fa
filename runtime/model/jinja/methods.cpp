// runtime/model/jinja/methods.cpp -- methods of strings, lists and maps. Those
// that would change a value are not there, as in Jinja's immutable sandbox.
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/jinja/interpreter.hpp"
#include "runtime/model/jinja/values/python_text.hpp"
#include "runtime/model/text/patterns/unicode.hpp"

#include <algorithm>
#include <array>

namespace shoal::jinja {

// Arguments. --------------------------------------------------------------------

bound_arguments::bound_arguments(std::string_view function,
                                 call_arguments& from,
                                 std::initializer_list<const char*> names,
                                 std::size_t required)
  : function_(function), given_(names.size()) {
  if (from.positional.size() > names.size())
    fail(function_ + "() takes at most " + std::to_string(names.size())
         + " arguments");
  for (std::size_t i = 0; i < from.positional.size(); ++i)
    given_[i] = std::move(from.positional[i]);
  for (auto& [name, what] : from.named) {
    const auto at = std::ranges::find_if(
      names, [&name = name](const char* known) { return name == known; });
    if (at == names.end())
      fail(function_ + "() got an unexpected keyword argument '" + name + "'");
    auto& to = given_[std::size_t(at - names.begin())];
    if (to)
      fail(function_ + "() got multiple values for argument '" + name + "'");
    to = std::move(what);
  }
  for (std::size_t i = 0; i < required; ++i)
    if (!given_[i])
      fail(function_ + "() needs the argument '" + names.begin()[i] + "'");
}

std::int64_t bound_arguments::whole(std::size_t i, std::int64_t usual) const {
  if (!has(i))
    return usual;
  at(i).defined();
  if (!at(i).is_integer())
    fail(function_ + "() needs a whole number, not " + at(i).type_name());
  return at(i).integer();
}

const marked_text& bound_arguments::text(std::size_t i) const {
  at(i).defined();
  if (!at(i).text())
    fail(function_ + "() needs a string, not " + at(i).type_name());
  return *at(i).text();
}

// Texts. ------------------------------------------------------------------------

marked_text join(budget& from, const marked_text& between,
                 const std::vector<value>& items, bool any_value) {
  marked_text out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) {
      from.bytes(between.bytes.size());
      out.append(between);
    }
    if (const marked_text* t = items[i].text()) {
      from.bytes(t->bytes.size());
      out.append(*t);
    } else if (any_value)
      out.append(to_text(from, items[i]));
    else
      fail("join() takes strings, found " + items[i].type_name());
  }
  return out;
}

marked_text
replace(budget& from, const marked_text& text, const marked_text& old,
        const marked_text& fresh, std::optional<std::int64_t> most) {
  marked_text out;
  std::int64_t left = most && *most >= 0 ? *most : INT64_MAX;
  std::size_t at = 0;
  const auto copy_to = [&](std::size_t end) {
    from.bytes(end - at);
    out.append(text.part(at, end));
    at = end;
  };
  const auto put = [&] {
    from.step();
    from.bytes(fresh.bytes.size());
    out.append(fresh);
  };
  if (old.bytes.empty()) {
    // Before each character, and at the end.
    for (; left > 0; --left) {
      put();
      if (at == text.bytes.size())
        return out;
      copy_to(at + offset_of(std::string_view(text.bytes).substr(at, 8), 1));
    }
  }
  for (; left > 0; --left) {
    const std::size_t found = text.bytes.find(old.bytes, at);
    if (old.bytes.empty() || found == std::string::npos)
      break;
    copy_to(found);
    put();
    at = found + old.bytes.size();
  }
  copy_to(text.bytes.size());
  return out;
}

namespace {

class text_call {
public:
  text_call(interpreter& by, const marked_text& self, std::string_view name,
            call_arguments& args)
    : by_(by), self_(self), name_(name), args_(args) {}

  value run() {
    by_.meter().steps(1 + self_.bytes.size() / 64);
    if (name_ == "strip" || name_ == "lstrip" || name_ == "rstrip")
      return stripped();
    if (name_ == "split" || name_ == "rsplit")
      return split_parts();
    if (name_ == "splitlines")
      return lines();
    if (name_ == "startswith" || name_ == "endswith")
      return has_end();
    if (name_ == "removeprefix" || name_ == "removesuffix")
      return without_end();
    if (name_ == "replace")
      return replaced();
    if (name_ == "find" || name_ == "rfind" || name_ == "index"
        || name_ == "rindex" || name_ == "count")
      return found();
    if (name_ == "partition" || name_ == "rpartition")
      return partition();
    if (name_ == "join")
      return joined();
    if (name_ == "format")
      return formatted();
    if (name_ == "center" || name_ == "ljust" || name_ == "rjust"
        || name_ == "zfill")
      return filled();
    return plain();
  }

private:
  bound_arguments
  bind(std::initializer_list<const char*> names, std::size_t required = 0) {
    return {name_, args_, names, required};
  }
  value made(std::string text) const {
    by_.meter().bytes(text.size());
    return marked_text::made_of(std::move(text), self_);
  }
  value list(const std::vector<text_range>& parts,
             sequence_kind kind = sequence_kind::list) const {
    std::vector<value> out;
    by_.meter().steps(parts.size());
    for (const text_range& r : parts) {
      by_.meter().bytes(r.last - r.first + sizeof(marked_text));
      out.emplace_back(self_.part(r.first, r.last));
    }
    return sequence::make(by_.meter(), kind, std::move(out));
  }

  value stripped() {
    const auto a = bind({"chars"});
    const strip_side side = name_ == "strip"    ? strip_side::both
                            : name_ == "lstrip" ? strip_side::left
                                                : strip_side::right;
    std::string_view characters;
    if (a.is_set(0)) {
      characters = a.text(0).bytes;
      by_.meter().steps(characters.size() * self_.bytes.size() / 64);
    }
    const text_range r =
      strip(self_.bytes, side, a.is_set(0) ? &characters : nullptr);
    by_.meter().bytes(r.last - r.first);
    return self_.part(r.first, r.last);
  }

  value split_parts() {
    const auto a = bind({"sep", "maxsplit"});
    std::string_view separator;
    if (a.is_set(0)) {
      separator = a.text(0).bytes;
      if (separator.empty())
        fail("empty separator");
    }
    const std::int64_t most = a.whole(1, -1);
    return list(
      split(self_.bytes, a.is_set(0) ? &separator : nullptr,
            most < 0 ? std::nullopt : std::optional(std::size_t(most)),
            name_ == "rsplit"));
  }

  value lines() {
    const auto a = bind({"keepends"});
    std::vector<text_range> parts = split_lines(self_.bytes);
    if (a.flag(0, false))
      for (std::size_t i = 0; i < parts.size(); ++i)
        parts[i].last =
          i + 1 < parts.size() ? parts[i + 1].first : self_.bytes.size();
    return list(parts);
  }

  static bool fits(std::string_view text, std::string_view end, bool front) {
    return front ? text.starts_with(end) : text.ends_with(end);
  }

  value has_end() {
    const auto a = bind({"prefix", "start", "end"}, 1);
    const bool front = name_ == "startswith";
    const std::string_view text = within(a);
    if (const sequence* s = a.at(0).as_sequence();
        s && s->kind() == sequence_kind::tuple) {
      for (const value& v : s->items())
        if (v.text() && fits(text, v.text()->bytes, front))
          return true;
      return false;
    }
    return fits(text, a.text(0).bytes, front);
  }

  /// The text between the arguments start and end (1 and 2).
  std::string_view within(const bound_arguments& a) {
    std::string_view text = self_.bytes;
    const std::int64_t size = std::int64_t(code_points(text));
    const auto clip = [&](std::size_t i, std::int64_t usual) {
      const std::int64_t at = a.is_set(i) ? a.whole(i, usual) : usual;
      return std::clamp(at < 0 ? at + size : at, std::int64_t(0), size);
    };
    const std::int64_t first = clip(1, 0), last = clip(2, size);
    begin_ = offset_of(text, std::size_t(first));
    if (last < first)
      return text.substr(begin_, 0);
    return text.substr(begin_, offset_of(text, std::size_t(last)) - begin_);
  }

  value without_end() {
    const auto a = bind({"prefix"}, 1);
    const bool front = name_ == "removeprefix";
    const std::string& end = a.text(0).bytes;
    const std::size_t size = self_.bytes.size();
    if (!fits(self_.bytes, end, front))
      return self_;
    return front ? self_.part(end.size(), size)
                 : self_.part(0, size - end.size());
  }

  value replaced() {
    const auto a = bind({"old", "new", "count"}, 2);
    return replace(by_.meter(), self_, a.text(0), a.text(1), a.whole(2, -1));
  }

  value found() {
    const auto a = bind({"sub", "start", "end"}, 1);
    const std::string_view text = within(a);
    const std::string& what = a.text(0).bytes;
    if (name_ == "count") {
      if (what.empty())
        return std::int64_t(code_points(text)) + 1;
      std::int64_t count = 0;
      for (std::size_t at = 0; (at = text.find(what, at)) != text.npos;
           at += what.size())
        ++count;
      return count;
    }
    const std::size_t at =
      name_.starts_with('r') ? text.rfind(what) : text.find(what);
    if (at != text.npos)
      return std::int64_t(
        code_points(std::string_view(self_.bytes).substr(0, begin_ + at)));
    if (name_.ends_with("index"))
      fail("substring not found");
    return std::int64_t(-1);
  }

  value partition() {
    const auto a = bind({"sep"}, 1);
    const std::string& by = a.text(0).bytes;
    if (by.empty())
      fail("empty separator");
    const bool last = name_ == "rpartition";
    const std::size_t at = last ? self_.bytes.rfind(by) : self_.bytes.find(by);
    const std::size_t size = self_.bytes.size();
    const std::size_t none = last ? 0 : size;
    if (at == std::string::npos)
      return list({{0, none}, {none, none}, {none, size}},
                  sequence_kind::tuple);
    return list({{0, at}, {at, at + by.size()}, {at + by.size(), size}},
                sequence_kind::tuple);
  }

  value joined() {
    const auto a = bind({"iterable"}, 1);
    return join(by_.meter(), self_, items_of(by_.meter(), a.at(0).defined()),
                false);
  }

  /// {}, {0} and {name}, without conversions.
  value formatted() {
    marked_text out;
    std::size_t next = 0;
    const std::string& f = self_.bytes;
    for (std::size_t i = 0; i < f.size(); ++i) {
      if ((f[i] == '{' || f[i] == '}') && i + 1 < f.size()
          && f[i + 1] == f[i]) {
        out.append(self_.part(i, i + 1));
        ++i;
        continue;
      }
      if (f[i] == '}')
        fail("Single '}' encountered in format string");
      if (f[i] != '{') {
        out.append(self_.part(i, i + 1));
        continue;
      }
      const std::size_t end = f.find('}', i);
      if (end == f.npos)
        fail("expected '}' before end of string");
      const std::string field = f.substr(i + 1, end - i - 1);
      out.append(to_text(by_.meter(), format_field(field, next)));
      i = end;
    }
    by_.meter().bytes(out.bytes.size());
    return out;
  }

  value format_field(const std::string& field, std::size_t& next) {
    if (field.find_first_of("!:.[") != field.npos)
      fail("format() takes {}, {0} and {name} only");
    const bool numbered =
      !field.empty() && field.size() < 4
      && field.find_first_not_of("0123456789") == field.npos;
    if (field.empty() || numbered) {
      const std::size_t at =
        field.empty() ? next++ : std::size_t(std::stoul(field));
      if (at >= args_.positional.size())
        fail("Replacement index " + std::to_string(at)
             + " out of range for positional args tuple");
      return args_.positional[at];
    }
    for (const auto& [name, what] : args_.named)
      if (name == field)
        return what;
    fail("format() has no argument '" + field.substr(0, 40) + "'");
  }

  value filled() {
    const auto a = bind({"width", "fillchar"}, 1);
    const std::size_t size = code_points(self_.bytes);
    const std::int64_t width = a.whole(0, 0);
    if (width <= std::int64_t(size))
      return self_;
    const std::size_t more = std::size_t(width) - size;
    by_.meter().bytes(more); // first, so that the product cannot wrap
    by_.meter().bytes(4 * more);
    const std::string with = name_ == "zfill" ? "0"
                             : a.has(1)       ? a.text(1).bytes
                                              : " ";
    if (code_points(with) != 1)
      fail("The fill character must be exactly one character long");
    const auto fill = [&](std::size_t count) {
      std::string out;
      for (std::size_t i = 0; i < count; ++i)
        out += with;
      return out;
    };
    std::size_t left = name_ == "ljust" ? 0 : more;
    if (name_ == "center")
      left = more / 2 + (more & std::size_t(width) & 1);
    std::string text = self_.bytes;
    if (name_ == "zfill" && (text.starts_with('-') || text.starts_with('+')))
      return made(text.substr(0, 1) + fill(more) + text.substr(1));
    return made(fill(left) + text + fill(more - left));
  }

  template <class Property>
  bool all(Property has) const {
    if (self_.bytes.empty())
      return false;
    for (std::size_t at = 0; at < self_.bytes.size();)
      if (!has(core::next_code(self_.bytes, at)))
        return false;
    return true;
  }

  value plain() {
    bind({});
    if (name_ == "upper")
      return made(upper(self_.bytes));
    if (name_ == "lower" || name_ == "casefold")
      return made(lower(self_.bytes));
    if (name_ == "title")
      return made(title(self_.bytes));
    if (name_ == "capitalize")
      return made(capitalize(self_.bytes));
    namespace u = model::text;
    if (name_ == "isspace")
      return all(is_python_space);
    if (name_ == "isdigit" || name_ == "isdecimal" || name_ == "isnumeric")
      return all(name_ == "isnumeric" ? u::is_numeric : u::is_decimal);
    if (name_ == "isalpha")
      return all(u::is_letter);
    if (name_ == "isalnum")
      return all(
        [](char32_t c) { return u::is_letter(c) || u::is_numeric(c); });
    const std::string changed =
      name_ == "isupper" ? upper(self_.bytes) : lower(self_.bytes);
    bool cased = false;
    for (std::size_t at = 0; at < self_.bytes.size();)
      cased = u::is_cased(core::next_code(self_.bytes, at)) || cased;
    return cased && changed == self_.bytes;
  }

  interpreter& by_;
  const marked_text& self_;
  std::string_view name_;
  call_arguments& args_;
  std::size_t begin_ = 0;
};

// Lists and maps. ---------------------------------------------------------------

value call_list(interpreter& by, const value& self, std::string_view name,
                call_arguments& args) {
  const sequence& s = *self.as_sequence();
  if (name == "copy") {
    bound_arguments(name, args, {});
    return self;
  }
  const bound_arguments a(name, args, {"value"}, 1);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < s.items().size(); ++i)
    if (equal(by.meter(), s.items()[i], a.at(0))) {
      if (name == "index")
        return std::int64_t(i);
      ++count;
    }
  if (name == "index")
    fail("the list has no such value");
  return count;
}

value call_map(interpreter& by, const value& self, std::string_view name,
               call_arguments& args) {
  const map& m = *self.as_map();
  if (name == "get") {
    const bound_arguments a(name, args, {"key", "default"}, 1);
    if (const value* found = m.find(a.at(0)))
      return *found;
    return a.get(1, value::none{});
  }
  bound_arguments(name, args, {});
  if (name == "copy")
    return self;
  std::vector<value> out;
  by.meter().steps(m.entries().size());
  for (const auto& [key, what] : m.entries())
    if (name == "items")
      out.push_back(
        sequence::make(by.meter(), sequence_kind::tuple, {key, what}));
    else
      out.push_back(name == "keys" ? key : what);
  return sequence::make(by.meter(),
                        name == "items"  ? sequence_kind::items
                        : name == "keys" ? sequence_kind::keys
                                         : sequence_kind::values,
                        std::move(out));
}

class method final : public object {
public:
  method(value self, std::string name)
    : self_(std::move(self)), name_(std::move(name)) {
    if (depth() > value_depth_max)
      fail("methods are nested too deep");
  }
  std::string_view kind() const override { return "method"; }
  bool callable() const override { return true; }
  std::size_t depth() const override { return self_.depth() + 1; }
  value call(interpreter& by, call_arguments args) override {
    if (const marked_text* t = self_.text())
      return text_call(by, *t, name_, args).run();
    return self_.as_map() ? call_map(by, self_, name_, args)
                          : call_list(by, self_, name_, args);
  }

private:
  value self_;
  std::string name_;
};

constexpr std::array text_methods = {
  "strip",        "lstrip",      "rstrip",   "split",   "rsplit",
  "splitlines",   "startswith",  "endswith", "replace", "find",
  "rfind",        "index",       "rindex",   "count",   "partition",
  "rpartition",   "join",        "format",   "center",  "ljust",
  "rjust",        "zfill",       "upper",    "lower",   "casefold",
  "title",        "capitalize",  "isspace",  "isdigit", "isdecimal",
  "isnumeric",    "isalpha",     "isalnum",  "isupper", "islower",
  "removeprefix", "removesuffix"};
constexpr std::array list_methods = {"index", "count", "copy"};
constexpr std::array map_methods = {"get", "items", "keys", "values", "copy"};

} // namespace

std::optional<value> method_of(const value& self, std::string_view name) {
  const auto has = [&](const auto& names) {
    return std::ranges::any_of(names, [&](const char* n) { return name == n; });
  };
  const bool found = self.text()     ? has(text_methods)
                     : self.as_map() ? has(map_methods)
                     : self.as_sequence()
                       ? self.as_sequence()->indexed() && has(list_methods)
                       : false;
  if (!found)
    return std::nullopt;
  return value(
    std::shared_ptr<object>(std::make_shared<method>(self, std::string(name))));
}

} // namespace shoal::jinja
