// runtime/model/jinja/statement_parser.cpp -- the statements of a template.
#include "runtime/model/jinja/parser.hpp"

#include <algorithm>
#include <array>

namespace shoal::jinja {

namespace {

using kind = statement_kind;

class template_parser : expression_parser {
public:
  using expression_parser::expression_parser;

  block run() {
    block out = body({});
    if (now().kind != token_kind::end)
      unexpected();
    return out;
  }

private:
  using names = std::initializer_list<std::string_view>;

  /// Statements up to a block that begins with one of these names.
  block body(names ends) {
    const level here(*this);
    block out;
    for (;;) {
      const token& t = now();
      if (t.kind == token_kind::data) {
        statement& s = add(out, kind::text);
        s.text = take().text;
      } else if (t.kind == token_kind::begin_output) {
        take();
        statement& s = add(out, kind::output);
        s.expressions.push_back(maybe_tuple());
        expect(token_kind::end_output);
      } else if (t.kind == token_kind::begin_block) {
        if (std::ranges::any_of(
              ends, [&](auto name) { return ahead().is_name(name); })) {
          take();
          return out;
        }
        take();
        tag(out);
      } else if (t.kind == token_kind::end) {
        if (ends.size() > 0)
          fail("the template ends where \"" + std::string(*ends.begin())
               + "\" is missing");
        return out;
      } else
        unexpected();
    }
  }

  /// @pre body() has returned at a block that begins with one of its names
  block body_to(std::string_view end) {
    block out = body({end});
    expect_name(end);
    return out;
  }

  void expect(token_kind what) {
    if (now().kind != what)
      unexpected();
    take();
  }
  void end_tag() { expect(token_kind::end_block); }

  statement& add(block& to, kind what) {
    statement& s = to.emplace_back();
    s.kind = what;
    s.line = now().line;
    return s;
  }

  void tag(block& to) {
    if (now().kind != token_kind::name)
      unexpected();
    const std::string name = now().text;
    if (name == "if")
      branch(to);
    else if (name == "for")
      loop(to);
    else if (name == "set")
      set(to);
    else if (name == "macro")
      macro(to);
    else if (name == "call")
      call(to);
    else if (name == "filter")
      filter(to);
    else if (name == "with")
      with(to);
    else if (name == "generation")
      generation(to);
    else if (name == "print")
      print(to);
    else if ((name == "break" || name == "continue") && loops_ > 0) {
      add(to, name == "break" ? kind::leave_loop : kind::next_item);
      take();
      end_tag();
    } else if (name == "break" || name == "continue")
      fail("\"" + name + "\" outside of a loop");
    else
      fail("\"" + name.substr(0, 40) + "\" is not supported here");
  }

  void branch(block& to) {
    statement s;
    s.kind = kind::branch;
    s.line = now().line;
    for (;;) {
      take(); // if, elif
      s.expressions.push_back(maybe_tuple(false));
      end_tag();
      s.bodies.push_back(body({"endif", "elif", "else"}));
      if (now().is_name("elif"))
        continue;
      if (take_name("else")) {
        end_tag();
        s.bodies.push_back(body_to("endif"));
      } else
        take(); // endif
      end_tag();
      to.push_back(std::move(s));
      return;
    }
  }

  target one_target(bool with_namespace) {
    target out;
    out.name = expect_identifier();
    for (const char* fixed : {"true", "false", "none", "True", "False", "None"})
      if (out.name == fixed)
        fail("\"" + out.name + "\" cannot be set");
    if (with_namespace && take_sign("."))
      out.attribute = expect_identifier();
    return out;
  }

  target targets(bool with_namespace, std::string_view end) {
    const level here(*this);
    target out;
    bool comma = false;
    const auto done = [&] {
      return (!end.empty() && now().is_name(end)) || now().is_sign("=")
             || now().is_sign(")") || now().kind == token_kind::end_block
             || now().is_sign("|");
    };
    while (!done()) {
      if (take_sign("(")) {
        out.parts.push_back(targets(with_namespace, {}));
        expect_sign(")");
      } else
        out.parts.push_back(one_target(with_namespace));
      comma = take_sign(",");
      if (!comma)
        break;
    }
    if (out.parts.empty())
      unexpected();
    if (out.parts.size() == 1 && !comma) {
      target only = std::move(out.parts.front());
      return only;
    }
    return out;
  }

