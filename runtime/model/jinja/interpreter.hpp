// runtime/model/jinja/interpreter.hpp -- runs a tree.
//
// One interpreter renders one template once. Variables live in scopes, as Jinja
// has them: a loop's round, a macro, a block of call, set, filter or with has
// one of its own, an "if" has none.
//
// Ownership: what can hold itself (namespaces, scopes of macros, loops) is
//            listed and emptied when the interpreter ends.
// Errors:    template_error without a line; line() is that of the fault.
#pragma once

#include "runtime/model/jinja/builtins.hpp"
#include "runtime/model/jinja/syntax.hpp"

#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace shoal::jinja {

struct scope;
using scope_pointer = std::shared_ptr<scope>;

struct scope {
  scope_pointer parent;
  std::vector<std::pair<std::string, value>> variables;

  value* find(std::string_view name);
  void set(const std::string& name, value what);
};

class interpreter {
public:
  interpreter(const limits& bounds, const std::tm& now);
  ~interpreter();
  interpreter(const interpreter&) = delete;
  interpreter& operator=(const interpreter&) = delete;

  void set(const std::string& name, value what);
  marked_text run(const block& code);
  int line() const { return line_; }

  // For builtins.
  budget& meter() { return budget_; }
  const std::tm& now() const { return now_; }
  value call(const value& callee, call_arguments args);
  value filter(std::string_view name, const value& in, call_arguments args);
  bool test(std::string_view name, const value& in, call_arguments args);
  /// v.name
  value attribute(const value& v, const std::string& name);
  /// v[key]
  value item(const value& v, const value& key);
  /// Keeps what is to be emptied at the end.
  void keep(std::function<void()> empty);

  // For macros and loops.
  marked_text run_macro(const macro_code& code, const scope_pointer& within,
                        call_arguments args);
  marked_text run_loop(const statement& s, const scope_pointer& within,
                       const value& over, std::size_t depth);

private:
  enum class flow { on, leave_loop, next_item };
  class level;

  value evaluate(const expression& e, const scope_pointer& in);
  value evaluate_name(const expression& e, const scope_pointer& in);
  value evaluate_map(const expression& e, const scope_pointer& in);
  value evaluate_slice(const expression& e, const scope_pointer& in);
  value evaluate_call(const expression& e, const scope_pointer& in);
  value evaluate_join(const expression& e, const scope_pointer& in);
  value evaluate_comparison(const expression& e, const scope_pointer& in);
  std::vector<value> evaluate_all(const std::vector<expression_pointer>& all,
                                  const scope_pointer& in);
  call_arguments evaluate(const argument_list& from, const scope_pointer& in);
  /// A filter, or a chain of them; the innermost takes `first`.
  value evaluate_filter(const expression& e, const scope_pointer& in,
                        const value* first);

  flow run(const block& code, const scope_pointer& in, marked_text& out);
  flow run(const statement& s, const scope_pointer& in, marked_text& out);
  flow branch(const statement& s, const scope_pointer& in, marked_text& out);
  void loop(const statement& s, const scope_pointer& in, const value& over,
            std::size_t depth, marked_text& out);
  void set_block(const statement& s, const scope_pointer& in);
  void define_macro(const statement& s, const scope_pointer& in);
  void
  call_block(const statement& s, const scope_pointer& in, marked_text& out);
  void with(const statement& s, const scope_pointer& in, marked_text& out);
  void assign(const target& to, const value& what, const scope_pointer& in);
  value macro_in(const macro_code& code, const scope_pointer& in);
  void write(marked_text& out, const marked_text& more);

  limits bounds_;
  budget budget_;
  std::tm now_;
  scope_pointer globals_;
  std::vector<std::function<void()>> kept_;
  std::size_t depth_ = 0;
  int line_ = 1;
};

/// The functions that each template can call.
void add_globals(interpreter& to);
/// namespace(...): variables that can be set from any scope.
class namespace_object;
void set_in_namespace(const value& v, const std::string& name, value what);

} // namespace shoal::jinja
