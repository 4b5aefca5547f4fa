// runtime/core/measure/median.hpp -- the median of some values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace shoal::core {

/// The middle value of a sorted copy of `values`, the higher of two in the
/// middle; a value-initialised one if there are none.
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
