// runtime/model/jinja/syntax.hpp -- a template as a tree.
#pragma once

#include "runtime/model/jinja/values/value.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::jinja {

struct expression;
using expression_pointer = std::unique_ptr<expression>;

struct argument_list {
  std::vector<expression_pointer> positional;
  std::vector<std::pair<std::string, expression_pointer>> named;
  expression_pointer list; ///< after '*'; null: none
  expression_pointer map;  ///< after '**'
};

enum class expression_kind : std::uint8_t {
  constant,    ///< `literal`
  name,        ///< `name`
  list,        ///< of parts
  tuple,       ///< of parts
  map,         ///< key, value, key, value, ...
  attribute,   ///< parts[0].name
  item,        ///< parts[0][parts[1]]
  slice,       ///< parts[0][parts[1]:parts[2]:parts[3]]; null: left out
  call,        ///< parts[0](arguments)
  filter,      ///< parts[0] | name(arguments); null: the text of a block
  test,        ///< parts[0] is name(arguments)
  negative,    ///< -parts[0]
  positive,    ///< +parts[0]
  negation,    ///< not parts[0]
  both,        ///< parts[0] and parts[1]
  either,      ///< parts[0] or parts[1]
  comparison,  ///< parts[0] names[0] parts[1] names[1] ...
  arithmetic,  ///< parts[0] name parts[1]
  join,        ///< parts[0] ~ parts[1] ~ ...
  conditional, ///< parts[1] if parts[0] else parts[2]; null: no else
};

struct expression {
  expression_kind kind = expression_kind::constant;
  int line = 1;
  std::string name;
  value literal;
  std::vector<expression_pointer> parts;
  std::vector<std::string> names;
  argument_list arguments;
  std::size_t depth = 1; ///< levels below, this one included
};

/// What a loop or a set statement gives a value to.
struct target {
  std::string name;
  std::string attribute;     ///< of a namespace; "": none
  std::vector<target> parts; ///< not empty: a tuple of these
};

struct statement;
using block = std::vector<statement>;

/// A macro, or the body of a call block.
struct macro_code {
  std::string name;
  std::vector<std::string> names;           ///< of arguments
  std::vector<expression_pointer> defaults; ///< of the last of these
  block* body = nullptr;                    ///< in the statement
  bool uses_caller = false;
  bool takes_more = false;  ///< uses varargs
  bool takes_named = false; ///< uses kwargs
};

enum class statement_kind : std::uint8_t {
  text,       ///< `text`
  output,     ///< expressions[0]
  branch,     ///< if expressions[i] then bodies[i]; one body more: else
  loop,       ///< for targets[0] in [0] if [1] do bodies[0] else bodies[1]
  set,        ///< targets[0] = expressions[0]
  set_block,  ///< targets[0] = bodies[0], through expressions[0] if not null
  macro,      ///< `code`
  call,       ///< expressions[0], with `code` as caller
  filter,     ///< bodies[0] through expressions[0]
  with,       ///< targets[i] = expressions[i] within bodies[0]
  scope,      ///< bodies[0] with variables of its own
  leave_loop, ///< break
  next_item,  ///< continue
};

struct statement {
  statement_kind kind = statement_kind::text;
  int line = 1;
  std::string text;
  std::vector<expression_pointer> expressions;
  std::vector<target> targets;
  std::vector<block> bodies;
  std::unique_ptr<macro_code> code;
  bool recursive = false; ///< a loop that can be called
};

} // namespace shoal::jinja
