// runtime/wire/reflect.hpp -- structs that name their fields, as Protobuf.
//
// put() fills the Protobuf message of a struct, get() checks one and fills the
// struct: both go through fields() (runtime/core/fields.hpp) and find each field
// in the .proto file by its name. All checks of single fields are here. A get()
// that finds a fault notes it in `checks` and goes on harmlessly.
//
// Threads: any. Cost: names are looked up once for each struct. A field costs
// some 10 ns more than by a generated accessor.
#pragma once

#include "runtime/core/assert.hpp"
#include "runtime/core/fields.hpp"
#include "runtime/wire/checks.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/reflection.h>

#include <span>
#include <utility>
#include <variant>

namespace shoal::runtime::codec {

namespace pb = google::protobuf;

using field_list = std::vector<const pb::FieldDescriptor*>;

/// The fields of a message in the order in which fields() shows them; null for
/// a oneof, whose fields are looked up by the kind.
class named_fields : public core::visitor {
public:
  explicit named_fields(const pb::Descriptor& message) : message_(message) {}
  field_list found;

  template <class T, class Limit = core::any_value>
  void operator()(const char* name, const T&, Limit = {}) {
    if constexpr (core::is_variant<T>) {
      SHOAL_ASSERT(message_.FindOneofByName(name) != nullptr);
      found.push_back(nullptr);
    } else {
      found.push_back(message_.FindFieldByName(name));
      SHOAL_ASSERT(found.back() != nullptr);
    }
  }

private:
  const pb::Descriptor& message_;
};

/// @pre always of the same kind of message for one T
template <class T>
const field_list& fields_of(const pb::Message& m) {
  static const field_list list = [&] {
    named_fields names(*m.GetDescriptor());
    const T shape{};
    fields(names, shape);
    return std::move(names.found);
  }();
  return list;
}

template <core::has_fields T>
void put(pb::Message& to, const T& from);
template <core::has_fields T>
void get(const pb::Message& from, T& to, checks& c);
template <class... Kinds>
void put_kind(pb::Message& to, const std::variant<Kinds...>& from,
              const std::array<const char*, sizeof...(Kinds)>& names);
template <class... Kinds>
void get_kind(const pb::Message& from, std::variant<Kinds...>& to,
              const std::array<const char*, sizeof...(Kinds)>& names,
              checks& c);

inline core::line_ends ends(core::text_limit limit) {
  return limit.has_lines ? core::line_ends::kept : core::line_ends::none;
}

/// Fills a message.
class put_fields : public core::visitor {
public:
  put_fields(pb::Message& to, const field_list& list)
    : to_(to), use_(*to.GetReflection()), field_(list.data()) {}

  template <class T, class Limit = core::any_value>
  void operator()(const char*, const T& x, Limit limit = {}) {
    const field* f = *field_++;
    if constexpr (core::is_variant<T>)
      put_kind(to_, x, limit.names);
    else
      put_one(*f, x, limit);
  }

private:
  using field = pb::FieldDescriptor;

