// runtime/model/jinja/objects.cpp -- loop, namespace, and the global functions.
#include "runtime/core/text/shown.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/jinja/interpreter.hpp"
#include "runtime/model/jinja/loop.hpp"

#include <algorithm>
#include <map>

namespace shoal::jinja {

namespace {

/// A function of the program.
class function final : public object {
public:
  using code = std::function<value(interpreter&, call_arguments&)>;
  /// @param depth 1, and that of what the code holds
  function(code run, std::size_t depth) : run_(std::move(run)), depth_(depth) {
    if (depth_ > value_depth_max)
      fail("a function is nested too deep");
  }
  std::string_view kind() const override { return "function"; }
  std::size_t depth() const override { return depth_; }
  bool callable() const override { return true; }
  value call(interpreter& by, call_arguments args) override {
    return run_(by, args);
  }

private:
  code run_;
  std::size_t depth_;
};

value make_function(function::code run, std::size_t depth = 1) {
  return std::shared_ptr<object>(
    std::make_shared<function>(std::move(run), depth));
}

} // namespace

loop_object::loop_object(std::vector<value> items, std::size_t level, again run)
  : items_(std::move(items)), level_(level), again_(std::move(run)) {
  for (const value& v : items_)
    depth_ = std::max(depth_, v.depth() + 1);
}

std::optional<value> loop_object::attribute(std::string_view name) {
  const auto number = [](std::size_t n) { return value(std::int64_t(n)); };
  const std::size_t size = items_.size(), at = std::min(at_, size - 1);
  if (name == "index")
    return number(at + 1);
  if (name == "index0")
    return number(at);
  if (name == "revindex")
    return number(size - at);
  if (name == "revindex0")
    return number(size - at - 1);
  if (name == "first")
    return value(at == 0);
  if (name == "last")
    return value(at + 1 == size);
  if (name == "length")
    return number(size);
  if (name == "depth")
    return number(level_ + 1);
  if (name == "depth0")
    return number(level_);
  if (name == "previtem")
    return at == 0 ? value::missing("there is no previous item")
                   : items_[at - 1];
  if (name == "nextitem")
    return at + 1 == size ? value::missing("there is no next item")
                          : items_[at + 1];
  if (name == "cycle" || name == "changed")
    return make_function(
      [self = std::weak_ptr(shared_from_this()),
       cycles = name == "cycle"](interpreter& by, call_arguments& args) {
        const auto loop = self.lock();
        if (!loop)
          fail("the loop has ended");
        if (cycles)
          return loop->cycle(args.positional);
        return value(loop->changed(by.meter(), std::move(args.positional)));
      });
  return std::nullopt;
}

value loop_object::call(interpreter&, call_arguments args) {
  if (!again_)
    fail("The loop must have the 'recursive' marker to be called "
         "recursively.");
  const bound_arguments a("loop", args, {"iterable"}, 1);
  return again_(a.at(0), level_ + 1);
}

value loop_object::cycle(const std::vector<value>& through) const {
  if (through.empty())
    fail("no items for cycling given");
  return through[at_ % through.size()];
}

bool loop_object::changed(budget& from, std::vector<value> now) {
  const bool same =
    asked_ && now.size() == changed_.size()
    && std::ranges::equal(now, changed_, [&](const value& a, const value& b) {
         return equal(from, a, b);
       });
  asked_ = true;
  changed_ = std::move(now);
  return !same;
}

/// Variables that can be set from inner scopes.
class namespace_object final : public object {
public:
  std::string_view kind() const override { return "Namespace"; }
  std::optional<value> attribute(std::string_view name) override {
    const auto at = variables.find(name);
    if (at == variables.end())
      return std::nullopt;
    return at->second;
  }
  std::map<std::string, value, std::less<>> variables;
};

void set_in_namespace(const value& v, const std::string& name, value what) {
  auto* const space = dynamic_cast<namespace_object*>(v.as_object());
  if (!space)
    fail("cannot assign attribute on non-namespace object");
  space->variables[name] = std::move(what);
}

namespace {

map map_of(interpreter& by, call_arguments& args) {
  map out;
  for (const value& from : args.positional) {
    if (const map* m = from.as_map())
      for (const auto& [key, what] : m->entries())
        out.put(key, what);
    else
      for (const value& pair : items_of(by.meter(), from)) {
        const std::vector<value> two = items_of(by.meter(), pair);
        if (two.size() != 2)
          fail("a mapping is made of pairs");
        out.put(two[0], two[1]);
      }
  }
  for (auto& [name, what] : args.named)
    out.put(value(name), std::move(what));
  return out;
}

value make_namespace(interpreter& by, call_arguments& args) {
  const auto out = std::make_shared<namespace_object>();
  const map from = map_of(by, args);
  for (const auto& [key, what] : from.entries()) {
    if (!key.text())
      fail("keywords must be strings");
    out->variables[key.text()->bytes] = what;
  }
  by.keep([out] { out->variables.clear(); });
  return std::shared_ptr<object>(out);
}

value make_range(interpreter& by, call_arguments& args) {
  const bound_arguments a("range", args, {"start", "stop", "step"}, 1);
  const std::int64_t start = a.has(1) ? a.whole(0, 0) : 0;
  const std::int64_t stop = a.has(1) ? a.whole(1, 0) : a.whole(0, 0);
  const std::int64_t step = a.whole(2, 1);
  if (step == 0)
    fail("range() arg 3 must not be zero");
  const __int128 distance =
    step > 0 ? __int128(stop) - start : __int128(start) - stop;
  const __int128 stride = step > 0 ? __int128(step) : -__int128(step);
  const __int128 count =
    distance > 0 ? (distance + stride - 1) / stride : __int128(0);
  if (count > range_items_max)
    fail("Range too big. The sandbox blocks ranges larger than "
         + std::to_string(range_items_max) + ".");
  by.meter().steps(std::uint64_t(count));
  std::vector<value> items;
  for (std::int64_t i = 0; i < std::int64_t(count); ++i)
    items.emplace_back(start + i * step);
  return sequence::make(by.meter(), sequence_kind::range, std::move(items));
}

value raise(interpreter& by, call_arguments& args) {
  const bound_arguments a("raise_exception", args, {"message"}, 1);
  throw raised_exception(
    core::shown(to_text(by.meter(), a.at(0)).bytes, raised_bytes_max));
}

value time_text(interpreter& by, call_arguments& args) {
  const bound_arguments a("strftime_now", args, {"format"}, 1);
  const std::string& format = a.text(0).bytes;
  if (format.size() > 256)
    fail("strftime_now() takes a format of at most 256 bytes");
  if (format.empty())
    return value("");
  char out[8192];
  const std::size_t size =
    std::strftime(out, sizeof out, (format + "|").c_str(), &by.now());
  if (size == 0)
    fail("strftime_now() made too long a text");
  return value(core::replace_broken(std::string_view(out, size - 1)));
}

/// cycler(...): next(), reset(), current.
class cycler final : public object,
                     public std::enable_shared_from_this<cycler> {
public:
  explicit cycler(std::vector<value> items) : items_(std::move(items)) {
    for (const value& v : items_)
      depth_ = std::max(depth_, v.depth() + 1);
    if (depth_ > value_depth_max)
      fail("a cycler is nested too deep");
  }
  std::string_view kind() const override { return "Cycler"; }
  std::size_t depth() const override { return depth_; }
  std::optional<value> attribute(std::string_view name) override {
    if (name == "current")
      return items_[at_];
    if (name != "next" && name != "reset")
      return std::nullopt;
    return make_function(
      [self = shared_from_this(),
       next = name == "next"](interpreter&, call_arguments& args) -> value {
        bound_arguments("next", args, {});
        if (!next) {
          self->at_ = 0;
          return value::none{};
        }
        const value out = self->items_[self->at_];
        self->at_ = (self->at_ + 1) % self->items_.size();
        return out;
      },
      depth_ + 1);
  }

private:
  std::vector<value> items_;
  std::size_t at_ = 0;
  std::size_t depth_ = 1;
};

value make_cycler(interpreter&, call_arguments& args) {
  if (args.positional.empty() || !args.named.empty())
    fail("at least one item has to be provided");
  return std::shared_ptr<object>(
    std::make_shared<cycler>(std::move(args.positional)));
}

value make_joiner(interpreter&, call_arguments& args) {
  const bound_arguments a("joiner", args, {"sep"});
  const value between = a.get(0, value(", "));
  return make_function(
    [between, used = false](interpreter&, call_arguments&) mutable {
      return std::exchange(used, true) ? between : value("");
    },
    between.depth() + 1);
}

} // namespace

void add_globals(interpreter& to) {
  to.set("cycler", make_function(make_cycler));
  to.set("dict", make_function([](interpreter& by, call_arguments& args) {
           return map::make(by.meter(), map_of(by, args));
         }));
  to.set("joiner", make_function(make_joiner));
  to.set("namespace", make_function(make_namespace));
  to.set("raise_exception", make_function(raise));
  to.set("range", make_function(make_range));
  to.set("strftime_now", make_function(time_text));
}

} // namespace shoal::jinja
