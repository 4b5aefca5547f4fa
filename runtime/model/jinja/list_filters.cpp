// runtime/model/jinja/list_filters.cpp -- filters of lists and maps.
#include "runtime/model/jinja/interpreter.hpp"
#include "runtime/model/jinja/values/python_text.hpp"

#include <algorithm>
#include <array>

namespace shoal::jinja {

namespace {

value list_of(interpreter& by, std::vector<value> items) {
  return sequence::make(by.meter(), sequence_kind::list, std::move(items));
}
value generator_of(interpreter& by, std::vector<value> items) {
  return sequence::make(by.meter(), sequence_kind::generator, std::move(items));
}

std::vector<text_range> cut(const std::string& text, std::string_view at) {
  return split(text, &at, std::nullopt, false);
}

/// "a.b.0" of a value; numbers are positions.
value path_of(interpreter& by, value from, const value& path,
              const value* usual = nullptr) {
  std::vector<value> parts;
  if (path.is_integer())
    parts.push_back(path);
  else if (const marked_text* t = path.text())
    for (const text_range r : cut(t->bytes, ".")) {
      const std::string part = t->bytes.substr(r.first, r.last - r.first);
      const bool number = !part.empty() && part.size() < 10
                          && part.find_first_not_of("0123456789") == part.npos;
      parts.push_back(number ? value(std::int64_t(std::stoll(part)))
                             : value(part));
    }
  else
    fail("an attribute must be a name");
  for (const value& part : parts) {
    from = by.item(from, part);
    if (from.is_undefined() && usual)
      from = *usual;
  }
  return from;
}

value without_case(const value& v) {
  const marked_text* const t = v.text();
  return t ? value(lower(t->bytes)) : v;
}

/// Items with what they are ordered or told apart by.
struct keyed {
  value item;
  std::vector<value> keys;
};

class key_reader {
public:
  /// @param attribute  none: the items themselves; of a sort: several, by commas
  key_reader(interpreter& by, const value& attribute, bool case_matters)
    : by_(by), attribute_(attribute), case_matters_(case_matters) {}

  keyed read(value item) const {
    keyed out;
    if (const marked_text* t = attribute_.text()) {
      for (const text_range r : cut(t->bytes, ","))
        out.keys.push_back(
          cased(path_of(by_, item, value(t->part(r.first, r.last)))));
    } else if (attribute_.is_integer())
      out.keys.push_back(cased(path_of(by_, item, attribute_)));
    else
      out.keys.push_back(cased(item));
    out.item = std::move(item);
    return out;
  }

