// runtime/model/jinja/interpreter.cpp -- expressions to values, statements to
// text.
#include "runtime/model/jinja/interpreter.hpp"

#include "runtime/model/jinja/loop.hpp"

#include <algorithm>

namespace shoal::jinja {

value* scope::find(std::string_view name) {
  for (scope* s = this; s; s = s->parent.get())
    for (auto& [key, what] : s->variables)
      if (key == name)
        return &what;
  return nullptr;
}

void scope::set(const std::string& name, value what) {
  for (auto& [key, old] : variables)
    if (key == name) {
      old = std::move(what);
      return;
    }
  variables.emplace_back(name, std::move(what));
}

/// A level of what runs, while it is open.
class interpreter::level {
public:
  explicit level(interpreter& of) : of_(of) {
    if (of_.depth_ >= run_depth_max)
      fail("macros or expressions are nested too deep");
    ++of_.depth_;
    of_.budget_.step();
  }
  ~level() { --of_.depth_; }
  level(const level&) = delete;
  level& operator=(const level&) = delete;

private:
  interpreter& of_;
};

namespace {

/// A macro, or the caller of a call block.
class macro_object final : public object {
public:
  macro_object(const macro_code& code, scope_pointer within)
    : code_(code), within_(std::move(within)) {}
  std::string_view kind() const override { return "Macro"; }
  bool callable() const override { return true; }
  value call(interpreter& by, call_arguments args) override {
    return by.run_macro(code_, within_, std::move(args));
  }
  std::optional<value> attribute(std::string_view name) override {
    if (name == "name")
      return value(code_.name);
    return std::nullopt;
  }

private:
  const macro_code& code_;
  scope_pointer within_;
};

scope_pointer scope_in(const scope_pointer& parent) {
  auto out = std::make_shared<scope>();
  out->parent = parent;
  return out;
}

} // namespace

interpreter::interpreter(const limits& bounds, const std::tm& now)
  : bounds_(bounds), budget_(bounds), now_(now),
    globals_(std::make_shared<scope>()) {
  add_globals(*this);
}

interpreter::~interpreter() {
  for (const auto& empty : kept_)
    empty();
}

void interpreter::set(const std::string& name, value what) {
  globals_->set(name, std::move(what));
}

void interpreter::keep(std::function<void()> empty) {
  kept_.push_back(std::move(empty));
}

marked_text interpreter::run(const block& code) {
  marked_text out;
  run(code, scope_in(globals_), out);
  return out;
}

void interpreter::write(marked_text& out, const marked_text& more) {
  if (out.bytes.size() + more.bytes.size() > bounds_.output_bytes_max)
    fail("the text has more than " + std::to_string(bounds_.output_bytes_max)
         + " bytes");
  budget_.bytes(more.bytes.size());
  out.append(more);
}

// Expressions. ------------------------------------------------------------------

value interpreter::evaluate_name(const expression& e, const scope_pointer& in) {
  if (const value* const found = in->find(e.name))
    return *found;
  return value::missing("'" + e.name + "' is undefined");
}

std::vector<value>
interpreter::evaluate_all(const std::vector<expression_pointer>& all,
                          const scope_pointer& in) {
  std::vector<value> out;
  out.reserve(all.size());
  for (const auto& e : all)
    out.push_back(evaluate(*e, in));
  return out;
}

value interpreter::evaluate_map(const expression& e, const scope_pointer& in) {
  map out;
  for (std::size_t i = 0; i < e.parts.size(); i += 2) {
    value key = evaluate(*e.parts[i], in);
    out.put(std::move(key), evaluate(*e.parts[i + 1], in));
  }
  return map::make(budget_, std::move(out));
}

value interpreter::evaluate_slice(const expression& e,
                                  const scope_pointer& in) {
  const value of = evaluate(*e.parts[0], in);
  value bound[3];
  for (std::size_t i = 0; i < 3; ++i)
    bound[i] =
      e.parts[i + 1] ? evaluate(*e.parts[i + 1], in) : value(value::none{});
  return slice(budget_, of, bound[0], bound[1], bound[2]);
}

call_arguments
interpreter::evaluate(const argument_list& from, const scope_pointer& in) {
  call_arguments out;
  out.positional = evaluate_all(from.positional, in);
  for (const auto& [name, e] : from.named)
    out.named.emplace_back(name, evaluate(*e, in));
  if (from.list)
    for (value& v : items_of(budget_, evaluate(*from.list, in)))
      out.positional.push_back(std::move(v));
  if (!from.map)
    return out;
  const value more = evaluate(*from.map, in);
  if (!more.as_map())
    fail("the argument after ** must be a mapping, not " + more.type_name());
  for (const auto& [key, what] : more.as_map()->entries()) {
    if (!key.text())
      fail("keywords must be strings");
    out.named.emplace_back(key.text()->bytes, what);
  }
  return out;
}

value interpreter::evaluate_call(const expression& e, const scope_pointer& in) {
  const value callee = evaluate(*e.parts[0], in);
  call_arguments args = evaluate(e.arguments, in);
  line_ = e.line;
  return call(callee, std::move(args));
}

value interpreter::evaluate_filter(const expression& e, const scope_pointer& in,
                                   const value* first) {
  const level here(*this);
  const expression* const inner = e.parts[0].get();
  value what = !inner  ? *first
               : first ? evaluate_filter(*inner, in, first)
                       : evaluate(*inner, in);
  call_arguments args = evaluate(e.arguments, in);
  line_ = e.line;
  return filter(e.name, what, std::move(args));
}

value interpreter::evaluate_join(const expression& e, const scope_pointer& in) {
  marked_text out;
  for (const auto& part : e.parts) {
    const value v = evaluate(*part, in);
    if (const marked_text* t = v.text())
      write(out, *t);
    else
      write(out, to_text(budget_, v));
  }
  return out;
}

value interpreter::evaluate_comparison(const expression& e,
                                       const scope_pointer& in) {
  value left = evaluate(*e.parts[0], in);
  for (std::size_t i = 0; i < e.names.size(); ++i) {
    value right = evaluate(*e.parts[i + 1], in);
    line_ = e.line;
    if (!compare_by(budget_, e.names[i], left, right))
      return false;
    left = std::move(right);
  }
  return true;
}

value interpreter::evaluate(const expression& e, const scope_pointer& in) {
  const level here(*this);
  line_ = e.line;
  using kind = expression_kind;
  switch (e.kind) {
  case kind::constant:
    return e.literal;
  case kind::name:
    return evaluate_name(e, in);
  case kind::list:
    return sequence::make(budget_, sequence_kind::list,
                          evaluate_all(e.parts, in));
  case kind::tuple:
    return sequence::make(budget_, sequence_kind::tuple,
                          evaluate_all(e.parts, in));
  case kind::map:
    return evaluate_map(e, in);
  case kind::attribute:
    return attribute(evaluate(*e.parts[0], in), e.name);
  case kind::item: {
    const value of = evaluate(*e.parts[0], in);
    return item(of, evaluate(*e.parts[1], in));
  }
  case kind::slice:
    return evaluate_slice(e, in);
  case kind::call:
    return evaluate_call(e, in);
  case kind::filter:
    return evaluate_filter(e, in, nullptr);
  case kind::test: {
    const value of = evaluate(*e.parts[0], in);
    call_arguments args = evaluate(e.arguments, in);
    line_ = e.line;
    return test(e.name, of, std::move(args));
  }
  case kind::negative:
    return negative(evaluate(*e.parts[0], in));
  case kind::positive: {
    const value of = evaluate(*e.parts[0], in);
    return negative(negative(of));
  }
  case kind::negation:
    return !evaluate(*e.parts[0], in).truth();
  case kind::both: {
    value left = evaluate(*e.parts[0], in);
    return left.truth() ? evaluate(*e.parts[1], in) : left;
  }
  case kind::either: {
    value left = evaluate(*e.parts[0], in);
    return left.truth() ? left : evaluate(*e.parts[1], in);
  }
  case kind::comparison:
    return evaluate_comparison(e, in);
  case kind::arithmetic: {
    const value left = evaluate(*e.parts[0], in);
    const value right = evaluate(*e.parts[1], in);
    line_ = e.line;
    return arithmetic(budget_, e.name, left, right);
  }
  case kind::join:
    return evaluate_join(e, in);
  case kind::conditional:
    if (evaluate(*e.parts[0], in).truth())
      return evaluate(*e.parts[1], in);
    if (e.parts[2])
      return evaluate(*e.parts[2], in);
    return value::missing("the inline if-expression was false and has no else");
  }
  return {};
}

value interpreter::call(const value& callee, call_arguments args) {
  const level here(*this);
  callee.defined();
  if (object* const o = callee.as_object())
    return o->call(*this, std::move(args));
  fail("'" + callee.type_name() + "' object is not callable");
}

value interpreter::filter(std::string_view name, const value& in,
                          call_arguments args) {
  budget_.step();
  filter_function found = find_filter(name);
  if (!found)
    found = find_list_filter(name);
  if (!found)
    fail("no filter named '" + std::string(name) + "'");
  return found(*this, in, args);
}

bool interpreter::test(std::string_view name, const value& in,
                       call_arguments args) {
  budget_.step();
  const test_function found = find_test(name);
  if (!found)
    fail("no test named '" + std::string(name) + "'");
  return found(*this, in, args);
}

value interpreter::attribute(const value& v, const std::string& name) {
  v.defined();
  if (object* const o = v.as_object()) {
    if (auto found = o->attribute(name))
      return *std::move(found);
  } else if (auto method = method_of(v, name))
    return *std::move(method);
  if (const map* m = v.as_map())
    if (const value* found = m->find_text(name))
      return *found;
  return value::missing("'" + v.type_name() + " object' has no attribute '"
                        + name + "'");
}

value interpreter::item(const value& v, const value& key) {
  v.defined();
  if (const map* m = v.as_map()) {
    if (const value* found = m->find(key))
      return *found;
  } else if (key.is_integer() && (v.text() || v.as_sequence())) {
    const sequence* const s = v.as_sequence();
    if (!s || s->indexed()) {
      const std::int64_t size = std::int64_t(length_of(v));
      const std::int64_t at = key.integer() + (key.integer() < 0 ? size : 0);
      if (at >= 0 && at < size)
        return s ? s->items()[std::size_t(at)]
                 : slice(budget_, v, at, at + 1, value::none{});
    }
  }
  if (const marked_text* name = key.text()) {
    object* const o = v.as_object();
    if (auto found = o ? o->attribute(name->bytes) : method_of(v, name->bytes))
      return *std::move(found);
  }
  return value::missing("'" + v.type_name() + " object' has no item "
                        + to_repr(budget_, key).bytes.substr(0, 80));
}

// Statements. -------------------------------------------------------------------

interpreter::flow
interpreter::run(const block& code, const scope_pointer& in, marked_text& out) {
  const level here(*this);
  for (const statement& s : code)
    if (const flow f = run(s, in, out); f != flow::on)
      return f;
  return flow::on;
}

interpreter::flow interpreter::run(const statement& s, const scope_pointer& in,
                                   marked_text& out) {
  budget_.step();
  line_ = s.line;
  using kind = statement_kind;
  switch (s.kind) {
  case kind::text:
    write(out, marked_text::own(s.text));
    break;
  case kind::output:
    write(out, to_text(budget_, evaluate(*s.expressions[0], in)));
    break;
  case kind::branch:
    return branch(s, in, out);
  case kind::loop:
    loop(s, in, evaluate(*s.expressions[0], in), 0, out);
    break;
  case kind::set:
    assign(s.targets[0], evaluate(*s.expressions[0], in), in);
    break;
  case kind::set_block:
    set_block(s, in);
    break;
  case kind::macro:
    define_macro(s, in);
    break;
  case kind::call:
    call_block(s, in, out);
    break;
  case kind::filter: {
    marked_text inner;
    run(s.bodies[0], scope_in(in), inner);
    const value text(std::move(inner));
    write(out, to_text(budget_, evaluate_filter(*s.expressions[0], in, &text)));
    break;
  }
  case kind::with:
    with(s, in, out);
    break;
  case kind::scope:
    run(s.bodies[0], scope_in(in), out);
    break;
  case kind::leave_loop:
    return flow::leave_loop;
  case kind::next_item:
    return flow::next_item;
  }
  return flow::on;
}

interpreter::flow
interpreter::branch(const statement& s, const scope_pointer& in,
                    marked_text& out) {
  for (std::size_t i = 0; i < s.expressions.size(); ++i)
    if (evaluate(*s.expressions[i], in).truth())
      return run(s.bodies[i], in, out);
  if (s.bodies.size() > s.expressions.size())
    return run(s.bodies.back(), in, out);
  return flow::on;
}

void interpreter::assign(const target& to, const value& what,
                         const scope_pointer& in) {
  if (!to.parts.empty()) {
    const std::vector<value> items = items_of(budget_, what.defined());
    if (items.size() != to.parts.size())
      fail("expected " + std::to_string(to.parts.size())
           + " values to unpack, got " + std::to_string(items.size()));
    for (std::size_t i = 0; i < items.size(); ++i)
      assign(to.parts[i], items[i], in);
  } else if (to.attribute.empty())
    in->set(to.name, what);
  else if (const value* const of = in->find(to.name))
    set_in_namespace(*of, to.attribute, what);
  else
    fail("'" + to.name + "' is undefined");
}

void interpreter::loop(const statement& s, const scope_pointer& in,
                       const value& over, std::size_t depth, marked_text& out) {
  std::vector<value> items = items_of(budget_, over);
  if (s.expressions[1]) {
    std::vector<value> kept;
    for (value& v : items) {
      const auto inner = scope_in(in);
      inner->set("loop",
                 value::missing("'loop' is undefined in the loop's if"));
      assign(s.targets[0], v, inner);
      if (evaluate(*s.expressions[1], inner).truth())
        kept.push_back(std::move(v));
    }
    items = std::move(kept);
  }
  if (items.empty()) {
    if (s.bodies.size() > 1)
      run(s.bodies[1], scope_in(in), out);
    return;
  }
  const auto state = std::make_shared<loop_object>(
    std::move(items), depth,
    s.recursive ? [this, &s, in](
                    const value& more,
                    std::size_t level) { return run_loop(s, in, more, level); }
                : loop_object::again());
  const value shown{std::shared_ptr<object>(state)};
  for (; state->more(); state->next()) {
    const auto round = scope_in(in);
    round->set("loop", shown);
    assign(s.targets[0], state->item(), round);
    if (run(s.bodies[0], round, out) == flow::leave_loop)
      break;
  }
  state->end();
}

marked_text
interpreter::run_loop(const statement& s, const scope_pointer& within,
                      const value& over, std::size_t depth) {
  const level here(*this);
  marked_text out;
  loop(s, within, over, depth, out);
  return out;
}

void interpreter::set_block(const statement& s, const scope_pointer& in) {
  marked_text inner;
  run(s.bodies[0], scope_in(in), inner);
  value text(std::move(inner));
  if (s.expressions[0])
    text = evaluate_filter(*s.expressions[0], in, &text);
  assign(s.targets[0], text, in);
}

value interpreter::macro_in(const macro_code& code, const scope_pointer& in) {
  keep([in] { in->variables.clear(); });
  return std::shared_ptr<object>(std::make_shared<macro_object>(code, in));
}

void interpreter::define_macro(const statement& s, const scope_pointer& in) {
  in->set(s.code->name, macro_in(*s.code, in));
}

void interpreter::call_block(const statement& s, const scope_pointer& in,
                             marked_text& out) {
  const expression& e = *s.expressions[0];
  const value callee = evaluate(*e.parts[0], in);
  call_arguments args = evaluate(e.arguments, in);
  args.named.emplace_back("caller", macro_in(*s.code, in));
  write(out, to_text(budget_, call(callee, std::move(args))));
}

void interpreter::with(const statement& s, const scope_pointer& in,
                       marked_text& out) {
  const auto inner = scope_in(in);
  for (std::size_t i = 0; i < s.targets.size(); ++i)
    assign(s.targets[i], evaluate(*s.expressions[i], in), inner);
  run(s.bodies[0], inner, out);
}

marked_text
interpreter::run_macro(const macro_code& code, const scope_pointer& within,
                       call_arguments args) {
  const auto inner = scope_in(within);
  const std::size_t count = code.names.size();
  const auto take_named = [&](const std::string& name) {
    const auto at = std::ranges::find(args.named, name,
                                      &std::pair<std::string, value>::first);
    if (at == args.named.end())
      return std::optional<value>();
    std::optional<value> out(std::move(at->second));
    args.named.erase(at);
    return out;
  };
  if (code.uses_caller)
    inner->set("caller", take_named("caller").value_or(
                           value::missing("No caller defined")));
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = code.names[i];
    const std::size_t first_default = count - code.defaults.size();
    if (i < args.positional.size())
      inner->set(name, std::move(args.positional[i]));
    else if (auto named = take_named(name))
      inner->set(name, *std::move(named));
    else if (i >= first_default)
      inner->set(name, evaluate(*code.defaults[i - first_default], inner));
    else
      inner->set(name,
                 value::missing("parameter '" + name + "' was not provided"));
  }
  if (code.takes_more)
    inner->set("varargs",
               sequence::make(budget_, sequence_kind::tuple,
                              args.positional.size() <= count
                                ? std::vector<value>()
                                : std::vector<value>(args.positional.begin()
                                                       + std::ptrdiff_t(count),
                                                     args.positional.end())));
  else if (args.positional.size() > count)
    fail("macro '" + code.name + "' takes not more than "
         + std::to_string(count) + " argument(s)");
  if (code.takes_named) {
    map more;
    for (auto& [name, what] : args.named)
      more.put(value(name), std::move(what));
    inner->set("kwargs", map::make(budget_, std::move(more)));
  } else if (!args.named.empty())
    fail("macro '" + code.name + "' takes no keyword argument '"
         + args.named.front().first + "'");
  marked_text out;
  run(*code.body, inner, out);
  return out;
}

} // namespace shoal::jinja
