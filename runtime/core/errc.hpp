// runtime/core/errc.hpp -- error codes of the runtime.
#pragma once

#include <system_error>

namespace shoal::runtime {

enum class errc {
  ok = 0,
  corrupt = 1, ///< bytes do not hash to their name, or break a format
  too_large,   ///< over a named limit
  unknown,     ///< a kind, enumerator or version that this binary lacks
  not_found,   ///< no such job, blob or upload
  refused,     ///< the node refuses; the text says why
  no_node,     ///< no node answers
  timed_out,   ///< no answer in time
  lost,        ///< the connection ended
  no_quorum,   ///< too few of the last view's voters are reachable
  not_regular, ///< a FIFO, folder, device or socket where a file should be
};

const std::error_category& runtime_category() noexcept;

inline std::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), runtime_category()};
}

} // namespace shoal::runtime

template <>
struct std::is_error_code_enum<shoal::runtime::errc> : std::true_type {};
