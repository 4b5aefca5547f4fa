// runtime/core/canonical.hpp -- the canonical bytes of a struct.
//
// Every field in its order (fields.hpp); numbers as 8 bytes, little-endian;
// texts and lists after their length; ids as they are. An optional id is a
// flag, then the id or zeros; an optional enumerator is 0 or the number.
//
// Fields of an edition follow all those of earlier editions, also those of
// nested structs: a field that was added to a struct later stands at the end of
// the bytes, where it can be left out.
//
// Threads: plain data. Cost: one pass, one buffer.
#pragma once

#include "runtime/core/fields.hpp"

#include <utility>

namespace shoal::core {

class canonical_writer : public visitor {
public:
  /// What happens to editions in which no field is set.
  enum class unset {
    left_out, ///< so that existing shoals keep their names
    written,
  };

  explicit canonical_writer(unset u) : unset_(u) {}

  /// Appends a struct with all its editions.
  template <has_fields T>
  void add(const T& x);
  void add(std::uint64_t number);
  void add(const std::string& text);
  template <std::size_t N>
  void add(const std::array<std::uint8_t, N>& id) {
    append(id.data(), N);
  }

  /// @returns the appended bytes
  std::vector<std::byte> take() && { return std::move(bytes_); }

  // The visitor of the fields of one struct:
  template <class T, class Limit = any_value>
  void operator()(const char*, const T& x, Limit = {}) {
    if (current_ != 0 && is_set(x))
      editions_[current_ - 1].set = true;
    value(x);
  }
  void edition(unsigned number, presence p);

private:
  using buffer = std::vector<std::byte>;
  struct later {
    buffer bytes;
    bool set = false;
    presence when = presence::if_set;
  };

  template <class T>
  static bool is_set(const T& x) {
    if constexpr (is_list<T> || std::same_as<T, std::string>)
      return !x.empty();
    else if constexpr (has_fields<T>)
      return false; // its fields decide that
    else
      return x != T{};
  }
  template <class T>
  void value(const T& x);
  void append(const void* data, std::size_t size);
  /// Appends to `to` the editions of a struct that have to be present.
  void finish(buffer& to) const;

  unset unset_;
  buffer bytes_;
  buffer* first_ = &bytes_; ///< edition 0 of the struct in progress
  std::vector<later> editions_;
  unsigned current_ = 0;
};

template <has_fields T>
void canonical_writer::add(const T& x) {
  buffer* const to = current_ == 0 ? first_ : &editions_[current_ - 1].bytes;
  buffer* const first = std::exchange(first_, to);
  auto editions = std::exchange(editions_, {});
  const unsigned current = std::exchange(current_, 0);
  fields(*this, x);
  finish(*to);
  first_ = first;
  editions_ = std::move(editions);
  current_ = current;
}

template <class T>
void canonical_writer::value(const T& x) {
  if constexpr (std::is_enum_v<T>) {
    add(static_cast<std::uint64_t>(x));
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>)
      add(static_cast<std::uint64_t>(std::int64_t{x}));
    else
      add(std::uint64_t{x});
  } else if constexpr (is_list<T>) {
    add(std::uint64_t{x.size()});
    for (const auto& item : x)
      if constexpr (has_fields<typename T::value_type>)
        add(item);
      else
        value(item);
  } else if constexpr (is_optional<T>) {
    if constexpr (is_id<typename T::value_type>)
      add(std::uint64_t{x.has_value()});
    value(x.value_or(typename T::value_type{}));
  } else if constexpr (has_fields<T>) {
    const unsigned current = current_;
    fields(*this, x); // its editions are those of the struct around it
    current_ = current;
  } else {
    add(x); // a text or an id
  }
}

} // namespace shoal::core
