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
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.1f", value);
  std::string text = digits;
  if (text.ends_with(".0"))
    text.resize(text.size() - 2);
  return text + " " + units[unit];
}

std::string count_text(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun)
         + (count == 1 ? "" : "s");
}

double printable(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

} // namespace shoal::core
