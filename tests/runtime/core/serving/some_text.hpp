// tests/runtime/core/serving/some_text.hpp -- tokens for tests: first, first + 1,
// and so on.
#pragma once

#include "runtime/core/serving/pages.hpp"

#include <numeric>
#include <vector>

namespace shoal::core {

inline std::vector<token_id> text(std::size_t count, token_id first = 0) {
  std::vector<token_id> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

} // namespace shoal::core