  int order(const keyed& a, const keyed& b) const {
    for (std::size_t i = 0; i < a.keys.size(); ++i)
      if (const int o = compare(by_.meter(), a.keys[i], b.keys[i]))
        return o;
    return 0;
  }

private:
  value cased(value v) const { return case_matters_ ? v : without_case(v); }
  interpreter& by_;
  const value& attribute_;
  bool case_matters_;
};

value do_dictsort(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("dictsort", args,
                          {"case_sensitive", "by", "reverse"});
  in.defined();
  if (!in.as_map())
    fail("dictsort needs a mapping, not " + in.type_name());
  const std::string which = a.has(1) ? a.text(1).bytes : "key";
  if (which != "key" && which != "value")
    fail("You can only sort by either \"key\" or \"value\"");
  const bool exact = a.flag(0, false);
  std::vector<std::pair<value, map::entry>> all;
  for (const map::entry& e : in.as_map()->entries()) {
    const value& key = which == "key" ? e.first : e.second;
    all.emplace_back(exact ? key : without_case(key), e);
  }
  const bool falling = a.flag(2, false);
  std::ranges::stable_sort(all, [&](const auto& x, const auto& y) {
    const int o = compare(by.meter(), x.first, y.first);
    return falling ? o > 0 : o < 0;
  });
  std::vector<value> out;
  for (auto& [key, e] : all)
    out.push_back(
      sequence::make(by.meter(), sequence_kind::tuple, {e.first, e.second}));
  return list_of(by, std::move(out));
}

value do_first(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("first", args, {});
  const std::vector<value> items = items_of(by.meter(), in);
  return items.empty() ? value::missing("No first item, sequence was empty.")
                       : items.front();
}

value do_last(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("last", args, {});
  if (in.as_sequence() && !in.as_sequence()->has_length())
    fail("'generator' object is not reversible");
  const std::vector<value> items = items_of(by.meter(), in);
  return items.empty() ? value::missing("No last item, sequence was empty.")
                       : items.back();
}

value do_items(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("items", args, {});
  if (in.is_undefined())
    return generator_of(by, {});
  if (!in.as_map())
    fail("Can only get item pairs from a mapping.");
  std::vector<value> out;
  for (const auto& [key, what] : in.as_map()->entries())
    out.push_back(
      sequence::make(by.meter(), sequence_kind::tuple, {key, what}));
  return generator_of(by, std::move(out));
}

value do_join(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("join", args, {"d", "attribute"});
  std::vector<value> items = items_of(by.meter(), in);
  if (a.is_set(1))
    for (value& v : items)
      v = path_of(by, v, a.at(1));
  return join(by.meter(),
              a.has(0) ? to_text(by.meter(), a.at(0)) : marked_text(), items,
              true);
}

value do_list(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("list", args, {});
  return list_of(by, items_of(by.meter(), in));
}

value do_map(interpreter& by, const value& in, call_arguments& args) {
  std::vector<value> items = items_of(by.meter(), in);
  if (args.positional.empty()) {
    const bound_arguments a("map", args, {"attribute", "default"}, 1);
    const value usual = a.get(1, value::none{});
    for (value& v : items)
      v = path_of(by, v, a.at(0), a.has(1) ? &usual : nullptr);
    return generator_of(by, std::move(items));
  }
  const std::string name = to_text(by.meter(), args.positional[0]).bytes;
  args.positional.erase(args.positional.begin());
  for (value& v : items)
    v = by.filter(name, v, args);
  return generator_of(by, std::move(items));
}

value do_extreme(interpreter& by, const value& in, call_arguments& args,
                 int sign) {
  const bound_arguments a("min", args, {"case_sensitive", "attribute"});
  const value attribute = a.get(1, value::none{});
  const key_reader keys(by, attribute, a.flag(0, false));
  std::optional<keyed> best;
  for (value& v : items_of(by.meter(), in)) {
    keyed k = keys.read(std::move(v));
    if (!best || keys.order(k, *best) * sign < 0)
      best = std::move(k);
  }
  return best ? best->item
              : value::missing("No aggregated item, sequence was empty.");
}

value do_min(interpreter& by, const value& in, call_arguments& args) {
  return do_extreme(by, in, args, 1);
}
value do_max(interpreter& by, const value& in, call_arguments& args) {
  return do_extreme(by, in, args, -1);
}

value do_reverse(interpreter& by, const value& in, call_arguments& args) {
  bound_arguments("reverse", args, {});
  std::vector<value> items = items_of(by.meter(), in.defined());
  std::ranges::reverse(items);
  return in.text() ? value(join(by.meter(), {}, items, false))
                   : generator_of(by, std::move(items));
}

/// select, reject and their forms for attributes.
value choose(interpreter& by, const value& in, call_arguments& args,
             bool by_attribute, bool wanted) {
  std::vector<value> out;
  value attribute;
  if (by_attribute) {
    if (args.positional.empty())
      fail("Missing parameter for attribute name");
    attribute = args.positional[0];
    args.positional.erase(args.positional.begin());
  }
  std::string test;
  if (!args.positional.empty()) {
    test = to_text(by.meter(), args.positional[0]).bytes;
    args.positional.erase(args.positional.begin());
  }
  for (value& v : items_of(by.meter(), in)) {
    const value of = by_attribute ? path_of(by, v, attribute) : v;
    if ((test.empty() ? of.truth() : by.test(test, of, args)) == wanted)
      out.push_back(std::move(v));
  }
  return generator_of(by, std::move(out));
}

value do_select(interpreter& by, const value& in, call_arguments& args) {
  return choose(by, in, args, false, true);
}
value do_reject(interpreter& by, const value& in, call_arguments& args) {
  return choose(by, in, args, false, false);
}
value do_selectattr(interpreter& by, const value& in, call_arguments& args) {
  return choose(by, in, args, true, true);
}
value do_rejectattr(interpreter& by, const value& in, call_arguments& args) {
  return choose(by, in, args, true, false);
}

value do_sort(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("sort", args,
                          {"reverse", "case_sensitive", "attribute"});
  const value attribute = a.get(2, value::none{});
  const key_reader keys(by, attribute, a.flag(1, false));
  std::vector<keyed> all;
  for (value& v : items_of(by.meter(), in))
    all.push_back(keys.read(std::move(v)));
  const bool falling = a.flag(0, false);
  std::ranges::stable_sort(all, [&](const keyed& x, const keyed& y) {
    const int o = keys.order(x, y);
    return falling ? o > 0 : o < 0;
  });
  std::vector<value> out;
  for (keyed& k : all)
    out.push_back(std::move(k.item));
  return list_of(by, std::move(out));
}

value do_sum(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("sum", args, {"attribute", "start"});
  value out = a.get(1, std::int64_t(0));
  for (const value& v : items_of(by.meter(), in))
    out = arithmetic(by.meter(), "+", out,
                     a.is_set(0) ? path_of(by, v, a.at(0)) : v);
  return out;
}

value do_unique(interpreter& by, const value& in, call_arguments& args) {
  const bound_arguments a("unique", args, {"case_sensitive", "attribute"});
  const value attribute = a.get(1, value::none{});
  const key_reader keys(by, attribute, a.flag(0, false));
  map seen;
  std::vector<value> out;
  for (value& v : items_of(by.meter(), in)) {
    keyed k = keys.read(std::move(v));
    const value& key = k.keys.front();
    if (seen.find(key))
      continue;
    seen.put(key, true);
    out.push_back(std::move(k.item));
  }
  return generator_of(by, std::move(out));
}

struct list_filter_entry {
  std::string_view name;
  filter_function run;
};

constexpr std::array list_filters = {
  list_filter_entry{"dictsort", do_dictsort},
  list_filter_entry{"first", do_first},
  list_filter_entry{"items", do_items},
  list_filter_entry{"join", do_join},
  list_filter_entry{"last", do_last},
  list_filter_entry{"list", do_list},
  list_filter_entry{"map", do_map},
  list_filter_entry{"max", do_max},
  list_filter_entry{"min", do_min},
  list_filter_entry{"reject", do_reject},
  list_filter_entry{"rejectattr", do_rejectattr},
  list_filter_entry{"reverse", do_reverse},
  list_filter_entry{"select", do_select},
  list_filter_entry{"selectattr", do_selectattr},
  list_filter_entry{"sort", do_sort},
  list_filter_entry{"sum", do_sum},
  list_filter_entry{"unique", do_unique},
};

} // namespace

filter_function find_list_filter(std::string_view name) {
  const auto at =
    std::ranges::find(list_filters, name, &list_filter_entry::name);
  return at == list_filters.end() ? nullptr : at->run;
}

} // namespace shoal::jinja
