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

std::string large_text(double count) {
  char text[48];
  if (count < 1e4)
    std::snprintf(text, sizeof text, "%.0f", count);
  else if (count < 1e6)
    std::snprintf(text, sizeof text, "%.0f thousand", count / 1e3);
  else if (count < 1e9)
    std::snprintf(text, sizeof text, "%.1f million", count / 1e6);
  else
    std::snprintf(text, sizeof text, "%.1f billion", count / 1e9);
  return text;
}

double printable(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

} // namespace shoal::core
