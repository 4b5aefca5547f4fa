// tests/runtime/wire/random_fields.hpp -- any struct that names its fields, from
// a seed: within the limits of each field, and of the rules between them.
//
// Half of the numbers are small, the others of any size. Texts and lists are
// short.
#pragma once

#include "runtime/core/serving/serve_messages.hpp"
#include "runtime/core/training/job_messages.hpp"
#include "runtime/core/view.hpp"

#include <random>

namespace shoal::tests {

class random_fields : public core::visitor {
public:
  explicit random_fields(std::mt19937_64& engine) : engine_(engine) {}

  template <core::has_fields T>
  T make() {
    T x{};
    one(x, core::any_value{});
    return x;
  }
  /// The kind of this index.
  template <class Variant>
  Variant make_kind(std::size_t index) {
    Variant out;
    const auto make_one = [&]<std::size_t I>() {
      if (I == index)
        out.template emplace<I>(make<std::variant_alternative_t<I, Variant>>());
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (make_one.template operator()<I>(), ...);
    }
    (std::make_index_sequence<std::variant_size_v<Variant>>{});
    return out;
  }

  template <class T, class Limit = core::any_value>
  void operator()(const char*, T& x, Limit limit = {}) {
    one(x, limit);
  }

private:
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool coin() { return below(2) == 1; }

  template <class T>
  void one(T& x, core::any_value) {
    if constexpr (std::same_as<T, bool>)
      x = coin();
    else if constexpr (std::same_as<T, double>)
      x = static_cast<double>(below(1000)) / 7;
    else if constexpr (std::is_integral_v<T>)
      x = static_cast<T>(engine_());
    else if constexpr (core::is_id<T>)
      for (std::uint8_t& b : x)
        b = static_cast<std::uint8_t>(below(256));
    else if constexpr (core::is_optional<T>)
      maybe(x, core::any_value{});
    else {
      fields(*this, x);
      settle(x);
    }
  }
  template <class T>
  void one(T& x, core::number_limit limit) {
    const std::uint64_t span =
      limit.max - static_cast<std::uint64_t>(limit.min);
    const std::uint64_t all = coin() ? std::min<std::uint64_t>(span, 9) : span;
    x = static_cast<T>(static_cast<std::uint64_t>(limit.min) + below(all + 1));
  }
  void one(std::string& x, core::text_limit limit) {
    const std::size_t usual = limit.has_lines ? 300 : 20;
    x.resize(below(std::min(limit.bytes_max, usual) + 1));
    for (char& c : x)
      c = static_cast<char>(' ' + below(95));
  }
  void one(std::vector<std::byte>& x, core::bytes_limit limit) {
    x.resize(below(std::min<std::size_t>(limit.bytes_max, 40) + 1));
    for (std::byte& b : x)
      b = static_cast<std::byte>(below(256));
  }
  template <class T, class Item>
  void one(std::vector<T>& x, core::list_limit<Item> limit) {
    x.resize(below(std::min<std::size_t>(limit.count_max, 4) + 1));
    for (T& item : x)
      one(item, limit.item);
  }
  template <class Enum>
  void one(Enum& x, core::enum_limit<Enum> limit) {
    x = static_cast<Enum>(1 + below(static_cast<std::uint64_t>(limit.last)));
  }
  template <class Enum>
  void one(std::optional<Enum>& x, core::enum_limit<Enum> limit) {
    maybe(x, limit);
  }
  template <class T, class Limit>
  void one(T& x, core::absent_limit<Limit> limit) {
    one(x, limit.present);
  }
  template <class T, class Limit>
  void maybe(std::optional<T>& x, Limit limit) {
    if (coin())
      one(x.emplace(), limit);
  }

  // The rules between fields.
  template <class T>
  static void settle(T&) {}
  static void settle(core::stage_place& x);
  static void settle(core::replica_place& x);
  static void settle(core::holder_place& x);
  static void settle(core::seal& x);
  static void settle(core::shards_written& x);
  static void settle(core::view& x);
  static void settle(core::sampling_wish& x);
  static void settle(core::serve_request& x);
  static void settle(core::row_pooling& x);
  static void settle(core::serve_row& x);

  std::mt19937_64& engine_;
};

} // namespace shoal::tests
