// runtime/openai/field_log.hpp -- which fields a parser reads, told by the parser
// itself.
//
// A parser that has one in its limits (request_limits::told) enters each field of the
// body's top level that it looks at, whether it is there or not, with what it may be.
// So a description of the API that is made from it cannot differ from the parser.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

namespace shoal::openai {

struct read_field {
  enum class kind {
    any, ///< more than one type, or parts of its own
    flag,
    text,    ///< of at most `high` bytes
    integer, ///< from `low` to `high`
    number,  ///< the same; `low` itself is not allowed if `above`
  };
  kind is = kind::any;
  std::int64_t low = 0, high = 0;
  bool above = false;
};

class field_log {
public:
  /// A field that is read in several ways is told by the first one with a type.
  void add(const std::string& name, const read_field& field) {
    if (hidden_.contains(name))
      return;
    const auto [at, is_new] = fields_.emplace(name, field);
    if (!is_new && at->second.is == read_field::kind::any)
      at->second = field;
  }
  /// The parser goes on with fields that it has made itself: by these names, what it
  /// looks at from now on is not of the body.
  template <class Names>
  void hide(const Names& names) {
    hidden_.insert(std::begin(names), std::end(names));
  }

  const std::map<std::string, read_field>& fields() const { return fields_; }

private:
  std::map<std::string, read_field> fields_;
  std::set<std::string> hidden_;
};

} // namespace shoal::openai
