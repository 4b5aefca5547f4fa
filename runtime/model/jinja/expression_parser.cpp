// runtime/model/jinja/expression_parser.cpp -- expressions by precedence, as
// Jinja has it: if, or, and, not, comparison, + -, ~, * / // %, **, sign, filter.
#include "runtime/model/jinja/parser.hpp"

#include <algorithm>
#include <charconv>

namespace shoal::jinja {

using kind = expression_kind;

bool expression_parser::take_sign(std::string_view sign) {
  if (!now().is_sign(sign))
    return false;
  take();
  return true;
}

bool expression_parser::take_name(std::string_view name) {
  if (!now().is_name(name))
    return false;
  take();
  return true;
}

void expression_parser::expect_sign(std::string_view sign) {
  if (!take_sign(sign))
    fail("expected '" + std::string(sign) + "'");
}

void expression_parser::expect_name(std::string_view name) {
  if (!take_name(name))
    fail("expected \"" + std::string(name) + "\"");
}

std::string expression_parser::expect_identifier() {
  if (now().kind != token_kind::name)
    fail("expected a name");
  return take().text;
}

void expression_parser::unexpected() const {
  switch (now().kind) {
  case token_kind::end:
    fail("unexpected end of the template");
  case token_kind::end_output:
  case token_kind::end_block:
    fail("unexpected end of the tag");
  default:
    fail("unexpected '" + now().text.substr(0, 40) + "'");
  }
}

void expression_parser::too_deep() const {
  fail("nested more than " + std::to_string(syntax_depth_max) + " levels deep");
}

expression_pointer expression_parser::make(expression_kind k) {
  auto out = std::make_unique<expression>();
  out->kind = k;
  out->line = now().line;
  return out;
}

expression_pointer
expression_parser::make(expression_kind k, expression_pointer first,
                        expression_pointer second) {
  auto out = make(k);
  out->line = first ? first->line : out->line;
  out->parts.push_back(std::move(first));
  if (second)
    out->parts.push_back(std::move(second));
  return deeper(std::move(out));
}

expression_pointer expression_parser::deeper(expression_pointer e) const {
  const auto look = [&](const expression_pointer& p) {
    if (p)
      e->depth = std::max(e->depth, p->depth + 1);
  };
  for (const auto& p : e->parts)
    look(p);
  for (const auto& p : e->arguments.positional)
    look(p);
  for (const auto& [name, p] : e->arguments.named)
    look(p);
  look(e->arguments.list);
  look(e->arguments.map);
  if (e->depth > syntax_depth_max)
    too_deep();
  return e;
}

expression_pointer expression_parser::any(bool conditional) {
  const level here(*this);
  if (!conditional)
    return either();
  auto out = either();
  while (take_name("if")) {
    auto e = make(kind::conditional);
    e->parts.push_back(either());
    e->parts.push_back(std::move(out));
    e->parts.push_back(take_name("else") ? any() : nullptr);
    out = deeper(std::move(e));
  }
  return out;
}

expression_pointer expression_parser::either() {
  auto out = both();
  while (take_name("or"))
    out = make(kind::either, std::move(out), both());
  return out;
}

expression_pointer expression_parser::both() {
  auto out = negation();
  while (take_name("and"))
    out = make(kind::both, std::move(out), negation());
  return out;
}

expression_pointer expression_parser::negation() {
  const level here(*this);
  if (take_name("not"))
    return make(kind::negation, negation());
  return comparison();
}

expression_pointer expression_parser::comparison() {
  auto first = sum();
  auto out = make(kind::comparison);
  out->line = first->line;
  for (;;) {
    std::string name;
    for (const char* s : {"==", "!=", "<", "<=", ">", ">="})
      if (now().is_sign(s))
        name = s;
    if (!name.empty())
      take();
    else if (take_name("in"))
      name = "in";
    else if (now().is_name("not") && ahead().is_name("in")) {
      take();
      take();
      name = "not in";
    } else
      break;
    out->names.push_back(std::move(name));
    out->parts.push_back(sum());
  }
  if (out->names.empty())
    return first;
  out->parts.insert(out->parts.begin(), std::move(first));
  return deeper(std::move(out));
}

expression_pointer expression_parser::sum() {
  auto out = join();
  while (now().is_sign("+") || now().is_sign("-")) {
    std::string name = take().text;
    out = make(kind::arithmetic, std::move(out), join());
    out->name = std::move(name);
  }
  return out;
}

expression_pointer expression_parser::join() {
  auto first = product();
  if (!now().is_sign("~"))
    return first;
  auto out = make(kind::join);
  out->parts.push_back(std::move(first));
  while (take_sign("~"))
    out->parts.push_back(product());
  return deeper(std::move(out));
}

expression_pointer expression_parser::product() {
  auto out = power();
  while (now().is_sign("*") || now().is_sign("/") || now().is_sign("//")
         || now().is_sign("%")) {
    std::string name = take().text;
    out = make(kind::arithmetic, std::move(out), power());
    out->name = std::move(name);
  }
  return out;
}

expression_pointer expression_parser::power() {
  auto out = unary();
  while (take_sign("**")) {
    out = make(kind::arithmetic, std::move(out), unary());
    out->name = "**";
  }
  return out;
}

expression_pointer expression_parser::unary(bool filtered) {
  const level here(*this);
  expression_pointer out;
  if (take_sign("-"))
    out = make(kind::negative, unary(false));
  else if (take_sign("+"))
    out = make(kind::positive, unary(false));
  else
    out = primary();
  out = postfix(std::move(out));
  return filtered ? filters(std::move(out)) : std::move(out);
}

expression_pointer expression_parser::number(const token& from) {
  auto out = make(kind::constant);
  out->line = from.line;
  const char* const first = from.text.data();
  const char* const last = first + from.text.size();
  std::int64_t whole = 0;
  double real = 0;
  const auto read = from.kind == token_kind::integer
                      ? std::from_chars(first, last, whole)
                      : std::from_chars(first, last, real);
  if (read.ec != std::errc())
    fail_at(from.line, "the number is too large");
  out->literal = from.kind == token_kind::integer ? value(whole) : value(real);
  return out;
}

expression_pointer expression_parser::primary() {
  const level here(*this);
  const token first = now();
  if (first.kind == token_kind::integer || first.kind == token_kind::real) {
    take();
    return number(first);
  }
  if (first.kind == token_kind::text) {
    auto out = make(kind::constant);
    std::string text;
    while (now().kind == token_kind::text)
      text += take().text;
    out->literal = value(std::move(text));
    return out;
  }
  if (first.kind == token_kind::name) {
    auto out = make(kind::constant);
    take();
    const std::string& name = first.text;
    if (name == "true" || name == "True")
      out->literal = value(true);
    else if (name == "false" || name == "False")
      out->literal = value(false);
    else if (name == "none" || name == "None")
      out->literal = value::none{};
    else {
      out->kind = kind::name;
      out->name = name;
      uses_.caller = uses_.caller || name == "caller";
      uses_.varargs = uses_.varargs || name == "varargs";
      uses_.kwargs = uses_.kwargs || name == "kwargs";
    }
    return out;
  }
  if (take_sign("(")) {
    auto out = tuple_of(true, {}, true);
    expect_sign(")");
    return out;
  }
  if (take_sign("[")) {
    auto out = make(kind::list);
    while (!now().is_sign("]")) {
      if (!out->parts.empty())
        expect_sign(",");
      if (now().is_sign("]"))
        break;
      out->parts.push_back(any());
    }
    expect_sign("]");
    return deeper(std::move(out));
  }
  if (take_sign("{")) {
    auto out = make(kind::map);
    while (!now().is_sign("}")) {
      if (!out->parts.empty())
        expect_sign(",");
      if (now().is_sign("}"))
        break;
      out->parts.push_back(any());
      expect_sign(":");
      out->parts.push_back(any());
    }
    expect_sign("}");
    return deeper(std::move(out));
  }
  unexpected();
}

bool expression_parser::ends_tuple(std::string_view end) const {
  return now().kind == token_kind::end_output
         || now().kind == token_kind::end_block || now().is_sign(")")
         || (!end.empty() && now().is_name(end));
}

expression_pointer
expression_parser::tuple_of(bool conditional, std::string_view end,
                            bool brackets) {
  auto out = make(kind::tuple);
  bool comma = false;
  while (!ends_tuple(end)) {
    out->parts.push_back(any(conditional));
    comma = take_sign(",");
    if (!comma)
      break;
  }
  if (!comma && out->parts.size() == 1)
    return std::move(out->parts.front());
  if (out->parts.empty() && !brackets)
    unexpected();
  return deeper(std::move(out));
}

expression_pointer
expression_parser::maybe_tuple(bool conditional, std::string_view end) {
  return tuple_of(conditional, end, false);
}

expression_pointer expression_parser::postfix(expression_pointer of) {
  for (;;) {
    if (now().is_sign(".") || now().is_sign("["))
      of = subscript(std::move(of));
    else if (now().is_sign("(")) {
      auto out = make(kind::call, std::move(of));
      out->arguments = arguments();
      of = deeper(std::move(out));
    } else
      return of;
  }
}

expression_pointer expression_parser::subscript(expression_pointer of) {
  if (take_sign(".")) {
    const token name = take();
    if (name.kind == token_kind::integer)
      return make(kind::item, std::move(of), number(name));
    if (name.kind != token_kind::name)
      fail_at(name.line, "expected a name or a number after '.'");
    auto out = make(kind::attribute, std::move(of));
    out->name = name.text;
    return out;
  }
  expect_sign("[");
  std::vector<expression_pointer> parts;
  bool sliced = false;
  expression_pointer part = now().is_sign(":") ? nullptr : any();
  while (parts.size() < 3) {
    parts.push_back(std::move(part));
    if (!take_sign(":"))
      break;
    sliced = true;
    part = now().is_sign(":") || now().is_sign("]") ? nullptr : any();
    if (parts.size() == 2) {
      parts.push_back(std::move(part));
      break;
    }
  }
  if (now().is_sign(","))
    fail("an index has one part");
  expect_sign("]");
  if (!sliced)
    return make(kind::item, std::move(of), std::move(parts[0]));
  auto out = make(kind::slice);
  out->parts.push_back(std::move(of));
  parts.resize(3);
  for (auto& p : parts)
    out->parts.push_back(std::move(p));
  return deeper(std::move(out));
}

expression_pointer
expression_parser::filters(expression_pointer of, bool only) {
  for (;;) {
    if (now().is_sign("|")) {
      take();
      auto out = make(kind::filter, std::move(of));
      out->name = expect_identifier();
      while (take_sign("."))
        out->name += "." + expect_identifier();
      if (now().is_sign("("))
        out->arguments = arguments();
      of = deeper(std::move(out));
    } else if (!only && now().is_name("is"))
      of = test(std::move(of));
    else if (!only && now().is_sign("(")) {
      auto out = make(kind::call, std::move(of));
      out->arguments = arguments();
      of = deeper(std::move(out));
    } else
      return of;
  }
}

expression_pointer expression_parser::test(expression_pointer of) {
  expect_name("is");
  const bool negated = take_name("not");
  auto out = make(kind::test, std::move(of));
  out->name = expect_identifier();
  while (take_sign("."))
    out->name += "." + expect_identifier();
  const token& next = now();
  const bool begins_value =
    next.kind == token_kind::text || next.kind == token_kind::integer
    || next.kind == token_kind::real || next.is_sign("[") || next.is_sign("{")
    || (next.kind == token_kind::name && next.text != "else"
        && next.text != "or" && next.text != "and");
  if (next.is_sign("("))
    out->arguments = arguments();
  else if (begins_value) {
    if (next.is_name("is"))
      fail("tests cannot be chained with \"is\"");
    out->arguments.positional.push_back(postfix(primary()));
  }
  out = deeper(std::move(out));
  return negated ? make(kind::negation, std::move(out)) : std::move(out);
}

argument_list expression_parser::arguments() {
  const level here(*this);
  argument_list out;
  expect_sign("(");
  for (bool first = true; !now().is_sign(")"); first = false) {
    if (!first)
      expect_sign(",");
    if (now().is_sign(")"))
      break;
    if (take_sign("*")) {
      if (out.list || out.map)
        fail("unexpected '*'");
      out.list = any();
    } else if (take_sign("**")) {
      if (out.map)
        fail("unexpected '**'");
      out.map = any();
    } else if (now().kind == token_kind::name && ahead().is_sign("=")) {
      if (out.map)
        fail("a named argument after '**'");
      std::string name = take().text;
      take();
      out.named.emplace_back(std::move(name), any());
    } else {
      if (out.list || out.map || !out.named.empty())
        fail("an argument without a name after one with a name");
      out.positional.push_back(any());
    }
  }
  expect_sign(")");
  return out;
}

} // namespace shoal::jinja
