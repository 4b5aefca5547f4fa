// runtime/core/amounts.cpp -- amounts as text.
#include "runtime/core/amounts.hpp"

#include <cmath>
#include <cstdio>
#include <iterator>

namespace shoal::core {

std::string size_text(std::uint64_t bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value,
                units[unit]);
  return text;
}

std::string count_text(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun)
         + (count == 1 ? "" : "s");
}

double printable(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

} // namespace shoal::core
