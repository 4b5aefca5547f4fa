// runtime/core/fields.hpp -- one description of the fields of each struct.
//
// Below each struct that peers agree on, send or store stands a function that
// shows all its fields to a visitor, with the limits for bytes from outside:
//
//   struct ballot {
//     std::uint64_t round = 0;
//     peer_id proposer{};
//   };
//   void fields(auto& v, of<ballot> auto& x) {
//     v("round", x.round, at_most(epoch_max));
//     v("proposer", x.proposer);
//   }
//
// x is a ballot or a const ballot: some visitors read, others fill in. From
// this list follow canonical bytes and digests (canonical.hpp), the bound of a
// size (cluster/local/view_size.hpp), Protobuf with every check
// (wire/reflect.hpp), and the tests' random messages
// (tests/runtime/wire/random_fields.hpp).
//
// The names are those of the .proto file; a test compares the two. The order is
// that of canonical bytes, whose hashes name shoals: a new field goes to the
// end, as an edition of its own where the struct has editions. All fields are
// shown at each call, always in the same order.
//
// A visitor is a class, derived from `visitor`, with
//
//   template <class T, class Limit = any_value>
//   void operator()(const char* name, T& field, Limit limit = {});
//
// where T is bool, an integer, an enum, double, a text, an id (bytes of a fixed
// length), bytes, a struct with fields, a vector or optional of one, or a
// variant of structs. Bytes and variants stand only in what is sent.
#pragma once

#include "runtime/core/errc.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace shoal::core {

/// T or const T: lets one function show the fields of both.
template <class X, class T>
concept of = std::same_as<std::remove_const_t<X>, T>;

// Limits: what bytes from outside may put into a field. -----------------------

/// All values of the field's type.
struct any_value {};

/// A number; one above is errc::too_large, one below is errc::corrupt.
struct number_limit {
  std::int64_t min;
  std::uint64_t max;
};
constexpr number_limit at_most(std::uint64_t max) {
  return {0, max};
}
constexpr number_limit within(std::int64_t min, std::uint64_t max) {
  return {min, max};
}

/// A text with a limit in bytes that is safe to show (text/shown.hpp).
struct text_limit {
  std::size_t bytes_max;
  bool has_lines = false; ///< line ends are kept
  bool cleaned = false;   ///< the sender shortens it and removes characters
                          ///< that are unsafe to show; otherwise the sender
                          ///< guarantees the text
};
constexpr text_limit text_of(std::size_t bytes_max) {
  return {bytes_max};
}
constexpr text_limit lines_of(std::size_t bytes_max) {
  return {bytes_max, true};
}
constexpr text_limit cleaned_text_of(std::size_t bytes_max) {
  return {bytes_max, false, true};
}
constexpr text_limit cleaned_lines_of(std::size_t bytes_max) {
  return {bytes_max, true, true};
}

/// At most `bytes_max` bytes, of any value.
struct bytes_limit {
  std::size_t bytes_max;
};
constexpr bytes_limit bytes_of(std::size_t bytes_max) {
  return {bytes_max};
}

/// A list with a limit of items, each within `item`.
template <class Item>
struct list_limit {
  std::size_t count_max;
  Item item;
};
template <class Item = any_value>
constexpr list_limit<Item> list_of(std::size_t count_max, Item item = {}) {
  return {count_max, item};
}

/// An enumerator from 1 to `last`; any other is errc::unknown.
template <class Enum>
struct enum_limit {
  Enum last;
};
template <class Enum>
constexpr enum_limit<Enum> up_to(Enum last) {
  return {last};
}

/// One of the kinds of a variant, by their names in the .proto file.
template <std::size_t N>
struct kind_limit {
  const std::array<const char*, N>& names;
};
template <std::size_t N>
constexpr kind_limit<N> one_of(const std::array<const char*, N>& names) {
  return {names};
}

/// A field that may be missing, because messages or files of older versions
/// lack it: then it keeps its default. A struct that equals its default is not
/// sent.
template <class Limit>
struct absent_limit {
  Limit present;
};
template <class Limit = any_value>
constexpr absent_limit<Limit> or_absent(Limit present = {}) {
  return {present};
}

// Visitors.
// --------------------------------------------------------------------

/// Whether canonical bytes contain the fields of an edition. They always
/// contain those of edition 0, which come first.
enum class presence {
  if_set,          ///< if one of them is not zero or empty
  if_set_or_later, ///< or one of a later edition
};

/// Default answers, for visitors that do not care.
struct visitor {
  /// The fields from here on were added after shoals had been named by this
  /// struct. @pre the number is 1 more than that of the edition above; or, in a
  /// nested struct, the edition of the outer struct to which these fields
  /// belong
  void edition(unsigned, presence) {}
  /// A rule between fields, shown after them; `broken` describes the violation.
  /// holds() is a bool.
  template <class Rule>
  void must(runtime::errc, const Rule&) {}
};

/// Ignores everything that is shown to it.
struct blind_visitor : visitor {
  template <class T, class Limit = any_value>
  void operator()(const char*, T&, Limit = {}) {}
};

/// A struct that names its fields.
template <class T>
concept has_fields = requires(blind_visitor& v, T& x) {
  fields(v, x);
};

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <>
inline constexpr bool is_list<std::vector<std::byte>> = false;
/// Bytes of any length.
template <class T>
inline constexpr bool is_bytes = std::same_as<T, std::vector<std::byte>>;
template <class T>
inline constexpr bool is_variant = false;
template <class... Kinds>
inline constexpr bool is_variant<std::variant<Kinds...>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
/// Bytes of a fixed length: an id, a key, a digest.
template <class T>
inline constexpr bool is_id = false;
template <std::size_t N>
inline constexpr bool is_id<std::array<std::uint8_t, N>> = true;
template <class T>
inline constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;

} // namespace shoal::core
