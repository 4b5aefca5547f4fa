// runtime/model/jinja/parser.hpp -- tokens to a tree.
//
// Not supported, and refused by name: include, import, from, extends and block
// (a template stands alone), trans, autoescape, do and debug.
//
// Errors: template_error, with "line N: " before it.
#pragma once

#include "runtime/model/jinja/lexer.hpp"
#include "runtime/model/jinja/syntax.hpp"

#include <initializer_list>
#include <string_view>

namespace shoal::jinja {

/// Takes tokens one after the other; the part for expressions.
class expression_parser {
public:
  explicit expression_parser(std::vector<token> tokens)
    : tokens_(std::move(tokens)) {}

protected:
  /// Counts levels while one is open.
  class level {
  public:
    explicit level(expression_parser& of) : of_(of) {
      if (++of_.depth_ > syntax_depth_max)
        of_.too_deep();
    }
    ~level() { --of_.depth_; }
    level(const level&) = delete;
    level& operator=(const level&) = delete;

  private:
    expression_parser& of_;
  };

  const token& now() const { return tokens_[at_]; }
  const token& ahead(std::size_t by = 1) const {
    return tokens_[std::min(at_ + by, tokens_.size() - 1)];
  }
  token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : now(); }
  bool take_sign(std::string_view sign);
  bool take_name(std::string_view name);
  void expect_sign(std::string_view sign);
  void expect_name(std::string_view name);
  std::string expect_identifier();
  [[noreturn]] void fail(const std::string& what) const {
    fail_at(now().line, what);
  }
  [[noreturn]] void unexpected() const;
  [[noreturn]] void too_deep() const;

  /// @param conditional  whether "a if b else c" belongs to it
  expression_pointer any(bool conditional = true);
  /// An expression, or a tuple without brackets. @param end  a name that ends it
  expression_pointer
  maybe_tuple(bool conditional = true, std::string_view end = {});
  expression_pointer primary();
  expression_pointer postfix(expression_pointer of);
  /// @param only  filters alone, no tests and calls
  expression_pointer filters(expression_pointer of, bool only = false);
  argument_list arguments();

  expression_pointer make(expression_kind kind);
  expression_pointer make(expression_kind kind, expression_pointer first,
                          expression_pointer second = nullptr);
  /// Takes the depth of what it holds. @throws template_error: too deep
  expression_pointer deeper(expression_pointer e) const;

  /// Names that a macro's body uses, of those that change what it takes.
  struct uses {
    bool caller = false, varargs = false, kwargs = false;
  } uses_;

private:
  expression_pointer either();
  expression_pointer both();
  expression_pointer negation();
  expression_pointer comparison();
  expression_pointer sum();
  expression_pointer join();
  expression_pointer product();
  expression_pointer power();
  expression_pointer unary(bool filtered = true);
  expression_pointer subscript(expression_pointer of);
  expression_pointer test(expression_pointer of);
  expression_pointer number(const token& from);
  bool ends_tuple(std::string_view end) const;
  expression_pointer
  tuple_of(bool conditional, std::string_view end, bool brackets);

  std::vector<token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

/// @pre source is UTF-8
block parse_template(std::string_view source);

} // namespace shoal::jinja