  template <class T, class Limit>
  void put_one(const field& f, const T& x, Limit limit) {
    if constexpr (core::is_number<T>)
      number(f, x);
    else if constexpr (std::same_as<T, double>)
      use_.SetDouble(&to_, &f, x);
    else if constexpr (core::is_id<T>)
      use_.SetString(&to_, &f, raw(x));
    else if constexpr (std::same_as<T, std::string>)
      use_.SetString(&to_, &f, text(x, limit));
    else if constexpr (core::is_bytes<T>)
      use_.SetString(&to_, &f, raw(x));
    else if constexpr (core::is_list<T>)
      list(f, x);
    else if constexpr (core::is_optional<T>)
      optional(f, x, limit);
    else
      put(*use_.MutableMessage(&to_, &f), x);
  }
  /// A field that may be missing: a struct is, where it says nothing.
  template <class T, class Limit>
  void put_one(const field& f, const T& x, core::absent_limit<Limit> limit) {
    if constexpr (core::has_fields<T>)
      if (x == T{})
        return;
    put_one(f, x, limit.present);
  }
  template <class T>
  void number(const field& f, T x) {
    switch (f.cpp_type()) {
    case field::CPPTYPE_BOOL:
      return use_.SetBool(&to_, &f, static_cast<bool>(x));
    case field::CPPTYPE_UINT32:
      return use_.SetUInt32(&to_, &f, static_cast<std::uint32_t>(x));
    case field::CPPTYPE_UINT64:
      return use_.SetUInt64(&to_, &f, static_cast<std::uint64_t>(x));
    case field::CPPTYPE_INT32:
      return use_.SetInt32(&to_, &f, static_cast<std::int32_t>(x));
    case field::CPPTYPE_INT64:
      return use_.SetInt64(&to_, &f, static_cast<std::int64_t>(x));
    default:
      SHOAL_ASSERT(false); // another type of number in a .proto file
    }
  }
  static std::string text(const std::string& x, core::text_limit limit) {
    return limit.cleaned ? core::shown(x, limit.bytes_max, ends(limit)) : x;
  }
  template <class T>
  void list(const field& f, const std::vector<T>& x) {
    if constexpr (core::is_number<T> || std::same_as<T, double>) {
      if (x.empty())
        return;
      const auto to = use_.GetMutableRepeatedFieldRef<T>(&to_, &f);
      for (const T value : x)
        to.Add(value);
    } else {
      for (const T& item : x)
        if constexpr (core::is_id<T>)
          use_.AddString(&to_, &f, raw(item));
        else if constexpr (std::same_as<T, std::string>)
          use_.AddString(&to_, &f, item);
        else
          put(*use_.AddMessage(&to_, &f), item);
    }
  }
  template <class T, class Limit>
  void optional(const field& f, const std::optional<T>& x, Limit limit) {
    if (x)
      put_one(f, *x, limit);
  }

  pb::Message& to_;
  const pb::Reflection& use_;
  const field* const* field_;
};

/// Checks a message.
class get_fields : public core::visitor {
public:
  get_fields(const pb::Message& from, const field_list& list, checks& c)
    : from_(from), use_(*from.GetReflection()), field_(list.data()), c_(c) {}

  template <class T, class Limit = core::any_value>
  void operator()(const char*, T& x, Limit limit = {}) {
    const field* f = *field_++;
    if constexpr (core::is_variant<T>)
      get_kind(from_, x, limit.names, c_);
    else
      get_one(*f, x, limit);
  }
  template <class Rule>
  void must(errc broken, const Rule& holds) {
    if (!holds())
      c_.fail(broken);
  }

private:
  using field = pb::FieldDescriptor;

  template <class T, class Limit>
  void get_one(const field& f, T& x, Limit limit) {
    if constexpr (std::same_as<T, bool>)
      x = use_.GetBool(from_, &f);
    else if constexpr (std::is_integral_v<T>)
      x = number<T>(f, limit);
    else if constexpr (std::is_enum_v<T>)
      c_.enumerator(use_.GetUInt32(from_, &f), T{1}, limit.last, x);
    else if constexpr (std::same_as<T, double>)
      x = use_.GetDouble(from_, &f);
    else if constexpr (core::is_id<T>)
      c_.id(bytes(f), x);
    else if constexpr (std::same_as<T, std::string>)
      text(bytes(f), x, limit);
    else if constexpr (core::is_bytes<T>)
      c_.bytes(bytes(f), limit.bytes_max, x);
    else if constexpr (core::is_list<T>)
      list(f, x, limit);
    else if constexpr (core::is_optional<T>)
      optional(f, x, limit);
    else
      get(use_.GetMessage(from_, &f), x, c_);
  }
  template <class T, class Limit>
  void get_one(const field& f, T& x, core::absent_limit<Limit> limit) {
    if (is_there<T>(f))
      get_one(f, x, limit.present);
  }
  /// Of fields without a mark of their own zero and empty mean absent.
  template <class T>
  bool is_there(const field& f) {
    if (f.has_presence())
      return use_.HasField(from_, &f);
    if constexpr (std::is_enum_v<T>)
      return use_.GetUInt32(from_, &f) != 0;
    else
      return !bytes(f).empty();
  }
  const std::string& bytes(const field& f) {
    return use_.GetStringReference(from_, &f, &scratch_);
  }