  void loop(block& to) {
    statement s;
    s.kind = kind::loop;
    s.line = now().line;
    take();
    s.targets.push_back(targets(false, "in"));
    expect_name("in");
    s.expressions.push_back(maybe_tuple(false, "recursive"));
    s.expressions.push_back(take_name("if") ? any() : nullptr);
    s.recursive = take_name("recursive");
    end_tag();
    ++loops_;
    s.bodies.push_back(body({"endfor", "else"}));
    --loops_;
    if (take_name("else")) {
      end_tag();
      s.bodies.push_back(body_to("endfor"));
    } else
      take();
    end_tag();
    to.push_back(std::move(s));
  }

  void set(block& to) {
    statement s;
    s.line = now().line;
    take();
    s.targets.push_back(targets(true, {}));
    if (take_sign("=")) {
      s.kind = kind::set;
      s.expressions.push_back(maybe_tuple());
      end_tag();
    } else {
      s.kind = kind::set_block;
      s.expressions.push_back(filters(nullptr, true));
      end_tag();
      s.bodies.push_back(body_to("endset"));
      end_tag();
    }
    to.push_back(std::move(s));
  }

  void parameters(macro_code& code) {
    expect_sign("(");
    while (!now().is_sign(")")) {
      if (!code.names.empty())
        expect_sign(",");
      if (now().is_sign(")"))
        break;
      code.names.push_back(one_target(false).name);
      if (take_sign("="))
        code.defaults.push_back(any());
      else if (!code.defaults.empty())
        fail("an argument without a default after one with a default");
    }
    expect_sign(")");
  }

  /// The body of a macro or call block, up to `end`.
  void macro_body(statement& s, std::string_view end) {
    const uses outer = std::exchange(uses_, {});
    const int loops = std::exchange(loops_, 0);
    s.bodies.push_back(body_to(end));
    end_tag();
    loops_ = loops;
    s.code->uses_caller = uses_.caller;
    s.code->takes_more = uses_.varargs;
    s.code->takes_named = uses_.kwargs;
    uses_ = outer;
    s.code->body = &s.bodies.front();
  }

  void macro(block& to) {
    statement s;
    s.kind = kind::macro;
    s.line = now().line;
    s.code = std::make_unique<macro_code>();
    take();
    s.code->name = expect_identifier();
    parameters(*s.code);
    end_tag();
    macro_body(s, "endmacro");
    to.push_back(std::move(s));
  }

  void call(block& to) {
    statement s;
    s.kind = kind::call;
    s.line = now().line;
    s.code = std::make_unique<macro_code>();
    s.code->name = "caller";
    take();
    if (now().is_sign("("))
      parameters(*s.code);
    s.expressions.push_back(any());
    if (s.expressions[0]->kind != expression_kind::call)
      fail("\"call\" needs a call");
    end_tag();
    macro_body(s, "endcall");
    to.push_back(std::move(s));
  }

  void filter(block& to) {
    statement s;
    s.kind = kind::filter;
    s.line = now().line;
    take();
    auto first = make(expression_kind::filter, nullptr);
    first->name = expect_identifier();
    if (now().is_sign("("))
      first->arguments = arguments();
    s.expressions.push_back(filters(deeper(std::move(first)), true));
    end_tag();
    s.bodies.push_back(body_to("endfilter"));
    end_tag();
    to.push_back(std::move(s));
  }

  void with(block& to) {
    statement s;
    s.kind = kind::with;
    s.line = now().line;
    take();
    while (now().kind != token_kind::end_block) {
      if (!s.targets.empty())
        expect_sign(",");
      s.targets.push_back(one_target(false));
      expect_sign("=");
      s.expressions.push_back(any());
    }
    end_tag();
    s.bodies.push_back(body_to("endwith"));
    end_tag();
    to.push_back(std::move(s));
  }

  /// Marks for training what the model is to learn; here only a scope.
  void generation(block& to) {
    statement s;
    s.kind = kind::scope;
    s.line = now().line;
    take();
    end_tag();
    const int loops = std::exchange(loops_, 0); // it is a call inside
    s.bodies.push_back(body_to("endgeneration"));
    loops_ = loops;
    end_tag();
    to.push_back(std::move(s));
  }

  void print(block& to) {
    take();
    while (now().kind != token_kind::end_block) {
      statement& s = add(to, kind::output);
      s.expressions.push_back(any());
      if (!take_sign(","))
        break;
    }
    end_tag();
  }

  int loops_ = 0; ///< around
};

} // namespace

block parse_template(std::string_view source) {
  return template_parser(tokens_of(source)).run();
}

} // namespace shoal::jinja
