// runtime/model/jinja/values/value.hpp -- the values of a template, as Python has them.
//
// Values do not change once they are made (as in Jinja's immutable sandbox), but
// for namespaces, loops and generators, which are objects. Lists and maps know
// how deep they are, so that no function that follows them runs out of stack.
//
// Differences from Python: whole numbers have 64 bits; more is a fault.
//
// Ownership: values share what they hold. Objects that can hold themselves are
//            emptied by the interpreter at the end.
// Errors:    template_error.
#pragma once

#include "runtime/model/jinja/values/limits.hpp"
#include "runtime/model/jinja/values/marked_text.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace shoal::jinja {

class value;
class interpreter;

/// What a sequence is to Python.
enum class sequence_kind : std::uint8_t {
  list,
  tuple,
  range,
  keys,      ///< of a map: dict.keys(); not to be indexed
  values,    ///< the same
  items,     ///< the same
  generator, ///< gives each item once; always true, has no length
};

struct call_arguments {
  std::vector<value> positional;
  std::vector<std::pair<std::string, value>> named;
};

/// A thing with attributes that can be called, or not.
class object {
public:
  virtual ~object() = default;
  /// Such as "function"; for faults and tests.
  virtual std::string_view kind() const = 0;
  virtual std::optional<value> attribute(std::string_view name);
  virtual bool callable() const { return false; }
  virtual value call(interpreter& by, call_arguments args);
  /// Levels of values inside.
  virtual std::size_t depth() const { return 1; }
};

class sequence;
class map;

class value {
public:
  struct undefined {
    std::shared_ptr<const std::string> reason;
  };
  struct none {};

  value() : value(undefined{}) {}
  value(undefined u) : data_(std::move(u)) {}
  value(none) : data_(none{}) {}
  value(bool b) : data_(b) {}
  value(std::int64_t i) : data_(i) {}
  value(double d) : data_(d) {}
  value(marked_text t)
    : data_(std::make_shared<const marked_text>(std::move(t))) {}
  value(std::string own) : value(marked_text::own(std::move(own))) {}
  value(std::string_view own) : value(std::string(own)) {}
  value(const char* own) : value(std::string(own)) {}
  value(std::shared_ptr<sequence> s) : data_(std::move(s)) {}
  value(std::shared_ptr<const map> m) : data_(std::move(m)) {}
  value(std::shared_ptr<object> o) : data_(std::move(o)) {}
  static value missing(std::string reason) {
    return undefined{std::make_shared<const std::string>(std::move(reason))};
  }

  bool is_undefined() const { return holds<undefined>(); }
  bool is_none() const { return holds<none>(); }
  bool is_bool() const { return holds<bool>(); }
  bool is_integer() const { return holds<std::int64_t>() || is_bool(); }
  bool is_float() const { return holds<double>(); }
  bool is_number() const { return is_integer() || is_float(); }
  bool is_string() const { return holds<text_pointer>(); }

  /// Null if it is something else.
  const marked_text* text() const { return pointee<text_pointer>(); }
  const sequence* as_sequence() const {
    return pointee<std::shared_ptr<sequence>>();
  }
  const map* as_map() const { return pointee<std::shared_ptr<const map>>(); }
  object* as_object() const { return pointee<std::shared_ptr<object>>(); }

  /// @pre is_integer()
  std::int64_t integer() const {
    return is_bool() ? std::int64_t(std::get<bool>(data_))
                     : std::get<std::int64_t>(data_);
  }
  /// @pre is_number()
  double number() const {
    return is_float() ? std::get<double>(data_) : double(integer());
  }
  /// Python's truth.
  bool truth() const;
  /// The class, as Python's faults name it: "dict", "str".
  std::string type_name() const;
  std::size_t depth() const;
  /// The same object in memory; equal small values are the same, too.
  bool same_as(const value& other) const;
  const std::string* undefined_reason() const {
    return std::get<undefined>(data_).reason.get();
  }
  /// @throws template_error if it is undefined
  const value& defined() const;

private:
  using text_pointer = std::shared_ptr<const marked_text>;
  template <class Kind>
  bool holds() const {
    return std::holds_alternative<Kind>(data_);
  }
  template <class Pointer>
  typename Pointer::element_type* pointee() const {
    const auto* const at = std::get_if<Pointer>(&data_);
    return at ? at->get() : nullptr;
  }

  std::variant<undefined, none, bool, std::int64_t, double, text_pointer,
               std::shared_ptr<sequence>, std::shared_ptr<const map>,
               std::shared_ptr<object>>
    data_;
};

class sequence {
public:
  /// @throws template_error if it is nested too deep
  sequence(sequence_kind kind, std::vector<value> items);
  static value make(budget& from, sequence_kind kind, std::vector<value> items);

  sequence_kind kind() const { return kind_; }
  const std::vector<value>& items() const { return items_; }
  std::size_t depth() const { return depth_; }
  bool indexed() const { return kind_ <= sequence_kind::range; }
  bool has_length() const { return kind_ != sequence_kind::generator; }
  /// Whether a generator's items have been taken.
  mutable bool taken = false;

private:
  sequence_kind kind_;
  std::vector<value> items_;
  std::size_t depth_ = 1;
};

/// Keys in the order in which they came.
class map {
public:
  using entry = std::pair<value, value>;
  /// Replaces the value of a key that is there. @throws template_error if the
  /// key can be none, or it is nested too deep
  void put(value key, value what);
  const value* find(const value& key) const;
  const value* find_text(std::string_view key) const;
  const std::vector<entry>& entries() const { return entries_; }
  std::size_t depth() const { return depth_; }
  static value make(budget& from, map m);

private:
  std::vector<entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
  std::size_t depth_ = 1;
};

// Python's operations. ----------------------------------------------------------

bool equal(budget& from, const value& a, const value& b);
/// -1, 0 or 1. @throws template_error if the two have no order
int compare(budget& from, const value& a, const value& b);
/// Whether b contains a.
bool contains(budget& from, const value& a, const value& b);
/// str(v), as {{ v }} writes it.
marked_text to_text(budget& from, const value& v);
/// repr(v).
marked_text to_repr(budget& from, const value& v);
/// The items that a loop passes over. Takes those of a generator.
std::vector<value> items_of(budget& from, const value& v);
/// len(v).
std::size_t length_of(const value& v);

[[noreturn]] void fail(std::string what);

} // namespace shoal::jinja