  template <class T>
  T number(const field& f, core::any_value) {
    return number<T>(f, {std::numeric_limits<T>::min(),
                         std::uint64_t{std::numeric_limits<T>::max()}});
  }
  template <class T>
  T number(const field& f, core::number_limit limit) {
    switch (f.cpp_type()) {
    case field::CPPTYPE_UINT32:
      return c_.within<T>(use_.GetUInt32(from_, &f), limit);
    case field::CPPTYPE_UINT64:
      return c_.within<T>(use_.GetUInt64(from_, &f), limit);
    case field::CPPTYPE_INT32:
      return c_.within<T>(use_.GetInt32(from_, &f), limit);
    case field::CPPTYPE_INT64:
      return c_.within<T>(use_.GetInt64(from_, &f), limit);
    default:
      SHOAL_ASSERT(false); // another type of number in a .proto file
    }
    return 0;
  }
  void text(const std::string& in, std::string& x, core::text_limit limit) {
    c_.text(in, limit.bytes_max, x, ends(limit));
  }

  template <class T, class Item>
  void list(const field& f, std::vector<T>& x, core::list_limit<Item> limit) {
    const int count = use_.FieldSize(from_, &f);
    if (count == 0 || !c_.list(count, limit.count_max))
      return;
    x.reserve(static_cast<std::size_t>(count));
    if constexpr (core::is_number<T> || std::same_as<T, double>) {
      const auto values = use_.GetRepeatedFieldRef<T>(from_, &f);
      for (int i = 0; i < count; ++i)
        x.push_back(item(values.Get(i), limit.item));
    } else {
      for (int i = 0; i < count; ++i)
        if constexpr (core::is_id<T>)
          c_.id(use_.GetRepeatedStringReference(from_, &f, i, &scratch_),
                x.emplace_back());
        else if constexpr (std::same_as<T, std::string>)
          text(use_.GetRepeatedStringReference(from_, &f, i, &scratch_),
               x.emplace_back(), limit.item);
        else
          get(use_.GetRepeatedMessage(from_, &f, i), x.emplace_back(), c_);
    }
  }
  template <class T>
  T item(T value, core::any_value) {
    return value;
  }
  template <class T>
  T item(T value, core::number_limit limit) {
    return c_.within<T>(value, limit);
  }
  template <class T, class Limit>
  void optional(const field& f, std::optional<T>& x, Limit limit) {
    if (is_there<T>(f))
      get_one(f, x.emplace(), limit);
  }

  const pb::Message& from_;
  const pb::Reflection& use_;
  const field* const* field_;
  checks& c_;
  std::string scratch_;
};

template <core::has_fields T>
void put(pb::Message& to, const T& from) {
  put_fields into(to, fields_of<T>(to));
  fields(into, from);
}

template <core::has_fields T>
void get(const pb::Message& from, T& to, checks& c) {
  get_fields out_of(from, fields_of<T>(from), c);
  fields(out_of, to);
}

/// A message with one oneof; `names` has its field for each kind of `Kinds`.
template <class... Kinds>
void put_kind(pb::Message& to, const std::variant<Kinds...>& from,
              const std::array<const char*, sizeof...(Kinds)>& names) {
  const auto* field = to.GetDescriptor()->FindFieldByName(names[from.index()]);
  SHOAL_ASSERT(field != nullptr);
  pb::Message& body = *to.GetReflection()->MutableMessage(&to, field);
  std::visit([&](const auto& kind) { put(body, kind); }, from);
}

template <class... Kinds>
void get_kind(const pb::Message& from, std::variant<Kinds...>& to,
              const std::array<const char*, sizeof...(Kinds)>& names,
              checks& c) {
  const auto* body = from.GetDescriptor()->oneof_decl(0);
  const auto* field = from.GetReflection()->GetOneofFieldDescriptor(from, body);
  if (field == nullptr)
    return c.fail(errc::unknown);
  const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    if (field->name() == names[I])
      get(from.GetReflection()->GetMessage(from, field),
          to.template emplace<I>(), c);
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one(std::integral_constant<std::size_t, I>{}), ...);
  }
  (std::index_sequence_for<Kinds...>{});
}

} // namespace shoal::runtime::codec
