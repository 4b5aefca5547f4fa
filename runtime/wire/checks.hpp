// runtime/wire/checks.hpp -- the checks of what comes from another machine.
//
// A check that fails notes it and goes on harmlessly, so that the rules read as
// a list; the caller looks at checks::error once.
#pragma once

#include "runtime/core/errc.hpp"
#include "runtime/core/fields.hpp"
#include "runtime/core/text/shown.hpp"

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace shoal::runtime::codec {

/// Remembers the first broken rule.
class checks {
public:
  std::error_code error;

  void fail(errc e) {
    if (!error)
      error = e;
  }
  void require(bool holds) {
    if (!holds)
      fail(errc::corrupt);
  }
  template <std::size_t N>
  void id(const std::string& in, std::array<std::uint8_t, N>& out) {
    if (in.size() != N)
      return fail(errc::corrupt);
    std::memcpy(out.data(), in.data(), N);
  }
  /// Text that may be shown as it is (runtime/core/text/shown.hpp).
  void text(const std::string& in, std::size_t max, std::string& out,
            core::line_ends ends = core::line_ends::none);
  void
  bytes(const std::string& in, std::size_t max, std::vector<std::byte>& out);
  /// @returns whether a list of `count` may be read.
  bool list(int count, std::size_t max) {
    if (static_cast<std::size_t>(count) <= max)
      return true;
    fail(errc::too_large);
    return false;
  }
  template <class Number>
  Number at_most(Number value, std::type_identity_t<Number> max) {
    if (value <= max)
      return value;
    fail(errc::too_large);
    return 0;
  }
  /// As T, whose range holds the limit's.
  template <class T, class Number>
  T within(Number value, core::number_limit limit) {
    if (std::cmp_greater(value, limit.max))
      fail(errc::too_large);
    else if (std::cmp_less(value, limit.min))
      fail(errc::corrupt);
    else
      return static_cast<T>(value);
    return 0;
  }
  template <class Enum>
  void enumerator(std::uint32_t in, Enum first, Enum last, Enum& out) {
    if (in < static_cast<std::uint32_t>(first)
        || in > static_cast<std::uint32_t>(last))
      return fail(errc::unknown);
    out = static_cast<Enum>(in);
  }
};

template <std::size_t N>
std::string raw(const std::array<std::uint8_t, N>& id) {
  return {reinterpret_cast<const char*>(id.data()), N};
}
inline std::string raw(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace shoal::runtime::codec
