// runtime/core/text/text_range.hpp -- a part of a text.
#pragma once

#include <cstddef>

namespace shoal::core {

/// Bytes [first, last) of a text.
struct text_range {
  std::size_t first = 0;
  std::size_t last = 0;
  friend bool operator==(const text_range&, const text_range&) = default;
};

} // namespace shoal::core
