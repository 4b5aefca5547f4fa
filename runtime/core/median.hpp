// runtime/core/median.hpp -- the middle of some values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace shoal::core {

/// The value in the middle of a copy of `values` once sorted, the higher of two
/// in the middle; a value-initialised one if there are none.
template <class Container>
typename Container::value_type median(Container values) {
  if (std::empty(values))
    return {};
  const auto middle =
    std::begin(values) + static_cast<std::ptrdiff_t>(std::size(values) / 2);
  std::nth_element(std::begin(values), middle, std::end(values));
  return *middle;
}

} // namespace shoal::core
